/* SPDX-License-Identifier: MIT */
/*
 * `while i < limit`: what rises by a constant step in every iteration, the number of the iteration or a carried value,
 * is below a limit that no iteration changes. The condition that decides about iteration n + 1 is computed in iteration
 * n, so there is one iteration more than it holds.
 */
#include "shapes/loop_bound.h"

#include "ir/op.h"
#include "ir/tensor.h"
#include "shapes/intervals.h"
#include "support/numbers.h"

/* Of first values, steps and limits: no sum of them wraps around in i32. */
enum { MOST = 1 << 28 };

typedef struct Loop {
  Graph *graph;
  const Node *node;
  const Graph *body;
} Loop;

/* first + n * step in iteration n, or more. */
typedef struct Rising {
  int64_t first, step;
} Rising;

static int input_index(const Graph *body, const Value *value) {
  for (int i = 0; i < body->n_inputs; i++)
    if (body->inputs[i] == value) return i;
  return -1;
}

const Value *skip_copies(const Value *value) {
  while (is_op(value->producer, OP_Identity)) value = value->producer->inputs[0];
  return value;
}

const Value *skip_conversions(const Value *value) {
  value = skip_copies(value);
  while (is_op(value->producer, OP_Cast) || is_op(value->producer, OP_CastLike))
    value = skip_copies(value->producer->inputs[0]);
  return value;
}

/* The maximum of what no iteration changes: a constant, or a captured value. INT64_MAX: there is none. */
static int64_t limit_of(const Loop *loop, const Value *value) {
  value = skip_copies(value);
  int i = input_index(loop->body, value), captures = loop->body->n_inputs - loop->node->n_captures;
  if (value->data) return value_interval(loop->graph, value).most;
  if (i < captures) return INT64_MAX;
  return value_interval(loop->graph, loop->node->inputs[loop->node->n_inputs - loop->body->n_inputs + i]).most;
}

/* The constant that Add adds to `to`; 0: it is none, or not positive. Of conversions' results 1 alone is known. */
static int64_t step_of(const Value *sum, const Value *to) {
  double step;
  if (!is_op(sum->producer, OP_Add)) return 0;
  const Value *a = skip_copies(sum->producer->inputs[0]), *b = skip_copies(sum->producer->inputs[1]);
  if (a != to && b != to) return 0;
  const Value *other = a == to ? b : a;
  if (value_number(skip_conversions(other), &step) && step == 1) return 1;
  return value_number(other, &step) && step > 0 && step < MOST ? (int64_t)step : 0;
}

/* At the begin of the iteration: its number, or what is carried. */
static bool is_rising_input(const Loop *loop, const Value *value, Rising *rising) {
  int i = input_index(loop->body, value);
  *rising = (Rising){0, 1};
  if (i < 2 || i >= loop->body->n_inputs - loop->node->n_captures) return i == 0;
  const Value *initial = loop->node->inputs[i], *next = skip_copies(loop->body->outputs[i - 1]);
  *rising = (Rising){value_interval(loop->graph, initial).least, step_of(next, value)};
  bool wide = initial->dtype == RNNCC_I64 || initial->dtype == RNNCC_I32;
  return wide && rising->step > 0 && rising->first > -MOST && rising->first < MOST;
}

/* The same, or a constant more. */
static bool is_rising(const Loop *loop, const Value *value, Rising *rising) {
  value = skip_copies(value);
  if (is_rising_input(loop, value, rising)) return true;
  for (int k = 0; is_op(value->producer, OP_Add) && k < 2; k++) {
    const Value *base = skip_copies(value->producer->inputs[k]);
    int64_t more = step_of(value, base);
    if (more == 0 || !is_rising_input(loop, base, rising)) continue;
    rising->first += more;
    return true;
  }
  return false;
}

/* Iterations while `low` < `high`, or with `equal` also where they are equal. */
static int64_t most_while_below(const Loop *loop, const Value *low, const Value *high, bool equal) {
  Rising rising;
  int64_t limit = limit_of(loop, high);
  if (limit >= MOST || !is_rising(loop, low, &rising)) return INT64_MAX;
  int64_t distance = max_int(limit, -2 * MOST) + equal - rising.first;
  return 1 + (distance > 0 ? (distance + rising.step - 1) / rising.step : 0);
}

/* Does an If give false where its condition is false? So exporters write `a and b`: if a then b else false. */
static bool is_and(const Node *node, int output) {
  const Attribute *otherwise = is_op(node, OP_If) ? node_attribute(node, ATTR_else_branch) : NULL;
  if (!otherwise || output >= otherwise->graph->n_outputs) return false;
  const Value *value = skip_copies(otherwise->graph->outputs[output]);
  double number;
  return value_number(value, &number) && number == 0;
}

static int64_t most_while(const Loop *loop, const Value *condition) {
  const Value *truth = skip_conversions(condition);
  const Node *made = truth->producer;
  if (is_and(made, truth->producer_output)) return most_while(loop, made->inputs[0]);
  if (!made || made->n_inputs != 2) return INT64_MAX;
  const Value *a = made->inputs[0], *b = made->inputs[1];
  if (is_op(made, OP_And)) return min_int(most_while(loop, a), most_while(loop, b));
  if (is_op(made, OP_Less)) return most_while_below(loop, a, b, false);
  if (is_op(made, OP_LessOrEqual)) return most_while_below(loop, a, b, true);
  if (is_op(made, OP_Greater)) return most_while_below(loop, b, a, false);
  if (is_op(made, OP_GreaterOrEqual)) return most_while_below(loop, b, a, true);
  return INT64_MAX;
}

int64_t most_by_condition(Graph *graph, const Node *node, const Graph *body) {
  return most_while(&(Loop){graph, node, body}, body->outputs[0]);
}
