/* SPDX-License-Identifier: MIT */
/*
 * Element-wise ops. Those of f32 alone run on vectors (templates/elementwise.c), integer divisions where they can be
 * checked (elementwise_divide.c), all else on single elements (elementwise_scalar.c).
 */
#include <string.h>

#include "ir/family.h"
#include "kernels/elementwise/blocked_elementwise.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"
#include "knobs.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

static const char *const OPERAND[ELEMENTWISE_OPERANDS] = {"a", "b", "c"};

/* The inputs that are not absent. */
typedef struct Operands {
  int n;
  const Value *values[ELEMENTWISE_OPERANDS];
  const char *names[ELEMENTWISE_OPERANDS]; /* by input of the node: "a", "b", "c"; NULL: absent */
} Operands;

static Operands operands_of(const Node *node) {
  Operands operands = {0};
  int own = node_own_inputs(node);
  if (own > ELEMENTWISE_OPERANDS) bug("%s: more inputs than operands", node->op->name);
  for (int k = 0; k < own; k++) {
    if (!node->inputs[k]) continue;
    operands.names[k] = OPERAND[operands.n];
    operands.values[operands.n++] = node->inputs[k];
  }
  return operands;
}

/* ---- kernels ---- */

static void add_unused(Text *body, int first) {
  for (int k = first; k < ELEMENTWISE_OPERANDS; k++) text_add(body, "(void)%s;\n  ", OPERAND[k]);
}

static bool divides(const Node *node) {
  bool integer = !dtype_is_float(node->inputs[0]->dtype);
  return integer && (is_op(node, OP_Div) || is_op(node, OP_Mod));
}

static KernelSpec *divide_spec(Program *program, const Node *node) {
  KernelSpec *spec = kernel_spec(program, "elementwise_divide");
  int modulo = is_op(node, OP_Mod) && node_int(node, ATTR_fmod) ? DIVIDE_REMAINDER : DIVIDE_FLOOR_REMAINDER;
  kernel_type(spec, "T", node->inputs[0]->dtype);
  kernel_knob(spec, "OPERATION", is_op(node, OP_Mod) ? modulo : DIVIDE_QUOTIENT);
  return spec;
}

static KernelSpec *scalar_spec(Program *program, const Node *node, const Operands *operands) {
  static const char *const TYPE[ELEMENTWISE_OPERANDS] = {"A", "B", "C"};
  Text body = text_new(program->arena);
  const char *expression = elementwise_scalar(program->arena, node, operands->names);
  if (!expression) bug("no kernel for %s of %s", node->op->name, dtype_name(node->inputs[0]->dtype));
  add_unused(&body, operands->n);
  text_add(&body, "return (R)(%s);", expression);
  KernelSpec *spec = kernel_spec(program, "elementwise_scalar");
  for (int k = 0; k < ELEMENTWISE_OPERANDS; k++)
    kernel_type(spec, TYPE[k], operands->values[k < operands->n ? k : 0]->dtype);
  kernel_type(spec, "R", node->outputs[0]->dtype);
  kernel_knob(spec, "OPERANDS", operands->n);
  kernel_hook(spec, "op", body.data);
  return spec;
}

static const char *vector_body(Arena *arena, const Node *node, const Operands *operands) {
  Text body = text_new(arena);
  add_unused(&body, operands->n);
  text_add(&body, "vec x = %s;\n  ", elementwise_vector(arena, node, operands->names));
  text_add(&body, "%s", elementwise_epilogue_body(arena, node));
  return body.data;
}

static KernelSpec *vector_spec(Program *program, const Node *node, const Operands *operands) {
  KernelSpec *spec = kernel_spec(program, "elementwise");
  kernel_knob(spec, "OPERANDS", operands->n);
  kernel_hook(spec, "op", vector_body(program->arena, node, operands));
  return spec;
}

static KernelSpec *spec_of(Program *program, const Node *node, const Operands *operands) {
  if (divides(node)) return divide_spec(program, node);
  if (elementwise_on_vectors(node)) return vector_spec(program, node, operands);
  return scalar_spec(program, node, operands);
}

