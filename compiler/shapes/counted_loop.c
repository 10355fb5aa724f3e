/* SPDX-License-Identifier: MIT */
/*
 * Loops that count: `i = first; while (i < limit) { ...; i = i + 1; }`, as exporters write them: i is carried, the
 * condition about the next iteration is computed in each. How often the body runs is known before the loop then, and i
 * is first + the number of the iteration: the Loop gets a trip count instead of the condition, and carries i no more.
 * So both are known when compiling where the limit is.
 */
#include "ir/bodies.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "shapes/build.h"
#include "shapes/control.h"
#include "shapes/intervals.h"
#include "shapes/loop_bound.h"
#include "shapes/shape.h"
#include "support/list.h"

enum { N_LEADING = 2 }; /* the number of the iteration, and whether to go on */

typedef struct Count {
  int input;    /* i, of the node's inputs and the body's */
  Value *first; /* its value before the loop */
  Value *limit; /* outside the body */
  bool at_least_once;
} Count;

static bool is_one(const Value *value) {
  double number;
  value = skip_conversions(value);
  return value_number(value, &number) && number == 1;
}

static bool is_raised(const Value *value, const Value *by_one) {
  const Node *sum = skip_copies(value)->producer;
  if (!is_op(sum, OP_Add)) return false;
  const Value *a = skip_copies(sum->inputs[0]), *b = skip_copies(sum->inputs[1]);
  return (a == by_one && is_one(b)) || (b == by_one && is_one(a));
}

/* Is it a < b? */
static bool is_less(const Value *condition, const Value **a, const Value **b) {
  const Node *node = skip_conversions(condition)->producer;
  bool less = is_op(node, OP_Less);
  if (!less && !is_op(node, OP_Greater)) return false;
  *a = skip_copies(node->inputs[!less]);
  *b = skip_copies(node->inputs[less]);
  return true;
}

static bool is_one_integer(const Value *value) {
  return value->dtype == RNNCC_I64 && value->rank >= 0 && value_static(value) && value_count(value) == 1;
}

/* What the body reads as `value`, if it is a capture; else NULL. */
static Value *from_outside(const Node *node, const Graph *body, const Value *value) {
  for (int i = body->n_inputs - node->n_captures; i < body->n_inputs; i++)
    if (body->inputs[i] == value) return node->inputs[i];
  return NULL;
}

/* The integer that no iteration changes; NULL: it is none. */
static Value *fixed_integer(Graph *graph, const Node *node, const Graph *body, const Value *value) {
  if (value->data && is_one_integer(value)) return graph_constant(graph, node->name, RNNCC_I64, 0, NULL, value->data);
  Value *outer = from_outside(node, body, value);
  return outer && is_one_integer(outer) ? outer : NULL;
}

/* Does the loop begin whatever the limit is, or if i is below it? */
static bool reads_begin(const Node *node, Count *count) {
  const Value *begins = node->inputs[1], *a, *b;
  count->at_least_once = !begins || known_truth(begins) == 1;
  if (count->at_least_once) return true;
  return is_less(begins, &a, &b) && a == skip_copies(node->inputs[count->input]) && b == skip_copies(count->limit);
}

static bool is_counter(const Node *node, const Graph *body, int input, Count *count) {
  Value *first = node->inputs[input];
  if (!is_raised(body->outputs[input - 1], body->inputs[input])) return false;
  count->input = input;
  count->first = first;
  return first && is_one_integer(first) && first->rank == 0;
}

static bool find_count(Graph *graph, const Node *node, const Graph *body, Count *count) {
  const Value *next, *limit;
  int n_carried = node->n_inputs - node->n_captures - N_LEADING;
  bool fits = n_carried > 0 && body->n_inputs == node->n_inputs && body->n_outputs > n_carried;
  if (!fits || !is_less(body->outputs[0], &next, &limit)) return false;
  for (int input = N_LEADING; input < N_LEADING + n_carried; input++) {
    if (!is_raised(next, body->inputs[input]) || !is_counter(node, body, input, count)) continue;
    count->limit = fixed_integer(graph, node, body, limit);
    return count->limit && reads_begin(node, count);
  }
  return false;
}

/* ---- the loop without its condition ---- */

static Value *integer(const Builder *builder, int64_t number) {
  const void *data = arena_copy(builder->graph->arena, &number, sizeof number);
  return graph_constant(builder->graph, builder->name, RNNCC_I64, 0, NULL, data);
}

static Value *built(const Builder *builder, OpKind op, Value *a, Value *b) {
  return build_op(builder, op, 2, (Value *const[]){a, b}, 1, 0, NULL)->outputs[0];
}

/* What each iteration reads at place i of an axis; NULL: nothing. */
static const Node *indexed(const Graph *body, const Count *count) {
  for (int n = 0; n < body->n_nodes; n++) {
    const Node *node = body->nodes[n];
    if (is_op(node, OP_Gather) && skip_copies(node->inputs[1]) == body->inputs[count->input]) return node;
  }
  return NULL;
}

