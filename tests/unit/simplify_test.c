/* SPDX-License-Identifier: MIT */
/* simplify and alias_views: which nodes go, which stay, and that outputs keep their names and their values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../support/simplify.h"
#include "arena_fixture.h"
#include "ir_build.h"
#include "outcome.h"
#include "reference/reference.h"

static void finish(Graph *graph, Value *output) {
  build_output(graph, output);
  infer_shapes(graph);
  simplify(graph);
  verify(graph);
}

/* The graph after the pass; its last node makes the output. */
static Graph *simplified(const char *const (*nodes)[3], int n) {
  Graph *graph = build_graph(arena);
  for (int i = 0; i < n; i++) build_node(graph, nodes[i][0], nodes[i][1], nodes[i][2], 1);
  finish(graph, graph->nodes[n - 1]->outputs[0]);
  return graph;
}
#define SIMPLIFIED(...)                                                                                                \
  simplified((const char *const[][3]){__VA_ARGS__},                                                                    \
             sizeof((const char *const[][3]){__VA_ARGS__}) / (3 * sizeof(char *)))

static void constants_fold(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Add", "f32=1,2 f32=10,20", ""}, {"Mul", "f32[T,2] @0", ""});
  assert_int_equal(graph->n_nodes, 1);
  assert_true(((const float *)graph->nodes[0]->inputs[1]->data)[1] == 22);
}

static void a_constant_output_keeps_its_name(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Add", "f32=1,2 f32=10,20", ""});
  assert_int_equal(graph->n_nodes, 0);
  assert_string_equal(graph->outputs[0]->name, "y2");
  assert_true(((const float *)graph->outputs[0]->data)[0] == 11);
}

static void large_results_are_not_folded(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Expand", "f32=1 i64=1024,1024", ""}, {"Relu", "@0", ""});
  assert_int_equal(count_nodes(graph, "Expand"), 1);
}

/* Of 256 KiB from half of it, and of four megabytes from eight KiB. */
static void a_product_may_be_twice_as_large_as_its_factors(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"MatMul", "f32[256,64]! f32[64,256]!", ""}, {"Mul", "@0 f32[256]", ""});
  assert_int_equal(count_nodes(graph, "MatMul"), 0);
  graph = SIMPLIFIED({"MatMul", "f32[1024,1]! f32[1,1024]!", ""}, {"Mul", "@0 f32[1024]", ""});
  assert_int_equal(count_nodes(graph, "MatMul"), 1);
}

/* Of a megabyte, each of ten nodes makes twice of it: a gigabyte. */
static void constants_that_double_are_not_all_folded(void **state) {
  (void)state;
  enum { DOUBLED = 10, MOST_BYTES = 1 << 28 };
  Graph *graph = build_graph(arena);
  build_node(graph, "Concat", "f32[262144]! f32[262144]!", "axis=0", 1);
  for (int i = 1; i < DOUBLED; i++)
    build_node(graph, "Concat", arena_format(arena, "@%d @%d", i - 1, i - 1), "axis=0", 1);
  finish(graph, build_node(graph, "Mul", arena_format(arena, "@%d f32[T,1]", DOUBLED - 1), "", 1)->outputs[0]);
  int64_t bytes = 0;
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->data) bytes += value_max_bytes(graph->values[i]);
  assert_true(bytes < MOST_BYTES);
  assert_true(count_nodes(graph, "Concat") > 0);
}

static void run_infer(void *graph) { infer_shapes(graph); }

static void constants_that_a_kernel_refuses_are_reported(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_output(graph, build_node(graph, "Div", "i32=1,2 i32=1,0", "", 1)->outputs[0]);
  Outcome outcome = outcome_of(run_infer, graph);
  expect_outcome(&outcome, 2, "Div of constants: ", NULL);
}

static void shape_arithmetic_leaves_no_node(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[T,B,24]", ""}, {"Shape", "@0", ""}, {"Gather", "@1 i64=0", ""},
                            {"Concat", "@2 i64=12 i64=-1", "axis=0"}, {"Reshape", "@0 @3", ""});
  assert_int_equal(graph->n_nodes, 2);
  Node *reshape = producer_named(graph, "Reshape");
  assert_string_equal(text_of(graph, reshape->outputs[0]), "f32[T, 12, 2*B]");
  const int64_t *target = reshape->inputs[1]->data;
  assert_int_equal(target[0], 0);
  assert_int_equal(target[1], 12);
  assert_int_equal(target[2], -1);
}

