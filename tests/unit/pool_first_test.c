/* SPDX-License-Identifier: MIT */
/* pool_first: which means go before which convolutions. With small integers and means of four, all sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

static void expect_order_and_result(const Steps steps, const char *first) {
  Graph *graph = built_of(steps);
  pool_first(graph);
  verify(graph);
  if (strcmp(graph->nodes[0]->op->name, first) != 0) fail_msg("%s %s", steps[0][1], steps[1][2]);
  const Tensor *before = run_on_integers(built_of(steps), -3), *after = run_on_integers(graph, -3);
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
      {{"Conv", "f32[1,3,5,5] f32[2,3,1,1]! f32=1,2", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,1] count_include_pad=1"}},
      {{"Conv", "f32[1,3,5,5] f32[2,3,1,1]!", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"}},
      {{"Conv", "f32[1,3,4,6] f32[2,3,1,1]!", ""}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[1,3,4,4] f32[3,3,1,1]!", ""},
       {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"},
       {"ReduceMax", "@0", "axes=[2,3]"}}, /* it has another reader */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Graph *graph = built_of(cases[i]);
    if (i + 1 == sizeof cases / sizeof *cases) build_output(graph, graph->nodes[1]->outputs[0]);
    pool_first(graph);
    verify(graph);
    if (!is_op(graph->nodes[0], OP_Conv)) fail_msg("case %zu", i);
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