/* ---- calls ---- */

static void set_shape_knobs(KernelSpec *spec, const Broadcast *nest, int operands) {
  static const char *const MOVES[ELEMENTWISE_OPERANDS] = {"A_MOVES", "B_MOVES", "C_MOVES"};
  kernel_knob(spec, "RANK", nest->rank);
  for (int k = 0; k < operands; k++) kernel_knob(spec, MOVES[k], nest->moves[k][nest->rank - 1]);
}

/* Is it a constant without zeros? */
static bool never_zero(const Value *value) {
  size_t size = dtype_size(value->dtype);
  if (!value_is_known(value)) return false;
  for (int64_t i = 0; i < value_count(value); i++) {
    int64_t element = 0;
    memcpy(&element, (const char *)value->data + (size_t)i * size, size);
    if (element == 0) return false;
  }
  return true;
}

/* Operands of the kernel that the node does not have repeat the first. */
static void lower_plain(Program *program, const Node *node) {
  static const char *const STRIDE[ELEMENTWISE_OPERANDS] = {"a_stride", "b_stride", "c_stride"};
  Graph *graph = program->graph;
  const Value *output = node->outputs[0];
  Operands operands = operands_of(node);
  Broadcast nest = broadcast_of(graph, output, operands.n, operands.values);
  KernelSpec *spec = spec_of(program, node, &operands);
  set_shape_knobs(spec, &nest, operands.n);
  Call *call = kernel_call(program, node, spec);
  call_flops_of(call, 1, output);
  call_touches(call, output);
  for (int k = 0; k < (divides(node) ? 2 : ELEMENTWISE_OPERANDS); k++) {
    int operand = k < operands.n ? k : 0;
    operand_value(call, OPERAND[k], operands.values[operand], READ);
    operand_dim_array(call, STRIDE[k], nest.rank, nest.stride[operand]);
    if (k < operands.n) call_touches(call, operands.values[k]);
  }
  operand_value(call, "y", output, WRITE);
  operand_dim_array(call, "shape", nest.rank, nest.extent);
  if (divides(node) && never_zero(operands.values[1])) operand_null(call, "fault");
}

/* ---- blocked tensors ---- */

static LayoutSet layouts(Graph *graph, const Node *node) {
  (void)graph;
  Operands operands = operands_of(node);
  return elementwise_on_vectors(node) ? blocked_layouts(node->outputs[0], operands.n, operands.values) : 0;
}

/* The operands that are constants, in order. */
static void pack(Graph *graph, Node *node) {
  if (!is_blocked(node)) return;
  Operands operands = operands_of(node);
  for (int k = 0; k < operands.n; k++)
    if (value_is_constant(operands.values[k]))
      graph_pack(graph, node, blocked_constant(graph, node->outputs[0], operands.values[k]));
}

static void lower_blocked(Program *program, const Node *node) {
  Operands operands = operands_of(node);
  int constants = 0;
  const char *body = vector_body(program->arena, node, &operands);
  for (int k = 0; k < operands.n; k++)
    if (value_is_constant(operands.values[k])) operands.values[k] = node->packed[constants++];
  lower_blocked_elementwise(program, node, body, node->outputs[0], operands.n, operands.values);
}

/* needs: split_variadic. */
static void lower_elementwise(Program *program, Node *node) {
  if (is_blocked(node))
    lower_blocked(program, node);
  else
    lower_plain(program, node);
}

static bool takes_epilogue(const Node *host, const Node *epilogue) {
  return elementwise_on_vectors(host) && elementwise_is_epilogue(epilogue);
}

/* An operand of the output's type and shape is read element by element, each just before the output's is written. */
static bool overwrites(const Node *node, int input) {
  const Value *x = node->inputs[input], *y = node->outputs[0];
  bool alike = x->dtype == y->dtype && x->channel_block == y->channel_block && shapes_agree(x, y);
  return alike && input < node_own_inputs(node);
}

const KernelFamily family_elementwise = {
    .layouts = layouts,
    .runs_any_plane = true,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .overwrites = overwrites,
    .lower = lower_elementwise,
};
