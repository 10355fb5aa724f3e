/* SPDX-License-Identifier: MIT */
/* Chains of element-wise nodes: elementwise_chain.c, on blocked tensors elementwise_chain_blocked.c, and map_bytes.c.
 */
#include "ir/family.h"
#include "kernels/elementwise/blocked_elementwise.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/byte_table.h"
#include "kernels/elementwise/chain.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

const OpInfo op_chain = {
    .kind = OP_Chain,
    .name = "Chain",
    .min_inputs = 0,
    .max_inputs = -1,
    .min_outputs = 1,
    .max_outputs = -1,
    .attributes = (const AttributeSpec[]){{0}},
    .layout = LAYOUT_OBLIVIOUS,
    .family = &family_chain,
};

/* ---- the body of the kernel's hook ---- */

/* By layout: how input `k` is read, and the statement that writes `name` to output `k`. */
typedef struct ChainAccess {
  ChainLoad *load;
  const char *(*store)(Graph *graph, const Node *chain, int k, const char *name);
} ChainAccess;

/* What the loads and stores of a type are called: chain_load_u8. */
static const char *suffix_of(const Value *value) {
  return value->dtype == RNNCC_BOOL ? "_mask"
         : value->dtype == RNNCC_U8 ? "_u8"
         : value->dtype == RNNCC_I8 ? "_s8"
                                    : "";
}

static const char *type_of(const Value *value) { return value->dtype == RNNCC_BOOL ? "vmask" : "vec"; }

/* The name or literal of the value, which is a result of the first `n` members or an input of the chain. */
static const char *name_of(Graph *graph, const Node *chain, int n, const Value *value) {
  for (int m = 0; m < n; m++)
    if (chain->members[m]->outputs[0] == value) return arena_format(graph->arena, "v%d", m);
  if (elementwise_is_literal(value)) return elementwise_literal(graph->arena, value);
  for (int k = 0; k < chain->n_inputs; k++)
    if (chain->inputs[k] == value) return arena_format(graph->arena, "i%d", k);
  bug("a chain has no such operand");
}

static void add_member(Graph *graph, Text *body, const Node *chain, int m) {
  const Node *member = chain->members[m];
  const char *inputs[3] = {NULL, NULL, NULL};
  for (int k = 0; k < member->n_inputs && k < 3; k++)
    if (member->inputs[k]) inputs[k] = name_of(graph, chain, m, member->inputs[k]);
  text_add(body, "%s v%d = %s;\n  ", type_of(member->outputs[0]), m, elementwise_chained(graph->arena, member, inputs));
}

void chain_compute(Graph *graph, Text *body, const Node *chain, ChainLoad *load) {
  int n_inputs = node_own_inputs(chain);
  for (int k = 0; k < n_inputs; k++)
    text_add(body, "%s i%d = %s;\n  ", type_of(chain->inputs[k]), k, load(graph, chain, k));
  for (int m = 0; m < chain->n_members; m++) add_member(graph, body, chain, m);
}

static const char *chain_body(Graph *graph, const Node *chain, const ChainAccess *access) {
  Text body = text_new(graph->arena);
  chain_compute(graph, &body, chain, access->load);
  for (int k = 0; k < chain->n_outputs; k++)
    text_add(&body, "%s%s", k ? "\n  " : "",
             access->store(graph, chain, k, name_of(graph, chain, chain->n_members, chain->outputs[k])));
  return body.data;
}

/* ---- calls ---- */

static void set_cost(Call *call, const Node *chain) {
  call_flops_of(call, chain->n_members, chain->outputs[0]);
  for (int k = 0; k < chain->n_inputs; k++) call_touches(call, chain->inputs[k]);
  for (int k = 0; k < chain->n_outputs; k++) call_touches(call, chain->outputs[k]);
}

/* ---- row-major tensors ---- */

static Broadcast nest_of(Graph *graph, const Node *chain) {
  return broadcast_of(graph, chain->outputs[0], chain->n_inputs, (const Value *const *)chain->inputs);
}

const char *chain_row_load(Graph *graph, const Value *input, int k, bool moves) {
  if (!moves) return arena_format(graph->arena, "chain_load_one%s(in[%d])", suffix_of(input), k);
  return arena_format(graph->arena, "chain_load%s(in[%d], i, n)", suffix_of(input), k);
}

static const char *load_plain(Graph *graph, const Node *chain, int k) {
  Broadcast nest = nest_of(graph, chain);
  return chain_row_load(graph, chain->inputs[k], k, nest.moves[k][nest.rank - 1]);
}

