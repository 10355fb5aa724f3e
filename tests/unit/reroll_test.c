/* SPDX-License-Identifier: MIT */
/* The parts of reroll_rnn: strips, formulas over strips, sums of products, and joining of steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "passes.h"
#include "reroll/affine.h"
#include "reroll/pattern.h"
#include "reroll/steps.h"
#include "shapes/shape.h"

/* A graph of {op, inputs, attributes}, one output a node; the last is the graph's. */
static Graph *built(const char *const (*nodes)[3], int n) {
  Graph *graph = build_graph(arena);
  for (int i = 0; i < n; i++) build_node(graph, nodes[i][0], nodes[i][1], nodes[i][2], 1);
  build_output(graph, graph->nodes[n - 1]->outputs[0]);
  infer_shapes(graph);
  return graph;
}
#define BUILT(...)                                                                                                     \
  built((const char *const[][3]){__VA_ARGS__}, sizeof((const char *const[][3]){__VA_ARGS__}) / (3 * sizeof(char *)))

static Strip whole(Value *value) {
  Strip strip;
  assert_true(strip_whole(value, &strip));
  return strip;
}

static Strip result(const Graph *graph) { return whole(graph->outputs[0]); }

static void expect_strip(const Strip *strip, const Value *value, int64_t first, int64_t count, int axis, int64_t step) {
  assert_ptr_equal(strip->value, value);
  assert_int_equal(strip->first, first);
  assert_int_equal(strip->count, count);
  assert_int_equal(strip->axis, axis);
  if (axis >= 0) assert_int_equal(strip->step, step);
}

static void expect_origin(Graph *graph, int64_t first, int64_t count, int axis, int64_t step) {
  Strip origin = strip_origin(graph, result(graph), NULL);
  expect_strip(&origin, graph->inputs[0], first, count, axis, step);
}

/* ---- strips ---- */

static void columns_are_found_behind_split_and_slice(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *split = build_node(graph, "Split", "f32[B,12]", "axis=-1", 3);
  Node *slice = build_node(graph, "Slice", "@0", "axes=[1] starts=[1] ends=[3]", 1);
  slice->inputs[0] = split->outputs[2];
  build_output(graph, slice->outputs[0]);
  infer_shapes(graph);
  expect_origin(graph, 9, 2, -1, 0);
}

static void a_step_is_found_behind_gather_slice_and_views(void **state) {
  (void)state;
  expect_origin(BUILT({"Gather", "f32[5,B,4] i64(3)", "axis=0"}), 0, 4, 0, 3);
  expect_origin(BUILT({"Gather", "f32[B,5,4] i64(-1)", "axis=1"}), 0, 4, 1, 4);
  expect_origin(BUILT({"Slice", "f32[5,B,4]", "axes=[0] starts=[2] ends=[3]"}, {"Squeeze", "@0", "axes=[0]"}), 0, 4, 0,
                2);
  expect_origin(BUILT({"Slice", "f32[9,B,4]", "axes=[0] starts=[2] ends=[8]"}, {"Gather", "@0 i64=3", "axis=0"}), 0, 4,
                0, 5);
  expect_origin(BUILT({"Unsqueeze", "f32[5,B,4]", "axes=[1]"}, {"Gather", "@0 i64(1)", "axis=0"}), 0, 4, 0, 1);
}

static void every_second_step_counts_from_the_sliced_start(void **state) {
  (void)state;
  expect_origin(BUILT({"Slice", "f32[9,B,4] i64=1 i64=9 i64=0 i64=2", ""}, {"Gather", "@0 i64(3)", "axis=0"}), 0, 4, 0,
                7);
}

