/* SPDX-License-Identifier: MIT */
/* Graphs of a few steps on one f32 input, and their results: for passes that must keep the result. */
#ifndef RNNCC_TEST_STEPS_H
#define RNNCC_TEST_STEPS_H

#include <math.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "passes.h"
#include "reference/reference.h"

enum { MAX_STEPS = 12 };
typedef const char *Steps[MAX_STEPS][3]; /* op, inputs, attributes; in the notation of ir_build.h */

/* Adds a node for each step; the last one makes the output. */
static inline void add_steps(Graph *graph, const Steps steps) {
  for (int i = 0; i < MAX_STEPS && steps[i][0]; i++) build_node(graph, steps[i][0], steps[i][1], steps[i][2], 1);
}

static inline Graph *build_end(Graph *graph) {
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  return graph;
}

static inline Graph *built_of(const Steps steps) {
  Graph *graph = build_graph(arena);
  add_steps(graph, steps);
  return build_end(graph);
}

/* Of steps behind a first node, which makes x of this type. */
static inline Graph *built_behind(const char *type, const Steps steps) {
  Graph *graph = build_graph(arena);
  build_node(graph, "Neg", type, "", 1);
  add_steps(graph, steps);
  return build_end(graph);
}

/* The one input; T is 5 and B is 2. */
static const int64_t STEPS_SYMBOLS[] = {5, 2};

static inline Tensor *new_input(const Graph *graph) {
  int64_t shape[MAX_RANK];
  const Value *x = graph->inputs[0];
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = dim_eval(x->shape[axis], STEPS_SYMBOLS);
  return tensor_new(arena, RNNCC_F32, x->rank, shape);
}

static inline const Tensor *result_of(Graph *graph, const Tensor *input) {
  Tensor *output;
  const char *wrong = reference_run(arena, graph, &input, &output, STEPS_SYMBOLS);
  if (wrong) fail_msg("%s", wrong);
  return output;
}

/* The result for seven integers from `least` on, repeated. */
static inline const Tensor *run_on_integers(Graph *graph, int least) {
  Tensor *input = new_input(graph);
  for (int64_t i = 0; i < tensor_count(input); i++) tensor_set_int(input, i, least + i % 7);
  return result_of(graph, input);
}

/* The result where element i is at(i). */
static inline const Tensor *run_on(Graph *graph, double (*at)(int64_t)) {
  Tensor *input = new_input(graph);
  for (int64_t i = 0; i < tensor_count(input); i++) tensor_set(input, i, at(i));
  return result_of(graph, input);
}

static inline void expect_within(const Tensor *a, const Tensor *b, double bound) {
  assert_int_equal(tensor_count(a), tensor_count(b));
  for (int64_t i = 0; i < tensor_count(a); i++)
    if (!(fabs(tensor_get(a, i) - tensor_get(b, i)) <= bound))
      fail_msg("element %lld: %a and %a", (long long)i, tensor_get(a, i), tensor_get(b, i));
}

#endif