static void expand_to_a_computed_shape_is_settled(void **state) {
  (void)state;
  Graph *graph =
      SIMPLIFIED({"Relu", "f32[T,1]", ""}, {"Shape", "@0", ""}, {"Mul", "@1 i64=1,5", ""}, {"Expand", "@0 @2", ""});
  assert_int_equal(graph->n_nodes, 2);
  assert_string_equal(text_of(graph, graph->outputs[0]), "f32[T, 5]");
}

static void slice_to_a_computed_end_is_settled(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[B,T]", ""}, {"Shape", "@0", "start=1"}, {"Slice", "@0 i64=1 @1 i64=1", ""});
  assert_int_equal(graph->n_nodes, 2);
  assert_string_equal(text_of(graph, graph->outputs[0]), "f32[B, T - 1]");
}

/* The end of the axis is known as such, whatever its extent; that of another axis is left to the run. */
static void ends_that_are_the_extent_s_become_constants(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[2*B,3]", ""}, {"Shape", "@0", "end=1"}, {"Slice", "@0 i64=1 @1 i64=0", ""});
  const int64_t *end = producer_named(graph, "Slice")->inputs[2]->data;
  assert_non_null(end);
  assert_true(end[0] == INT64_MAX);
  graph = SIMPLIFIED({"Relu", "f32[2*B,3]", ""}, {"Relu", "f32[B,3]", ""}, {"Shape", "@1", "end=1"},
                     {"Slice", "@0 i64=0 @2 i64=0", ""}, {"Add", "@1 @3", ""});
  assert_null(producer_named(graph, "Slice")->inputs[2]->data);
  assert_string_equal(text_of(graph, graph->outputs[0]), "f32[B, 3]");
}

/* A constant target says -1 once; two extents that only the run knows are computed by it. */
static void a_target_of_two_open_extents_is_computed(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[T,B]", ""}, {"Shape", "@0", ""}, {"Gather", "@1 i64=1,0", ""},
                            {"Reshape", "@0 @2", ""}, {"Tanh", "@3", ""});
  assert_null(producer_named(graph, "Reshape")->inputs[1]->data);
  assert_string_equal(text_of(graph, graph->outputs[0]), "f32[B, T]");
}

/* Each of these returns its input, so Relu's result is the output. */
static void ops_that_change_nothing_go(void **state) {
  (void)state;
  static const char *const idle[][3] = {
      {"Identity", "@0", ""},
      {"Cast", "@0", "to=f32"},
      {"Transpose", "@0", "perm=[0,1]"},
      {"Pad", "@0 i64=0,0,0,0", ""},
      {"Slice", "@0 i64=0 i64=9223372036854775807", ""},
      {"Expand", "@0 i64=1,4", ""},
      {"Concat", "@0", "axis=0"},
      {"Reshape", "@0 i64=0,4", ""},
      {"Flatten", "@0", ""},
      {"Split", "@0", "axis=1"},
      {"Max", "@0", ""},
      {"Sum", "@0", ""},
  };
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
    Graph *graph = SIMPLIFIED({"Relu", "f32[T,4]", ""}, {idle[i][0], idle[i][1], idle[i][2]});
    if (graph->n_nodes != 1) fail_msg("%s stays", idle[i][0]);
    assert_string_not_equal(graph->outputs[0]->name, "y1"); /* Relu's own */
    assert_ptr_equal(graph->outputs[0]->producer, graph->nodes[0]);
  }
}

static void ops_that_change_something_stay(void **state) {
  (void)state;
  static const char *const busy[][3] = {
      {"Cast", "@0", "to=i32"},       {"Transpose", "@0", ""},
      {"Pad", "@0 i64=1,0,-1,0", ""}, {"Slice", "@0 i64=-1 i64=-9223372036854775808 i64=0 i64=-1", ""},
      {"Expand", "@0 i64=3,1,1", ""}, {"Reshape", "@0 i64=4,-1", ""},
      {"Split", "@0", "axis=1"},
  };
  for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
    Graph *graph = build_graph(arena);
    build_node(graph, "Relu", "f32[T,4]", "", 1);
    int n_outputs = strcmp(busy[i][0], "Split") ? 1 : 2;
    Node *node = build_node(graph, busy[i][0], busy[i][1], busy[i][2], n_outputs);
    finish(graph, node->outputs[0]);
    if (graph->n_nodes != 2) fail_msg("%s went", busy[i][0]);
  }
}

static void a_view_and_its_inverse_go(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[T,4]", ""}, {"Unsqueeze", "@0 i64=1", ""}, {"Reshape", "@1 i64=-1", ""},
                            {"Reshape", "@2 i64=-1,4", ""}, {"Tanh", "@3", ""});
  assert_int_equal(graph->n_nodes, 2);
}

