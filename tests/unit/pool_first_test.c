/* SPDX-License-Identifier: MIT */
/* pool_first: which means go before which convolutions. Small integers and means of four: all sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "graph/simplify.h"
#include "ir_build.h"
#include "passes.h"
#include "reference/reference.h"

enum { STEPS = 3 };
typedef const char *Steps[STEPS][3]; /* op, inputs, attributes */

static Graph *built(const Steps steps) {
  Graph *graph = build_graph(arena);
  for (int i = 0; i < STEPS && steps[i][0]; i++) build_node(graph, steps[i][0], steps[i][1], steps[i][2], 1);
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  return graph;
}

static const Tensor *run(Graph *graph) {
  const int64_t symbols[] = {5, 2};
  int64_t shape[MAX_RANK];
  const Value *x = graph->inputs[0];
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = dim_eval(x->shape[axis], symbols);
  Tensor *input = tensor_new(arena, RNNCC_F32, x->rank, shape), *output;
  for (int64_t i = 0; i < tensor_count(input); i++) tensor_set_int(input, i, i % 7 - 3);
  const char *wrong = reference_run(arena, graph, (const Tensor *const *)&input, &output, symbols);
  if (wrong) fail_msg("%s", wrong);
  return output;
}

static void expect_order_and_result(const Steps steps, const char *first) {
  Graph *graph = built(steps);
  pool_first(graph);
  verify(graph);
  if (strcmp(graph->nodes[0]->op->name, first) != 0) fail_msg("%s %s", steps[0][1], steps[1][2]);
  const Tensor *before = run(built(steps)), *after = run(graph);
  assert_memory_equal(before->shape, after->shape, sizeof before->shape);
  assert_memory_equal(before->data, after->data, (size_t)tensor_count(before) * sizeof(float));
}

static void a_shrinking_mean_goes_before_a_1x1_convolution(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,1]!", ""}, {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[B,4,5,5] f32[6,2,1,1]! f32=1,2,3,4,5,6", "group=2"},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[3,1]"},
       {"Relu", "@1", ""}},
      {{"Conv", "f32[1,2,T] f32[2,2,1]!", ""}, {"AveragePool", "@0", "kernel_shape=[2] strides=[2]"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_order_and_result(cases[i], "AveragePool");
}

static void other_means_and_convolutions_stay(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,1]!", ""}, {"AveragePool", "@0", "kernel_shape=[2,2]"}}, /* as many pixels */
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,2]!", ""}, {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[1,3,9,9] f32[2,3,1,1]!", "strides=[2,2]"},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,1]! f32=1,2", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2] pads=[1,0,0,0] count_include_pad=1"}},
      {{"Conv", "f32[1,3,5,5] f32[2,3,1,1]!", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"}},
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,1]!", ""}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[1,3,4,4] f32[3,3,1,1]!", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"},
       {"ReduceMax", "@0", "axes=[2,3]"}}, /* somebody else reads it */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Graph *graph = built(cases[i]);
    if (i + 1 == sizeof cases / sizeof *cases) build_output(graph, graph->nodes[1]->outputs[0]);
    pool_first(graph);
    verify(graph);
    if (strcmp(graph->nodes[0]->op->name, "Conv") != 0) fail_msg("case %zu", i);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_shrinking_mean_goes_before_a_1x1_convolution),
      TEST(other_means_and_convolutions_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
