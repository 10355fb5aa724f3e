/* SPDX-License-Identifier: MIT */
/* fold_pads: which Pad becomes part of which window's pads. The result must be bit-identical: with small integers, and
 * averages over four, all sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

/* After folding it must have the same shape, too. */
static void expect_pads_and_result(const Steps steps, int pads) {
  const Tensor *before = run_on_integers(built_of(steps), -5);
  Graph *graph = built_of(steps);
  fold_pads(graph);
  infer_shapes(graph);
  verify(graph);
  if (count_nodes(graph, "Pad") != pads) fail_msg("%s %s, %s %s", steps[0][1], steps[0][2], steps[1][0], steps[1][2]);
  const Tensor *after = run_on_integers(graph, -5);
  assert_memory_equal(before->shape, after->shape, sizeof before->shape);
  assert_memory_equal(before->data, after->data, (size_t)tensor_count(before) * sizeof(float));
}

static void pads_of_zero_become_the_window_s(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Pad", "f32[1,3,5,6]", "pads=[0,0,1,0,0,0,2,0]"}, {"Conv", "@0 f32[2,3,3,3]!", ""}},
      {{"Pad", "f32[1,3,5,6] i64=0,0,1,3,0,0,2,0 f32(0)", ""}, {"Conv", "@0 f32[2,3,3,3]!", "pads=[1,1,0,4]"}},
      {{"Pad", "f32[1,2,T]", "pads=[0,0,2,0,0,1]"}, {"Conv", "@0 f32[2,2,3]!", "auto_pad=VALID strides=[2]"}},
      {{"Pad", "f32[1,3,5]", "pads=[0,0,1,0,0,2]"}, {"Conv", "@0 f32[2,3,3]!", "auto_pad=SAME_LOWER strides=[2]"}},
      {{"Pad", "f32[1,3,5]", "pads=[0,0,1,0,0,0]"},
       {"Pad", "@0", "pads=[0,0,1,0,0,2]"},
       {"Conv", "@1 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,5,6]", "pads=[0,0,1,0,0,0,1,1]"}, {"AveragePool", "@0", "kernel_shape=[2,2]"}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"},
       {"AveragePool", "@0", "kernel_shape=[4] pads=[1,0] count_include_pad=1"}},
      {{"Relu", "f32[1,3,6]", ""},
       {"Pad", "@0", "pads=[0,0,1,0,0,1]"},
       {"MaxPool", "@1", "kernel_shape=[3] strides=[2]"}},
      {{"Clip", "f32[1,3,6] f32(0) f32(6)", ""},
       {"Pad", "@0", "pads=[0,0,1,0,0,1]"},
       {"MaxPool", "@1", "kernel_shape=[2]"}},
      {{"Pad", "f32[1,3,6] i64=0,0,1,0,0,1 f32(-inf)", ""}, {"MaxPool", "@0", "kernel_shape=[3] pads=[1,0]"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_pads_and_result(cases[i], 0);
}

static void what_the_window_would_fill_otherwise_stays(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Pad", "f32[1,3,6] i64=0,0,1,0,0,1 f32(1)", ""}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1] mode=edge"}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,2,6]", "pads=[0,1,0,0,0,0]"}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,6]", "pads=[1,0,0,0,0,0]"}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,0,2,0,0]"}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,-1,0,0,1]"}, {"Conv", "@0 f32[2,3,3]!", ""}},
      {{"Pad", "f32[1,3,T]", "pads=[0,0,1,0,0,1]"}, {"Conv", "@0 f32[2,3,3]!", "auto_pad=SAME_UPPER strides=[2]"}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"}, {"MaxPool", "@0", "kernel_shape=[3]"}},
      {{"Relu", "f32[1,3,6]", ""}, {"Pad", "@0", "pads=[0,0,2,0,0,2]"}, {"MaxPool", "@1", "kernel_shape=[2]"}},
      {{"Relu", "f32[1,3,6]", ""},
       {"Pad", "@0", "pads=[0,0,1,0,0,1]"},
       {"MaxPool", "@1", "kernel_shape=[2] dilations=[7]"}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"}, {"AveragePool", "@0", "kernel_shape=[4] pads=[1,0]"}},
      {{"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"}, {"AveragePool", "@0", "kernel_shape=[2] strides=[3] ceil_mode=1"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_pads_and_result(cases[i], 1);
}

static void every_reader_takes_a_pad_for_itself(void **state) {
  (void)state;
  static const Steps both = {
      {"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"}, {"Conv", "@0 f32[2,3,3]!", ""}, {"Conv", "@0 f32[2,3,1]!", ""}};
  static const Steps one = {
      {"Pad", "f32[1,3,6]", "pads=[0,0,1,0,0,1]"}, {"Conv", "@0 f32[3,3,1]!", ""}, {"Add", "@0 @1", ""}};
  expect_pads_and_result(both, 0);
  expect_pads_and_result(one, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(pads_of_zero_become_the_window_s),
      TEST(what_the_window_would_fill_otherwise_stays),
      TEST(every_reader_takes_a_pad_for_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