/* An output that another node reads, too, through the identity that gave it its name. */
static void a_renamed_value_is_read_under_its_new_name(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Relu", "f32[T,4]", "", 1);
  build_node(graph, "Tanh", "@0", "", 1);
  build_node(graph, "Identity", "@0", "", 1);
  build_node(graph, "Exp", "@0", "", 1);
  build_output(graph, graph->nodes[1]->outputs[0]);
  build_output(graph, graph->nodes[2]->outputs[0]);
  finish(graph, graph->nodes[3]->outputs[0]);
  assert_int_equal(graph->n_nodes, 3);
  assert_ptr_equal(producer_named(graph, "Tanh")->inputs[0], graph->outputs[1]);
  assert_ptr_equal(producer_named(graph, "Exp")->inputs[0], graph->outputs[1]);
}

static void one_value_under_two_output_names_needs_a_copy(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Relu", "f32[T,4]", "", 1);
  build_node(graph, "Identity", "@0", "", 1);
  build_output(graph, graph->nodes[0]->outputs[0]);
  finish(graph, graph->nodes[1]->outputs[0]);
  assert_int_equal(count_nodes(graph, "Identity"), 1);
  assert_string_equal(graph->outputs[0]->name, "y1");
  assert_string_equal(graph->outputs[1]->name, "y2");
}

static void max_of_many_becomes_a_chain_of_two(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Max", "f32[T,1] f32[1,B] f32[] f32[T,B]", ""});
  assert_int_equal(count_nodes(graph, "Max"), 3);
  for (int i = 0; i < graph->n_nodes; i++) assert_int_equal(graph->nodes[i]->n_inputs, 2);
  assert_string_equal(text_of(graph, graph->nodes[0]->outputs[0]), "f32[T, B]");
  assert_string_equal(graph->outputs[0]->name, "y4");
}

static void sum_becomes_add(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Sum", "f32[T] f32[T] f32[T]", ""});
  assert_int_equal(count_nodes(graph, "Add"), 2);
  assert_int_equal(count_nodes(graph, "Sum"), 0);
}

/* The graph's result for input 0 filled with 0, 1, 2, ... */
static const Tensor *run(Graph *graph, const int64_t *shape, int rank) {
  const int64_t symbols[] = {5, 2};
  Tensor *input = tensor_new(arena, RNNCC_F32, rank, shape), *output;
  for (int64_t i = 0; i < tensor_count(input); i++) tensor_set_int(input, i, i % 7 - 3);
  const char *wrong = reference_run(arena, graph, (const Tensor *const *)&input, &output, symbols);
  if (wrong) fail_msg("%s", wrong);
  return output;
}

static Graph *conv_and_norm(const char *conv_inputs) {
  Graph *graph = build_graph(arena);
  build_node(graph, "Conv", conv_inputs, "pads=[1,0]", 1);
  build_node(graph, "BatchNormalization", "@0 f32=2,-3 f32=1,5 f32=4,-6 f32=0.25,9", "epsilon=0.5", 1);
  build_output(graph, graph->nodes[1]->outputs[0]);
  infer_shapes(graph);
  return graph;
}

/* Each weight is rounded once (relative error 2^-24); 9 products and the bias are summed in double. */
static void expect_close(const Tensor *a, const Tensor *b, double magnitude) {
  assert_int_equal(tensor_count(a), tensor_count(b));
  for (int64_t i = 0; i < tensor_count(a); i++) {
    double difference = tensor_get(a, i) - tensor_get(b, i);
    if (!(difference <= magnitude * 0x1p-23 && -difference <= magnitude * 0x1p-23))
      fail_msg("element %lld: %a and %a", (long long)i, tensor_get(a, i), tensor_get(b, i));
  }
}

static void batch_norm_folds_into_the_convolution_before_it(void **state) {
  (void)state;
  static const char *const inputs[] = {"f32[1,3,6] f32[2,3,3]! f32=3,1", "f32[1,3,6] f32[2,3,3]!"};
  const int64_t shape[] = {1, 3, 6};
  for (int i = 0; i < 2; i++) {
    Graph *before = conv_and_norm(inputs[i]), *after = conv_and_norm(inputs[i]);
    simplify(after);
    verify(after);
    assert_int_equal(after->n_nodes, 1);
    /* |x| <= 3, weights up to 18, 9 products, times |s| <= 2.4, plus shifts below 30 */
    expect_close(run(before, shape, 3), run(after, shape, 3), 3 * 18 * 9 * 2.4 + 30);
  }
}