static const char *store_plain(Graph *graph, const Node *chain, int k, const char *name) {
  return arena_format(graph->arena, "chain_store%s(out[%d], i, n, %s);", suffix_of(chain->outputs[k]), k, name);
}

static void call_byte_strides(Graph *graph, Call *call, const Node *chain, const Broadcast *nest) {
  const Dim *strides[MAX_CHAIN_OPERANDS * MAX_RANK];
  int n = 0;
  for (int k = 0; k < chain->n_inputs; k++) {
    const Dim *size = dim_const(graph->dims, (int64_t)dtype_size(chain->inputs[k]->dtype));
    for (int axis = 0; axis < nest->rank; axis++) strides[n++] = dim_mul(graph->dims, nest->stride[k][axis], size);
  }
  operand_dim_array(call, "strides", n, strides);
}

static KernelSpec *spec_of(Program *program, const char *name, const Node *chain, const ChainAccess *access) {
  KernelSpec *spec = kernel_spec(program, name);
  kernel_knob(spec, "OPERANDS", chain->n_inputs);
  kernel_knob(spec, "RESULTS", chain->n_outputs);
  kernel_hook(spec, "chain", chain_body(program->graph, chain, access));
  return spec;
}

static void lower_plain(Program *program, const Node *chain) {
  static const ChainAccess access = {load_plain, store_plain};
  Graph *graph = program->graph;
  Broadcast nest = nest_of(graph, chain);
  KernelSpec *spec = spec_of(program, "elementwise_chain", chain, &access);
  kernel_knob(spec, "RANK", nest.rank);
  Call *call = kernel_call(program, chain, spec);
  int64_t widths[MAX_CHAIN_MEMBERS];
  for (int k = 0; k < chain->n_outputs; k++) widths[k] = (int64_t)dtype_size(chain->outputs[k]->dtype);
  operand_value_array(call, "operands", chain->n_inputs, chain->inputs, READ);
  operand_value_array(call, "results", chain->n_outputs, chain->outputs, WRITE);
  operand_dim_array(call, "shape", nest.rank, nest.extent);
  call_byte_strides(graph, call, chain, &nest);
  operand_integer_array(call, "widths", chain->n_outputs, widths);
  set_cost(call, chain);
}

/* ---- blocked tensors ---- */

bool chain_runs_blocked(const Value *y, int n, Value *const *inputs) {
  return can_be_blocked(y) && blocked_operands_fit(y, n, (const Value *const *)inputs);
}

static LayoutSet layouts(Graph *graph, const Node *chain) {
  (void)graph;
  const Value *y = chain->outputs[0];
  for (int k = 0; k < chain->n_outputs; k++)
    if (!can_be_blocked(chain->outputs[k])) return 0;
  return can_be_blocked(y) ? blocked_layouts(y, chain->n_inputs, (const Value *const *)chain->inputs) : 0;
}

/* The constants among the inputs, in order. */
static void pack(Graph *graph, Node *chain) {
  if (chain_is_table(graph, chain)) graph_pack(graph, chain, chain_table(graph, chain));
  if (!is_blocked(chain)) return;
  for (int k = 0; k < chain->n_inputs; k++)
    if (value_is_constant(chain->inputs[k]))
      graph_pack(graph, chain, blocked_constant(graph, chain->outputs[0], chain->inputs[k]));
}

static const char *load_blocked(Graph *graph, const Node *chain, int k) {
  BlockedWalk walk = blocked_walk(graph, chain->outputs[0], chain->inputs[k]);
  const char *load = walk.channels ? "vload" : "vbroadcast_load", *element = walk.channels ? " + at" : " + pixel";
  if (dtype_is_byte(chain->inputs[k]->dtype))
    return arena_format(graph->arena, "chain_load%s((const char *)in[%d], %s, LANES)", suffix_of(chain->inputs[k]), k,
                        walk.pixels ? "at" : "0");
  return arena_format(graph->arena, "%s(in[%d]%s)", load, k, walk.pixels ? element : "");
}

static const char *store_blocked(Graph *graph, const Node *chain, int k, const char *name) {
  if (dtype_is_byte(chain->outputs[k]->dtype))
    return arena_format(graph->arena, "chain_store%s((char *)out[%d], at, LANES, %s);", suffix_of(chain->outputs[k]), k,
                        name);
  return arena_format(graph->arena, "vstore(out[%d] + at, %s);", k, name);
}

/* The inputs, constants as packed. */
static void packed_inputs(const Node *chain, Value **inputs) {
  int constants = 0;
  for (int k = 0; k < chain->n_inputs; k++)
    inputs[k] = value_is_constant(chain->inputs[k]) ? chain->packed[constants++] : chain->inputs[k];
}