static void a_strip_of_one_piece_is_found_in_it(void **state) {
  (void)state;
  Graph *graph = BUILT({"Concat", "f32[B,4] f32[B,6]", "axis=1"}, {"Slice", "@0", "axes=[1] starts=[5] ends=[9]"});
  Strip origin = strip_origin(graph, result(graph), NULL);
  expect_strip(&origin, graph->inputs[1], 1, 4, -1, 0);
  graph = BUILT({"Concat", "f32[2,B,4] f32[3,B,4]", "axis=0"}, {"Gather", "@0 i64(4)", "axis=0"});
  origin = strip_origin(graph, result(graph), NULL);
  expect_strip(&origin, graph->inputs[1], 0, 4, 0, 2);
}

static void a_strip_of_two_pieces_stays_and_has_parts(void **state) {
  (void)state;
  Graph *graph = BUILT({"Concat", "f32[B,4] f32[B,6]", "axis=1"}, {"Slice", "@0", "axes=[1] starts=[3] ends=[6]"});
  Strip origin = strip_origin(graph, result(graph), NULL), parts[2];
  expect_strip(&origin, graph->nodes[0]->outputs[0], 3, 3, -1, 0);
  assert_int_equal(strip_parts(graph, result(graph), NULL, 2, parts), 2);
  expect_strip(&parts[0], graph->inputs[0], 3, 1, -1, 0);
  expect_strip(&parts[1], graph->inputs[1], 0, 2, -1, 0);
  assert_int_equal(strip_parts(graph, result(graph), NULL, 1, parts), 0);
}

static void what_changes_rows_or_columns_is_an_origin(void **state) {
  (void)state;
  static const char *const others[][3] = {
      {"Transpose", "f32[5,B,4]", "perm=[1,0,2]"},
      {"Reshape", "f32[6,4] i64=3,8", ""},
      {"Reshape", "f32[6,4] i64=2,3,4", ""},
      {"Slice", "f32[5,B,4]", "axes=[0] starts=[1] ends=[3]"},
      {"Slice", "f32[B,4] i64=3 i64=-5 i64=1 i64=-1", ""},
      {"Relu", "f32[B,4]", ""},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    Graph *graph = BUILT({others[i][0], others[i][1], others[i][2]});
    Strip origin = strip_origin(graph, result(graph), NULL);
    if (origin.value != graph->outputs[0]) fail_msg("%s %s", others[i][0], others[i][1]);
  }
}

static void the_last_state_is_the_last_step(void **state) {
  (void)state;
  for (int reverse = 0; reverse < 2; reverse++) {
    Graph *graph = build_graph(arena);
    Node *node = build_node(graph, "GRU", "f32[7,B,3] f32[1,12,3]! f32[1,12,4]!",
                            reverse ? "hidden_size=4 direction=reverse" : "hidden_size=4", 2);
    build_output(graph, node->outputs[1]);
    infer_shapes(graph);
    Strip origin = strip_origin(graph, result(graph), NULL);
    expect_strip(&origin, node->outputs[0], 0, 4, 0, reverse ? 0 : 6);
  }
}

static void rows_are_one_axis(void **state) {
  (void)state;
  Graph *graph = BUILT({"Relu", "f32[1,B,4]", ""});
  Strip strip = result(graph);
  assert_ptr_equal(strip_rows(graph, &strip), graph->outputs[0]->shape[1]);
  graph = BUILT({"Relu", "f32[5,B,4]", ""});
  strip = result(graph);
  assert_null(strip_rows(graph, &strip));
  strip.axis = 0;
  assert_ptr_equal(strip_rows(graph, &strip), graph->outputs[0]->shape[1]);
}

static void an_operand_whose_rows_are_repeated_must_be_constant(void **state) {
  (void)state;
  Graph *graph = BUILT({"Add", "f32[B,4] f32[1,4]", ""}, {"Add", "@0 f32[4]!", ""}, {"Add", "@1 f32(2)", ""});
  Strip part;
  const Strip first = whole(graph->nodes[0]->outputs[0]), second = whole(graph->nodes[1]->outputs[0]);
  assert_true(strip_operand(graph, &first, graph->inputs[0], &part));
  assert_false(strip_operand(graph, &first, graph->inputs[1], &part));
  assert_true(strip_operand(graph, &second, graph->nodes[1]->inputs[1], &part));
  assert_true(strip_numbers(&part)[3] == 4);
  const Strip third = result(graph);
  assert_true(strip_operand(graph, &third, graph->nodes[2]->inputs[1], &part));
  assert_int_equal(part.count, 1);
}

