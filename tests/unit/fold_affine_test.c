/* SPDX-License-Identifier: MIT */
/* fold_affine: which functions of a channel go into which convolution. The constants are small integers and halves, so
 * all sums are exact, and the result must be bit-identical. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

static Graph *folded(Graph *graph) {
  fold_affine(graph);
  verify(graph);
  return graph;
}

static void expect_nodes_and_result(const Steps steps, int nodes) {
  const Tensor *before = run_on_integers(built_of(steps), -3);
  Graph *graph = folded(built_of(steps));
  const Tensor *after = run_on_integers(graph, -3);
  if (graph->n_nodes != nodes) fail_msg("%s %s: %d nodes", steps[1][0], steps[1][1], graph->n_nodes);
  assert_int_equal(tensor_count(before), tensor_count(after));
  assert_memory_equal(before->data, after->data, (size_t)tensor_count(before) * sizeof(float));
}

#define NORM "f32=2,-3 f32=1,5 f32=4,-6 f32=0.25,4" /* s = 4, -1.5; t = -15, -4 */

static void what_follows_a_convolution_folds_into_it(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "@0 f32[2,1]!", ""}},
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "f32[1,2,1]! @0", ""}},
      {{"Conv", "f32[1,3,6] f32[2,3,3]! f32=3,1", ""}, {"Sub", "f32[2,1]! @0", ""}},
      {{"Conv", "f32[1,3,6] f32[2,3,3]! _", ""}, {"Sub", "@0 f32[2,1]!", ""}},
      {{"Conv", "f32[1,3,6,6] f32[2,3,3,1]!", "pads=[1,0,0,0]"},
       {"Div", "@0 f32(4)", ""},
       {"Add", "@1 f32[2,1,1]!", ""}},
      {{"Conv", "f32[B,4,6] f32[2,2,3]!", "group=2"},
       {"Mul", "@0 f32[2,1]!", ""},
       {"BatchNormalization", "@1 " NORM, "epsilon=0"},
       {"Sub", "@2 f32[1]!", ""}},
      {{"ConvTranspose", "f32[1,4,6] f32[4,3,3]! f32=1,2,3,4,5,6", "group=2 strides=[2]"}, {"Mul", "@0 f32[6,1]!", ""}},
      {{"Mul", "f32[1,4,6] f32[4,1]!", ""}, {"ConvTranspose", "@0 f32[4,3,3]!", "group=2 pads=[1,0]"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_nodes_and_result(cases[i], 1);
}

static void what_stands_before_a_convolution_folds_into_it(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"BatchNormalization", "f32[1,2,6] " NORM, "epsilon=0"}, {"Conv", "@0 f32[3,2,3]!", ""}},
      {{"BatchNormalization", "f32[1,2,6] " NORM, "epsilon=0"}, {"Conv", "@0 f32[4,1,3]! f32=1,2,3,4", "group=2"}},
      {{"Sub", "f32[1,2,6,6] f32[2,1,1]!", ""}, {"Div", "@0 f32(2)", ""}, {"Conv", "@1 f32[3,2,2,2]!", ""}},
      {{"Mul", "f32[1,2,6] f32[2,1]!", ""}, {"Conv", "@0 f32[3,2,3]!", "pads=[1,1]"}}, /* 0 stays 0 */
      {{"Conv", "f32[1,2,6] f32[2,2,3]!", ""},
       {"Add", "@0 f32[2,1]!", ""},
       {"Conv", "@1 f32[2,2,1]!", ""},
       {"Mul", "@2 f32[2,1]!", ""}},
  };
  static const int nodes[] = {1, 1, 1, 1, 2};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_nodes_and_result(cases[i], nodes[i]);
}

static void what_is_no_function_of_a_channel_stays(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "@0 f32[4]!", ""}},       /* varies along W */
      {{"Conv", "f32[1,3,6] f32[1,3,3]!", ""}, {"Mul", "@0 f32[2,1]!", ""}},     /* makes more channels */
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "@0 f32[1,1,2,1]!", ""}}, /* makes another axis */
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Div", "f32[2,1]! @0", ""}},
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Div", "@0 f32=0", ""}}, /* infinite */
      {{"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "@0 @0", ""}},
      {{"Add", "f32[1,2,6] f32[2,1]!", ""}, {"Conv", "@0 f32[3,2,3]!", "pads=[1,1]"}}, /* the pad is 0, not t */
      {{"Add", "f32[1,2,6] f32[2,1]!", ""}, {"Conv", "@0 f32[3,2,3]!", "auto_pad=SAME_UPPER"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_nodes_and_result(cases[i], 2);
}

static void a_value_with_another_reader_is_not_changed(void **state) {
  (void)state;
  static const Steps after = {
      {"Conv", "f32[1,3,6] f32[2,3,3]!", ""}, {"Mul", "@0 f32[2,1]!", ""}, {"Relu", "@0", ""}, {"Add", "@1 @2", ""}};
  static const Steps before = {
      {"Mul", "f32[1,2,6] f32[2,1]!", ""}, {"Conv", "@0 f32[2,2,1]!", ""}, {"Add", "@0 @1", ""}};
  expect_nodes_and_result(after, 4);
  expect_nodes_and_result(before, 3);
}

static void weights_that_come_at_run_time_are_left_alone(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Conv", "f32[1,3,6] f32[2,3,3]", "", 1);
  build_node(graph, "Mul", "@0 f32[2,1]!", "", 1);
  build_output(graph, graph->nodes[1]->outputs[0]);
  infer_shapes(graph);
  assert_int_equal(folded(graph)->n_nodes, 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(what_follows_a_convolution_folds_into_it),     TEST(what_stands_before_a_convolution_folds_into_it),
      TEST(what_is_no_function_of_a_channel_stays),       TEST(a_value_with_another_reader_is_not_changed),
      TEST(weights_that_come_at_run_time_are_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
