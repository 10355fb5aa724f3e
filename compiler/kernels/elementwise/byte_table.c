/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/byte_table.h"

#include "ir/tensor.h"
#include "kernels/elementwise/chain_groups.h"
#include "kernels/elementwise/elementwise.h"
#include "machine/targets.h"
#include "reference/reference.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

enum { BYTES = 256 };

/* Functions of many instructions: polynomials, and a root. */
static bool is_function(const Node *node) {
  static const bool functions[N_OPS] = {
      [OP_Exp] = true,   [OP_Log] = true,   [OP_Erf] = true,      [OP_Sigmoid] = true, [OP_Tanh] = true,
      [OP_Elu] = true,   [OP_Selu] = true,  [OP_Celu] = true,     [OP_Gelu] = true,    [OP_Mish] = true,
      [OP_Swish] = true, [OP_Sin] = true,   [OP_Softplus] = true, [OP_Cos] = true,     [OP_Tan] = true,
      [OP_Asin] = true,  [OP_Acos] = true,  [OP_Atan] = true,     [OP_Sinh] = true,    [OP_Cosh] = true,
      [OP_Asinh] = true, [OP_Acosh] = true, [OP_Atanh] = true,    [OP_Pow] = true,     [OP_Sqrt] = true,
  };
  return functions[node->op->kind];
}

/* A function takes as long as twelve other members: by times of an Emerald Rapids with vectors of 4, 8 and 16 lanes. */
static int work_of(const Node *member) { return is_function(member) ? 13 : 1; }

/* Does a vector of so much work take longer than a load for each of its bytes? By the same times. */
static bool takes_longer(const Graph *graph, int work) {
  enum { OF_LOOP = 16, MEMBERS_OF_LOADS = 3 };
  return MEMBERS_OF_LOADS * work > OF_LOOP + graph->config->target->lanes;
}

/* What the node and its epilogue read but `value` is numbers. */
static bool reads_alone(const Node *node, const Value *value) {
  for (int k = 0; k < node->n_inputs; k++) {
    const Value *input = node->inputs[k];
    if (input && input != value && !elementwise_is_literal(input)) return false;
  }
  return true;
}

/* The members of the node, which reads `value` alone; 0 if a chain with a table cannot have it. */
static int members_of(const Node *node, const Value *value) {
  bool fits = may_chain(node) && reads_alone(node, value) && shapes_agree(node->outputs[0], value);
  return fits ? 1 + node->n_epilogue : 0;
}

const Node *table_end(const Graph *graph, const UseList *uses, const Node *first) {
  const Value *value = node_own_inputs(first) ? first->inputs[0] : NULL;
  const Node *end = NULL;
  int work = 0, members = 0;
  if (!value || !dtype_is_byte(value->dtype)) return NULL;
  for (const Node *node = first; node && members_of(node, value); node = uses->single[value->id]) {
    members += members_of(node, value);
    if (members > MAX_CHAIN_MEMBERS) break;
    work += work_of(node);
    for (int k = 0; k < node->n_epilogue; k++) work += work_of(node->epilogue[k]);
    value = node->outputs[0];
    if (dtype_is_byte(value->dtype) && takes_longer(graph, work)) end = node;
  }
  return end;
}

bool chain_is_table(const Graph *graph, const Node *chain) {
  if (chain->n_inputs != 1 || chain->n_outputs != 1) return false;
  const Value *x = chain->inputs[0], *y = chain->outputs[0];
  bool bytes = dtype_is_byte(x->dtype) && dtype_is_byte(y->dtype);
  int work = 0;
  for (int m = 0; m < chain->n_members; m++) work += work_of(chain->members[m]);
  return bytes && shapes_agree(x, y) && x->channel_block == y->channel_block && takes_longer(graph, work);
}

/* ---- the results ---- */

/* The value as a row of BYTES. */
static Value *row_of(Graph *graph, const Value *value) {
  Value *row = arena_copy(graph->arena, value, sizeof *value);
  row->rank = 1;
  row->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  row->shape[0] = dim_const(graph->dims, BYTES);
  row->data = NULL;
  return row;
}

static Tensor *all_bytes(Graph *graph, DType dtype) {
  static const int64_t shape[] = {BYTES};
  Tensor *tensor = tensor_new(graph->arena, dtype, 1, shape);
  for (int i = 0; i < BYTES; i++) ((uint8_t *)tensor->data)[i] = (uint8_t)i;
  return tensor;
}

static Tensor *number(Graph *graph, const Value *value) {
  Tensor *tensor = tensor_new(graph->arena, value->dtype, 0, NULL);
  tensor_set(tensor, 0, value_element(value, 0));
  return tensor;
}

/* What a member reads: the chain's input, a result of the first `m` members, or a number. */
static const Tensor *operand(Graph *graph, const Node *chain, Tensor *const *results, int m, const Value *value) {
  if (value == chain->inputs[0]) return all_bytes(graph, value->dtype);
  for (int i = 0; i < m; i++)
    if (chain->members[i]->outputs[0] == value) return results[i];
  return number(graph, value);
}

static Tensor *result(Graph *graph, const Node *chain, Tensor *const *results, int m) {
  Node *member = arena_copy(graph->arena, chain->members[m], sizeof *member);
  const Tensor **inputs = ARENA_ARRAY(graph->arena, const Tensor *, member->n_inputs);
  Value **values = ARENA_ARRAY(graph->arena, Value *, member->n_inputs), *output = row_of(graph, member->outputs[0]);
  for (int k = 0; k < member->n_inputs; k++) {
    const Value *value = member->inputs[k];
    inputs[k] = value ? operand(graph, chain, results, m, value) : NULL;
    values[k] = !value || !inputs[k]->rank ? member->inputs[k] : row_of(graph, value);
  }
  member->inputs = values;
  member->outputs = &output;
  Tensor *made;
  const char *wrong = reference_node(graph->arena, member, inputs, &made, NULL);
  if (wrong) bug("%s of each byte: %s", member->op->name, wrong);
  return made;
}

Value *chain_table(Graph *graph, const Node *chain) {
  static const int64_t shape[] = {BYTES};
  Tensor **results = ARENA_ARRAY(graph->arena, Tensor *, chain->n_members);
  for (int m = 0; m < chain->n_members; m++) results[m] = result(graph, chain, results, m);
  return graph_constant(graph, "table", RNNCC_U8, 1, shape, results[chain->n_members - 1]->data);
}