static void numbers_that_differ_by_row_are_none(void **state) {
  (void)state;
  Graph *graph = BUILT({"Add", "f32[3,2] f32[3,2]!", ""});
  Strip strip = whole(graph->nodes[0]->inputs[1]);
  assert_null(strip_numbers(&strip));
}

/* ---- formulas ---- */

static bool matches(Graph *graph, const char *pattern, Bindings *bindings, Trail *trail) {
  *bindings = (Bindings){0};
  *trail = (Trail){.arena = arena};
  return pattern_match(graph, trail, pattern, result(graph), bindings);
}

static void operands_match_in_either_order(void **state) {
  (void)state;
  Bindings found;
  Trail trail;
  Graph *graph = BUILT({"Sigmoid", "f32[B,4]", ""}, {"Mul", "f32[B,4] @0", ""}, {"Add", "f32[B,4] @1", ""});
  assert_true(matches(graph, "z*a + b", &found, &trail));
  assert_ptr_equal(bound(&found, 'z').value, graph->nodes[0]->outputs[0]);
  assert_ptr_equal(bound(&found, 'a').value, graph->nodes[1]->inputs[0]);
  assert_int_equal(trail.n, 2);
  assert_false(matches(graph, "z*a - b", &found, &trail));
}

static void a_difference_keeps_its_order(void **state) {
  (void)state;
  Bindings found;
  Trail trail;
  Graph *graph = BUILT({"Sigmoid", "f32[B,4]", ""}, {"Sub", "@0 f32=1,1,1,1", ""});
  assert_true(matches(graph, "z-1", &found, &trail));
  assert_false(matches(graph, "1-z", &found, &trail));
  assert_false(matches(BUILT({"Sigmoid", "f32[B,4]", ""}, {"Sub", "@0 f32=1,1,2,1", ""}), "z-1", &found, &trail));
}

static void a_letter_is_the_same_strip_everywhere(void **state) {
  (void)state;
  Bindings found;
  Trail trail;
  assert_true(matches(BUILT({"Sigmoid", "f32[B,4]", ""}, {"Mul", "@0 @0", ""}), "z*z", &found, &trail));
  assert_false(matches(BUILT({"Sigmoid", "f32[B,4]", ""}, {"Mul", "@0 f32[B,4]", ""}), "z*z", &found, &trail));
}

static void a_failed_match_leaves_nothing_behind(void **state) {
  (void)state;
  Bindings found;
  Trail trail;
  Graph *graph = BUILT({"Sigmoid", "f32[B,4]", ""}, {"Mul", "@0 f32[B,4]", ""}, {"Sub", "@1 @0", ""});
  assert_false(matches(graph, "z*a - g", &found, &trail));
  assert_null(bound(&found, 'z').value);
  assert_null(bound(&found, 'a').value);
  assert_int_equal(trail.n, 0);
}

/* f*c matches the first term, too, but then i*g does not match the second. */
static void a_failed_order_leaves_nothing_behind(void **state) {
  (void)state;
  Bindings found;
  Trail trail;
  Graph *graph = BUILT({"Sigmoid", "f32[B,4]", ""}, {"Tanh", "f32[B,4]", ""}, {"Sigmoid", "f32[B,4]", ""},
                       {"Mul", "@0 @1", ""}, {"Mul", "@2 f32[B,4]", ""}, {"Add", "@3 @4", ""});
  assert_true(matches(graph, "f*c + i*g", &found, &trail));
  assert_ptr_equal(bound(&found, 'i').value, graph->nodes[0]->outputs[0]);
  assert_int_equal(trail.n, 3);
}

