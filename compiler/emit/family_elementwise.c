/* SPDX-License-Identifier: MIT */
/*
 * Element-wise ops. Those of f32 alone run on vectors (templates/elementwise.c), integer divisions where they can be
 * checked (elementwise_divide.c), all else on single elements (elementwise_scalar.c). Ops of more inputs than a kernel
 * has operands run input by input into the output.
 */
#include <string.h>

#include "emit/broadcast.h"
#include "emit/elementwise.h"
#include "emit/family.h"
#include "support/diagnostics.h"

static const char *const OPERAND[MAX_BROADCAST] = {"a", "b", "c"};

/* One kernel call: output = op(operands), none of them absent. */
typedef struct Step {
  const Node *node;
  const Value *operands[MAX_BROADCAST];
  int n;
  bool last; /* the epilogue goes here */
} Step;

/* ---- kernels ---- */

static const char *vector_hook(Arena *arena, const Step *step, const char *expression) {
  Text body = text_new(arena);
  for (int k = step->n; k < MAX_BROADCAST; k++) text_add(&body, "(void)%s;\n  ", OPERAND[k]);
  text_add(&body, "vec x = %s;\n  ", expression);
  text_add(&body, "%s", step->last ? elementwise_epilogue_body(arena, step->node) : "return x;");
  return body.data;
}

static const char *scalar_hook(Arena *arena, const Step *step, const char *expression) {
  Text body = text_new(arena);
  for (int k = step->n; k < MAX_BROADCAST; k++) text_add(&body, "(void)%s;\n  ", OPERAND[k]);
  text_add(&body, "return (R)(%s);", expression);
  return body.data;
}

/* The operands' names in the places of the node's own inputs. */
static void name_inputs(const Step *step, const char *names[MAX_BROADCAST]) {
  bool chain = step->node->op->max_inputs < 0;
  int own = chain ? step->n : elementwise_own_inputs(step->node), next = 0;
  if (own > MAX_BROADCAST) bug("%s: more inputs than operands", step->node->op->name);
  for (int k = 0; k < own; k++) names[k] = chain || step->node->inputs[k] ? OPERAND[next++] : NULL;
}

static bool divides(const Node *node) {
  bool integer = node->inputs[0]->dtype != RNNCC_F32;
  return integer && (!strcmp(node->op->name, "Div") || !strcmp(node->op->name, "Mod"));
}

static KernelSpec *divide_spec(Emitter *emitter, const Node *node) {
  KernelSpec *spec = kernel_spec(emitter, "elementwise_divide");
  bool modulo = !strcmp(node->op->name, "Mod");
  kernel_type(spec, "T", node->inputs[0]->dtype);
  kernel_knob(spec, "OPERATION", !modulo ? 0 : node_int(node, "fmod") ? 2 : 1);
  return spec;
}

static KernelSpec *scalar_spec(Emitter *emitter, const Step *step, const char *const *names) {
  static const char *const TYPE[MAX_BROADCAST] = {"A", "B", "C"};
  const char *expression = step->n == 1 && step->node->op->max_inputs < 0
                               ? "a"
                               : elementwise_scalar(emitter_arena(emitter), step->node, names);
  if (!expression) bug("no kernel for %s of %s", step->node->op->name, dtype_name(step->operands[0]->dtype));
  KernelSpec *spec = kernel_spec(emitter, "elementwise_scalar");
  for (int k = 0; k < MAX_BROADCAST; k++) kernel_type(spec, TYPE[k], step->operands[k < step->n ? k : 0]->dtype);
  kernel_type(spec, "R", step->node->outputs[0]->dtype);
  kernel_knob(spec, "OPERANDS", step->n);
  kernel_hook(spec, "op", scalar_hook(emitter_arena(emitter), step, expression));
  return spec;
}

static KernelSpec *step_spec(Emitter *emitter, const Step *step) {
  Arena *arena = emitter_arena(emitter);
  const char *names[MAX_BROADCAST] = {NULL};
  if (divides(step->node)) return divide_spec(emitter, step->node);
  name_inputs(step, names);
  bool alone = step->n == 1 && step->node->op->max_inputs < 0; /* Max, Min, Sum of one */
  bool floats = step->node->inputs[0]->dtype == RNNCC_F32;
  const char *expression = alone && floats ? "a" : elementwise_vector(arena, step->node, names);
  if (!expression) return scalar_spec(emitter, step, names);
  KernelSpec *spec = kernel_spec(emitter, "elementwise");
  kernel_knob(spec, "OPERANDS", step->n);
  kernel_hook(spec, "op", vector_hook(arena, step, expression));
  return spec;
}

/* ---- calls ---- */

static void set_shape_knobs(KernelSpec *spec, const Broadcast *nest, int operands) {
  static const char *const MOVES[MAX_BROADCAST] = {"A_MOVES", "B_MOVES", "C_MOVES"};
  kernel_knob(spec, "RANK", nest->rank);
  for (int k = 0; k < operands; k++) kernel_knob(spec, MOVES[k], nest->moves[k][nest->rank - 1]);
}

static double bytes_at_optimum(Graph *graph, const Value *value) {
  return (double)dim_optimum(value_count_dim(graph, value, 0, value->rank)) * (double)dtype_size(value->dtype);
}

/* A kernel's operands beyond the step's repeat the first. */
static void add_call(Emitter *emitter, const Step *step) {
  static const char *const STRIDE[MAX_BROADCAST] = {"a_stride", "b_stride", "c_stride"};
  Graph *graph = emitter_graph(emitter);
  const Value *output = step->node->outputs[0];
  Broadcast nest = broadcast_of(graph, output, step->n, step->operands);
  int operands = divides(step->node) ? 2 : MAX_BROADCAST;
  KernelSpec *spec = step_spec(emitter, step);
  set_shape_knobs(spec, &nest, step->n);
  KernelCall *call = kernel_call(emitter, step->node, spec);
  double bytes = bytes_at_optimum(graph, output);
  for (int k = 0; k < operands; k++) {
    int operand = k < step->n ? k : 0;
    call_value(call, OPERAND[k], step->operands[operand]);
    call_dims(call, STRIDE[k], nest.rank, nest.stride[operand]);
    if (k < step->n) bytes += bytes_at_optimum(graph, step->operands[k]);
  }
  call_value(call, "y", output);
  call_dims(call, "shape", nest.rank, nest.extent);
  call_cost(call, bytes_at_optimum(graph, output) / (double)dtype_size(output->dtype), bytes);
}

/* needs: infer_shapes, plan_memory. One call, or, for ops of any number of inputs, the first two and then each other
 * one into the output. */
static void emit_elementwise(Emitter *emitter, Node *node) {
  Step step = {.node = node};
  int own = elementwise_own_inputs(node), taken = 0;
  bool chain = node->op->max_inputs < 0;
  int at_once = chain ? 2 : MAX_BROADCAST;
  for (; taken < own && step.n < at_once; taken++)
    if (node->inputs[taken]) step.operands[step.n++] = node->inputs[taken];
  step.last = taken == own;
  add_call(emitter, &step);
  for (; taken < own; taken++) {
    step.operands[0] = node->outputs[0];
    step.operands[1] = node->inputs[taken];
    step.last = taken == own - 1;
    add_call(emitter, &step);
  }
}

static bool takes_epilogue(const Node *host, const Node *epilogue) {
  return elementwise_on_vectors(host) && elementwise_is_epilogue(epilogue);
}

const KernelFamily family_elementwise = {
    .name = "elementwise",
    .takes_epilogue = takes_epilogue,
    .emit = emit_elementwise,
};