/* Of n elements, places from -n on, the iteration after 2n of them fails the run, if none does before. NULL: nothing is
 * known of that. */
static Value *build_most(const Builder *builder, const Node *node, const Graph *body, const Count *count) {
  const Node *gather = indexed(body, count);
  Value *of = gather ? from_outside(node, body, skip_copies(gather->inputs[0])) : NULL;
  int axis = of && of->rank > 0 ? normal_axis(node_int(gather, ATTR_axis), of->rank) : -1;
  if (axis < 0) return NULL;
  Value *extent = build_reshape(builder, build_extent(builder, of, axis), 0, NULL);
  return built(builder, OP_Add, built(builder, OP_Add, extent, extent), integer(builder, 1));
}

/* One integer of any rank, as a number. */
static Value *as_number(const Builder *builder, Value *value) {
  return value->rank ? build_reshape(builder, value, 0, NULL) : value;
}

static bool is_zero(const Value *value) {
  double number;
  return value_number(value, &number) && number == 0;
}

/* How often the body runs. The distance of what is brought above the first one is bounded where the limit is, and no
 * difference of integers that are far apart. */
static Value *build_trip(const Builder *builder, const Node *node, const Graph *body, const Count *count) {
  Value *trip = built(builder, OP_Max, as_number(builder, count->limit), count->first), *given = node->inputs[0];
  if (!is_zero(count->first)) trip = built(builder, OP_Sub, trip, count->first);
  if (count->at_least_once) trip = built(builder, OP_Max, trip, integer(builder, 1));
  Value *most = value_interval(builder->graph, trip).most > INT32_MAX ? build_most(builder, node, body, count) : NULL;
  if (most) trip = built(builder, OP_Min, trip, most);
  if (!given) return trip;
  return built(builder, OP_Min, trip, built(builder, OP_Max, as_number(builder, given), integer(builder, 0)));
}

/* What stands for the outer value in the body: a constant, or a capture. */
static Value *inside(Graph *graph, Node *node, Graph *body, Value *outer) {
  for (int i = body->n_inputs - node->n_captures; i < body->n_inputs; i++)
    if (node->inputs[i] == outer) return body->inputs[i];
  if (outer->data) return graph_constant(body, node->name, RNNCC_I64, 0, NULL, outer->data);
  Value *capture = graph_value(body, outer->name, outer->where);
  capture->is_input = true;
  *LIST_APPEND(graph->arena, node->inputs, node->n_inputs) = outer;
  *LIST_APPEND(graph->arena, body->inputs, body->n_inputs) = capture;
  node->n_captures++;
  return capture;
}

/* i is first + the number of the iteration. */
static void replace_inside(Graph *graph, Node *node, Graph *body, const Count *count) {
  Value *i = body->inputs[count->input], *number = body->inputs[0];
  if (is_zero(count->first)) {
    graph_read_instead(body, 0, i, number);
    for (int k = 0; k < body->n_outputs; k++)
      if (body->outputs[k] == i) body->outputs[k] = number;
    return;
  }
  Node **nodes;
  int n_nodes = graph_take_nodes(body, &nodes);
  Node *sum = graph_node(body, op_info(OP_Add), node->name, 2, 1);
  sum->where = node->where;
  sum->inputs[0] = number;
  sum->inputs[1] = inside(graph, node, body, count->first);
  graph_set_output(sum, 0, i);
  i->is_input = false;
  for (int n = 0; n < n_nodes; n++) graph_append(body, nodes[n]);
}

/* What is carried last is first + the trip count. */
static void give_last(const Builder *builder, Node *node, const Count *count, Value *trip) {
  int output = count->input - N_LEADING;
  Value *last = output < node->n_outputs ? node->outputs[output] : NULL;
  if (!last) return;
  Node *sum = built(builder, OP_Add, trip, count->first)->producer;
  graph_set_output(sum, 0, last);
  infer_node(builder->graph, sum);
}

static void remove_output(Node *node, int output) {
  if (output >= node->n_outputs) return;
  values_remove(node->outputs, &node->n_outputs, output);
  for (int i = output; i < node->n_outputs; i++)
    if (node->outputs[i]) graph_set_output(node, i, node->outputs[i]);
}

void count_iterations(Graph *graph, Node *node) {
  const Attribute *given = is_op(node, OP_Loop) ? node_attribute(node, ATTR_body) : NULL;
  if (!given) return;
  Graph *body = given->source ? given->source : given->graph;
  const Builder builder = {graph, node->name, node->where};
  Count count;
  if (!find_count(graph, node, body, &count)) return;
  Value *trip = build_trip(&builder, node, body, &count);
  give_last(&builder, node, &count, trip);
  replace_inside(graph, node, body, &count);
  node->inputs[0] = trip;
  node->inputs[1] = NULL;
  body->outputs[0] = body->inputs[1];
  values_remove(body->inputs, &body->n_inputs, count.input);
  values_remove(body->outputs, &body->n_outputs, count.input - 1);
  values_remove(node->inputs, &node->n_inputs, count.input);
  remove_output(node, count.input - N_LEADING);
}