/* ---- sums of products ---- */

static Affine affine_of(Graph *graph) {
  Affine affine;
  Trail trail = {.arena = arena};
  assert_true(affine_read(graph, &trail, result(graph), &affine));
  return affine;
}

/* Columns 2 and 3 of [x | h] W, where W counts 1, 2, 3... by rows of 4. */
static void a_concatenated_input_has_its_rows_of_the_weights(void **state) {
  (void)state;
  Graph *graph = BUILT({"Concat", "f32[B,1] f32[B,2]", "axis=1"}, {"MatMul", "@0 f32[3,4]!", ""},
                       {"Slice", "@1", "axes=[1] starts=[2] ends=[4]"});
  Affine affine = affine_of(graph);
  assert_int_equal(affine.n_products, 2);
  float x[2] = {0}, h[4] = {0};
  product_weights(&affine.products[0], 2, 1, x);
  product_weights(&affine.products[1], 2, 2, h);
  assert_true(x[0] == 3 && x[1] == 4);
  assert_true(h[0] == 7 && h[1] == 11 && h[2] == 8 && h[3] == 12);
}

/* 2 x W' - 0.5 b + x V, where W is transposed. */
static void scales_and_signs_go_into_the_weights(void **state) {
  (void)state;
  Graph *graph = BUILT({"MatMul", "f32[B,2] f32[2,3]!", ""},
                       {"Gemm", "f32[B,2] f32[3,2]! f32[3]!", "alpha=2 beta=-0.5 transB=1"}, {"Add", "@1 @0", ""});
  Affine affine = affine_of(graph);
  assert_int_equal(affine.n_products, 2);
  float sum[6] = {0};
  product_weights(&affine.products[0], 3, 2, sum);
  product_weights(&affine.products[1], 3, 2, sum);
  assert_true(sum[0] == 2 * 1 + 1 && sum[1] == 2 * 2 + 4 && sum[4] == 2 * 5 + 3);
  assert_true(affine_bias(&affine, 2) == -1.5);
  graph = BUILT({"MatMul", "f32[B,2] f32[2,3]!", ""}, {"Sub", "f32[3]! @0", ""});
  affine = affine_of(graph);
  assert_true(affine.products[0].scale == -1 && affine.addends[0].scale == 1);
}

static void one_term_may_be_something_else(void **state) {
  (void)state;
  Graph *graph = BUILT({"Relu", "f32[B,3]", ""}, {"MatMul", "f32[B,2] f32[2,3]!", ""}, {"Add", "@0 @1", ""});
  assert_ptr_equal(affine_of(graph).rest.value, graph->nodes[0]->outputs[0]);
  Affine affine;
  Trail trail = {.arena = arena};
  graph = BUILT({"Relu", "f32[B,3]", ""}, {"Tanh", "f32[B,3]", ""}, {"Add", "@0 @1", ""});
  assert_false(affine_read(graph, &trail, result(graph), &affine));
}

/* A sum of a million terms, in a hostile model, needs no stack. */
static void a_long_sum_is_none(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "MatMul", "f32[B,2] f32[2,3]!", "", 1);
  for (int i = 0; i < 100000; i++) {
    Node *node = build_node(graph, "Add", "@0 f32(1)", "", 1);
    node->inputs[0] = graph->nodes[i]->outputs[0];
  }
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  Affine affine;
  Trail trail = {.arena = arena};
  assert_false(affine_read(graph, &trail, result(graph), &affine));
}

/* ---- steps ---- */