/* In the kernel strides are in floats. Blocks are whole vectors, so those of bytes are, too. */
static const Dim *in_floats(const Graph *graph, const Value *value, const Dim *stride) {
  return dtype_is_byte(value->dtype) ? dim_div(graph->dims, stride, dim_const(graph->dims, sizeof(float))) : stride;
}

static void call_walks(const Graph *graph, Call *call, const Node *chain) {
  const Dim *images[MAX_CHAIN_OPERANDS + MAX_CHAIN_MEMBERS], *blocks[MAX_CHAIN_OPERANDS + MAX_CHAIN_MEMBERS];
  int n = 0;
  for (int k = 0; k < chain->n_inputs; k++, n++) {
    BlockedWalk walk = blocked_walk(graph, chain->outputs[0], chain->inputs[k]);
    images[n] = in_floats(graph, chain->inputs[k], walk.image);
    blocks[n] = in_floats(graph, chain->inputs[k], walk.block);
  }
  for (int k = 0; k < chain->n_outputs; k++, n++) {
    Blocked b = blocked_of(graph, chain->outputs[k]);
    images[n] = in_floats(graph, chain->outputs[k], b.image);
    blocks[n] = in_floats(graph, chain->outputs[k], b.plane);
  }
  operand_extent_array(call, "image_strides", n, images);
  operand_extent_array(call, "block_strides", n, blocks);
}

static void lower_blocked(Program *program, const Node *chain) {
  static const ChainAccess access = {load_blocked, store_blocked};
  Graph *graph = program->graph;
  Blocked b = blocked_of(graph, chain->outputs[0]);
  Value *inputs[MAX_CHAIN_OPERANDS];
  Call *call = kernel_call(program, chain, spec_of(program, "elementwise_chain_blocked", chain, &access));
  packed_inputs(chain, inputs);
  operand_value_array(call, "operands", chain->n_inputs, inputs, READ);
  operand_value_array(call, "results", chain->n_outputs, chain->outputs, WRITE);
  operand_dim(call, "n", chain->outputs[0]->shape[0]);
  operand_integer(call, "blocks", b.blocks);
  operand_extent(call, "pixels", blocked_vectors(graph, &b));
  call_walks(graph, call, chain);
  set_cost(call, chain);
}

/* ---- bytes of bytes ---- */

static void plain_bytes(Graph *graph, Call *call, const Value *y) {
  const Dim *count = value_count_dim(graph, y, 0, y->rank);
  operand_integer(call, "images", 1);
  operand_dim(call, "count", count);
  operand_dim(call, "x_image", count);
  operand_dim(call, "y_image", count);
}

/* Elements that stand for no channel are mapped, too. */
static void blocked_bytes(Graph *graph, Call *call, const Value *x, const Value *y) {
  Blocked of_x = blocked_of(graph, x), of_y = blocked_of(graph, y);
  operand_dim(call, "images", y->shape[0]);
  operand_dim(call, "count", dim_mul(graph->dims, dim_const(graph->dims, of_y.blocks), of_y.plane));
  operand_dim(call, "x_image", of_x.image);
  operand_dim(call, "y_image", of_y.image);
}

static void lower_table(Program *program, const Node *chain) {
  const Value *x = chain->inputs[0], *y = chain->outputs[0];
  Call *call = kernel_call(program, chain, kernel_spec(program, "map_bytes"));
  operand_value(call, "x", x, READ);
  operand_value(call, "table", chain->packed[0], READ);
  operand_value(call, "y", y, WRITE);
  if (is_blocked(chain))
    blocked_bytes(program->graph, call, x, y);
  else
    plain_bytes(program->graph, call, y);
  set_cost(call, chain);
}

static void lower_chain(Program *program, Node *chain) {
  if (chain_is_table(program->graph, chain))
    lower_table(program, chain);
  else if (is_blocked(chain))
    lower_blocked(program, chain);
  else
    lower_plain(program, chain);
}

/* All operands of a vector are read before it is written. */
static bool overwrites(const Node *chain, int input) {
  const Value *x = chain->inputs[input], *y = chain->outputs[0];
  return x->dtype == y->dtype && x->channel_block == y->channel_block && shapes_agree(x, y);
}

const KernelFamily family_chain = {
    .layouts = layouts,
    .runs_bytes = true,
    .runs_any_plane = true,
    .pack = pack,
    .overwrites = overwrites,
    .lower = lower_chain,
};