static void batch_norm_of_a_shared_convolution_stays_as_scale_and_shift(void **state) {
  (void)state;
  const int64_t shape[] = {1, 3, 6};
  Graph *before = conv_and_norm("f32[1,3,6] f32[2,3,3]!"), *after = conv_and_norm("f32[1,3,6] f32[2,3,3]!");
  build_output(after, after->nodes[0]->outputs[0]);
  simplify(after);
  verify(after);
  after->n_outputs = 1;
  Node *norm = producer_named(after, "BatchNormalization");
  assert_non_null(norm);
  assert_true(node_float(norm, ATTR_epsilon) == 0);
  assert_true(((const float *)norm->inputs[4]->data)[0] == 1);
  expect_close(run(before, shape, 3), run(after, shape, 3), 3 * 18 * 9 * 2.4 + 30);
}

static void views_share_memory(void **state) {
  (void)state;
  Graph *graph = SIMPLIFIED({"Relu", "f32[T,4]", ""}, {"Reshape", "@0 i64=-1", ""}, {"Unsqueeze", "@1 i64=0", ""},
                            {"Tanh", "@2", ""});
  alias_views(graph);
  verify(graph);
  Value *read = producer_named(graph, "Tanh")->inputs[0];
  assert_ptr_equal(value_root(read), producer_named(graph, "Relu")->outputs[0]);
  assert_int_equal(count_nodes(graph, "Identity"), 0);
}

/* An output must not be the caller's input, a constant, or another output's memory, because the module writes it. */
static void outputs_that_share_memory_get_copies(void **state) {
  (void)state;
  static const char *const shared[][3] = {
      {"Identity", "f32[T,4]", ""}, {"Reshape", "f32[T,4] i64=-1", ""}, {"Constant", "", "value_floats=[1,2]"}};
  for (int i = 0; i < 3; i++) {
    Graph *graph = SIMPLIFIED({shared[i][0], shared[i][1], shared[i][2]});
    const char *name = graph->outputs[0]->name, *shape = text_of(graph, graph->outputs[0]);
    alias_views(graph);
    verify(graph);
    assert_string_equal(graph->outputs[0]->producer->op->name, "Identity");
    assert_ptr_equal(value_root(graph->outputs[0]), graph->outputs[0]);
    assert_string_equal(graph->outputs[0]->name, name);
    assert_string_equal(text_of(graph, graph->outputs[0]), shape);
  }
}

static void a_view_of_another_output_gets_a_copy(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Relu", "f32[T,4]", "", 1);
  build_node(graph, "Reshape", "@0 i64=-1", "", 1);
  build_output(graph, graph->nodes[0]->outputs[0]);
  finish(graph, graph->nodes[1]->outputs[0]);
  alias_views(graph);
  assert_ptr_not_equal(value_root(graph->outputs[0]), value_root(graph->outputs[1]));
}

static void a_state_that_passes_through_gets_a_copy(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "Identity", "f32[B,4]", "", 1);
  State carried = {.input = graph->inputs[0], .output = node->outputs[0]};
  graph->states = &carried;
  graph->n_states = 1;
  graph->n_inputs = 0;
  infer_shapes(graph);
  simplify(graph);
  alias_views(graph);
  verify(graph);
  assert_false(value_root(graph->states[0].output)->is_input);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(constants_fold),
      TEST(a_constant_output_keeps_its_name),
      TEST(large_results_are_not_folded),
      TEST(a_product_may_be_twice_as_large_as_its_factors),
      TEST(constants_that_double_are_not_all_folded),
      TEST(constants_that_a_kernel_refuses_are_reported),
      TEST(shape_arithmetic_leaves_no_node),
      TEST(expand_to_a_computed_shape_is_settled),
      TEST(slice_to_a_computed_end_is_settled),
      TEST(ends_that_are_the_extent_s_become_constants),
      TEST(a_target_of_two_open_extents_is_computed),
      TEST(ops_that_change_nothing_go),
      TEST(ops_that_change_something_stay),
      TEST(a_view_and_its_inverse_go),
      TEST(a_renamed_value_is_read_under_its_new_name),
      TEST(one_value_under_two_output_names_needs_a_copy),
      TEST(max_of_many_becomes_a_chain_of_two),
      TEST(sum_becomes_add),
      TEST(batch_norm_folds_into_the_convolution_before_it),
      TEST(batch_norm_of_a_shared_convolution_stays_as_scale_and_shift),
      TEST(views_share_memory),
      TEST(outputs_that_share_memory_get_copies),
      TEST(a_view_of_another_output_gets_a_copy),
      TEST(a_state_that_passes_through_gets_a_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