static void neighbours_in_time_have_a_direction(void **state) {
  (void)state;
  Graph *graph = BUILT({"Relu", "f32[9,B,4]", ""});
  Strip strips[3];
  for (int i = 0; i < 3; i++) strips[i] = (Strip){graph->inputs[0], 0, 4, 0, 2 + i};
  assert_int_equal(strips_direction(strips, 3), 1);
  strips[0].step = 4, strips[2].step = 2;
  assert_int_equal(strips_direction(strips, 3), -1);
  strips[2].step = 1;
  assert_int_equal(strips_direction(strips, 3), 0);
  strips[2].step = 2, strips[2].first = 1;
  assert_int_equal(strips_direction(strips, 3), 0);
  assert_int_equal(strips_direction(strips, 1), 0);
}

/* Columns 1 and 2 of steps 2 to 4, beside a part whose steps are no neighbours. */
static void steps_are_put_together_as_their_strips_say(void **state) {
  (void)state;
  Graph *graph = BUILT({"Relu", "f32[9,B,4]", ""}, {"Neg", "f32[9,B,2]", ""});
  Steps steps = steps_new(arena, 3, 2);
  for (int i = 0; i < 3; i++) {
    steps_part(&steps, 0)[i] = (Strip){graph->nodes[0]->outputs[0], 1, 2, 0, 2 + i};
    steps_part(&steps, 1)[i] = (Strip){graph->nodes[1]->outputs[0], 0, 2, 0, 4 * i};
  }
  const Builder builder = {graph, "steps", graph->nodes[0]->where};
  Value *together = build_steps(&builder, &steps, 1);
  assert_string_equal(text_of(graph, together), "f32[3, B, 4]");
  const Node *slice = together->producer->inputs[0]->producer;
  while (!is_op(slice, OP_Slice)) slice = slice->inputs[0]->producer;
  IntList axes, starts, ends;
  assert_true(operand_ints(graph, slice, ATTR_axes, 3, &axes) && operand_ints(graph, slice, ATTR_starts, 1, &starts) &&
              operand_ints(graph, slice, ATTR_ends, 2, &ends));
  assert_int_equal(axes.n, 2);
  for (int i = 0; i < 2; i++) {
    bool columns = axes.items[i] == 2;
    assert_int_equal(starts.items[i], columns ? 1 : 2);
    assert_int_equal(ends.items[i], columns ? 3 : 5);
  }
}

static void a_graph_without_a_cell_is_left_alone(void **state) {
  (void)state;
  Graph *graph = BUILT({"MatMul", "f32[B,2] f32[2,3]!", ""}, {"Tanh", "@0", ""}, {"Sigmoid", "@0", ""},
                       {"Mul", "@1 @2", ""}, {"Identity", "@3", ""});
  reroll_rnn(graph);
  verify(graph);
  assert_int_equal(graph->n_nodes, 5);
  assert_int_equal(graph->n_remarks, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(columns_are_found_behind_split_and_slice),
      TEST(a_step_is_found_behind_gather_slice_and_views),
      TEST(every_second_step_counts_from_the_sliced_start),
      TEST(a_strip_of_one_piece_is_found_in_it),
      TEST(a_strip_of_two_pieces_stays_and_has_parts),
      TEST(what_changes_rows_or_columns_is_an_origin),
      TEST(the_last_state_is_the_last_step),
      TEST(rows_are_one_axis),
      TEST(an_operand_whose_rows_are_repeated_must_be_constant),
      TEST(numbers_that_differ_by_row_are_none),
      TEST(operands_match_in_either_order),
      TEST(a_difference_keeps_its_order),
      TEST(a_letter_is_the_same_strip_everywhere),
      TEST(a_failed_match_leaves_nothing_behind),
      TEST(a_failed_order_leaves_nothing_behind),
      TEST(a_concatenated_input_has_its_rows_of_the_weights),
      TEST(scales_and_signs_go_into_the_weights),
      TEST(one_term_may_be_something_else),
      TEST(a_long_sum_is_none),
      TEST(neighbours_in_time_have_a_direction),
      TEST(steps_are_put_together_as_their_strips_say),
      TEST(a_graph_without_a_cell_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
