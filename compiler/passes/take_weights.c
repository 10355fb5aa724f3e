/* SPDX-License-Identifier: MIT */
/*
 * With --weights=mutable the floats of the model become inputs of a given shape, so that no pass computes with their
 * numbers. Those stay constant that say what is computed: single numbers (rank 0), what an operator must know when it
 * is compiled, the parameters of quantised tensors, and what bodies of control flow read.
 */
#include "ir/bodies.h"
#include "ir/mutable.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "passes.h"
#include "shapes/build.h"
#include "support/list.h"

/* Operators whose floats are no weights, or must be known. */
static const bool needs_numbers[N_OPS] = {
    [OP_Clip] = true,
    [OP_ConvInteger] = true,
    [OP_ConvIntegerToFloat] = true,
    [OP_DequantizeLinear] = true,
    [OP_Dropout] = true,
    [OP_DynamicQuantizeMatMul] = true,
    [OP_MatMulInteger] = true,
    [OP_MatMulIntegerToFloat] = true,
    [OP_MatMulNBits] = true,
    [OP_MelWeightMatrix] = true,
    [OP_NonMaxSuppression] = true,
    [OP_Pad] = true,
    [OP_QLinearAdd] = true,
    [OP_QLinearAveragePool] = true,
    [OP_QLinearConcat] = true,
    [OP_QLinearConv] = true,
    [OP_QLinearGlobalAveragePool] = true,
    [OP_QLinearLeakyRelu] = true,
    [OP_QLinearMatMul] = true,
    [OP_QLinearMul] = true,
    [OP_QLinearSigmoid] = true,
    [OP_QLinearSoftmax] = true,
    [OP_QLinearWhere] = true,
    [OP_QuantizeLinear] = true,
    [OP_Range] = true,
    [OP_Resize] = true,
};

/* Operators that take extents or places behind their first input. */
static const bool needs_extents[N_OPS] = {
    [OP_Expand] = true, [OP_Reshape] = true, [OP_Resize] = true, [OP_Slice] = true,
    [OP_Tile] = true,   [OP_TopK] = true,    [OP_Pad] = true};
/* By which exporters compute them. */
static const bool computes_extents[N_OPS] = {
    [OP_Add] = true,     [OP_Cast] = true,     [OP_Ceil] = true, [OP_Concat] = true,   [OP_Div] = true,
    [OP_Floor] = true,   [OP_Gather] = true,   [OP_Max] = true,  [OP_Min] = true,      [OP_Mul] = true,
    [OP_Round] = true,   [OP_Slice] = true,    [OP_Sub] = true,  [OP_Identity] = true, [OP_Reshape] = true,
    [OP_Squeeze] = true, [OP_Unsqueeze] = true};

/* By value id: why it stays constant; NULL: it does not. */
typedef struct Reasons {
  Graph *graph;
  const char **why;
  bool *followed; /* to what it is computed of */
} Reasons;

static void note(Reasons *reasons, const Value *value, const char *why) {
  if (value && value->data && value->id >= 0 && value->id < reasons->graph->n_values &&
      reasons->graph->values[value->id] == value)
    reasons->why[value->id] = why;
}

/* Few constants, of which extents or scales are computed. steps: how many nodes back are looked at. */
static void note_sources(Reasons *reasons, const Value *value, const char *why, int steps) {
  enum { FEW = 16 };
  if (!value || steps == 0 || value->id < 0 || value->id >= reasons->graph->n_values || reasons->followed[value->id])
    return;
  reasons->followed[value->id] = true;
  if (value->data && value_count(value) <= FEW) note(reasons, value, why);
  const Node *producer = value->producer;
  for (int i = 0; producer && computes_extents[producer->op->kind] && i < producer->n_inputs; i++)
    note_sources(reasons, producer->inputs[i], why, steps - 1);
}

static void note_bodies(Reasons *reasons, const Node *node);

static void note_body(Reasons *reasons, const Graph *body) {
  for (int n = 0; n < body->n_nodes; n++) {
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      note(reasons, body->nodes[n]->inputs[i], "a body of control flow reads it");
    note_bodies(reasons, body->nodes[n]);
  }
  for (int i = 0; i < body->n_outputs; i++) note(reasons, body->outputs[i], "a body of control flow returns it");
}

static void note_bodies(Reasons *reasons, const Node *node) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  for (int b = 0; b < count; b++) note_body(reasons, bodies[b]->graph);
  for (int i = 0; count && i < node->n_inputs; i++) note(reasons, node->inputs[i], "control flow begins with it");
}

static void note_node(Reasons *reasons, const Node *node) {
  enum { STEPS = 32 };
  const char *why = arena_format(reasons->graph->arena, "%s needs to know it", node->op->name);
  for (int i = 0; needs_numbers[node->op->kind] && i < node->n_inputs; i++) note(reasons, node->inputs[i], why);
  for (int i = 1; needs_extents[node->op->kind] && i < node->n_inputs; i++)
    note_sources(reasons, node->inputs[i], why, STEPS);
  note_bodies(reasons, node);
}

/* Is it of a type of its own: are its numbers floats that kernels compute with? */
static bool is_float(const Value *value) {
  return value->dtype == RNNCC_F32 || value->dtype == RNNCC_F64 || value->dtype == RNNCC_F16 ||
         value->dtype == RNNCC_BF16;
}

static Reasons reasons_of(Graph *graph) {
  Reasons reasons = {graph, ARENA_ARRAY(graph->arena, const char *, graph->n_values),
                     ARENA_ARRAY(graph->arena, bool, graph->n_values)};
  for (int i = 0; i < graph->n_values; i++) {
    const Value *value = graph->values[i];
    if (!value->data) continue;
    if (value->rank == 0) note(&reasons, value, "it is a single number");
    if (value_count(value) == 0) note(&reasons, value, "it is empty");
  }
  for (int n = 0; n < graph->n_nodes; n++) note_node(&reasons, graph->nodes[n]);
  for (int i = 0; i < graph->n_outputs; i++) note(&reasons, graph->outputs[i], "it is an output");
  for (int i = 0; i < graph->n_states; i++) note(&reasons, graph->states[i].output, "it is a state's new value");
  return reasons;
}

/* A constant with the numbers of a weight, which is then an input. */
static Value *numbers_of(Graph *graph, const Value *weight) {
  Value *given = ARENA_NEW(graph->arena, Value);
  *given = *weight;
  given->id = -1;
  return given;
}

static Value *add_weight(Graph *graph, Value *value, Value *given) {
  MutableWeights *m = graph->mutables;
  *LIST_ADD(graph->arena, m->weights, m->n_weights, m->weight_capacity) = (MutableWeight){value, given};
  value->data = NULL;
  value->is_input = true;
  value->block = m->n_weights;
  return value;
}

/* The weight whose rows `value` has in another order. Several nodes may read it. */
static Value *weight_before_reordering(Graph *graph, const Value *value) {
  const MutableWeights *m = graph->mutables;
  for (int i = 0; i < m->n_weights; i++)
    if (m->weights[i].given == value->reordered->given) return m->weights[i].value;
  Value *weight = graph_value_like(graph, value->name, value->where, value->reordered->given);
  return add_weight(graph, weight, value->reordered->given);
}

/* The front end's order of gates becomes a node. */
static void reorder_by_node(Graph *graph, Value *value) {
  const Reordered *reordered = value->reordered;
  Builder builder = {graph, value->name, value->where};
  const Attribute axis = attribute_int(ATTR_axis, 1);
  Value *inputs[] = {weight_before_reordering(graph, value),
                     graph_constant(graph, value->name, RNNCC_I64, 1, &reordered->n, reordered->rows)};
  Node *gather = build_op(&builder, OP_Gather, 2, inputs, 1, 1, &axis);
  value->data = NULL;
  graph_set_output(gather, 0, value);
}

static void take_weight(Graph *graph, Value *value) {
  if (value->reordered)
    reorder_by_node(graph, value);
  else
    add_weight(graph, value, numbers_of(graph, value));
}

static void keep_constant(Graph *graph, const Value *value, const char *why) {
  MutableWeights *m = graph->mutables;
  *LIST_ADD(graph->arena, m->fixed, m->n_fixed, m->fixed_capacity) = (FixedWeight){value, why};
}

static void check_any(const Graph *graph) {
  const MutableWeights *m = graph->mutables;
  if (m->n_weights) return;
  error_at(LOCATION_FILE(graph->file), EXIT_UNSUPPORTED, "--weights=mutable: the model has no weight that can change");
  for (int i = 0; i < m->n_fixed; i++) note_at(m->fixed[i].value->where, "stays constant: %s", m->fixed[i].why);
  stop_on_errors();
}

/* The front end has inferred as much as it needed, with the numbers of the weights: inference begins anew. */
static void forget_elements(Graph *graph) {
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->producer) graph->values[i]->elements = NULL;
}

/* needs: a graph as the front end leaves it. keeps: nodes, types and shapes. Sets graph->mutables. */
void take_weights(Graph *graph) {
  if (!graph->config->mutable_weights || graph->outer) return;
  graph->mutables = ARENA_NEW(graph->arena, MutableWeights);
  Reasons reasons = reasons_of(graph);
  int n_values = graph->n_values;
  for (int i = 0; i < n_values; i++) {
    Value *value = graph->values[i];
    if (!value->data || !is_float(value)) continue;
    if (reasons.why[i])
      keep_constant(graph, value, reasons.why[i]);
    else
      take_weight(graph, value);
  }
  check_any(graph);
  graph_each(graph, forget_elements);
  sort_nodes(graph);
  graph_renumber(graph);
}
