/* SPDX-License-Identifier: MIT */
/* infer_shapes over whole graphs: values of shape arithmetic, each error reported once, exit codes, states, constants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "outcome.h"
#include "passes.h"
#include "shapes/shape.h"
#include "support/text.h"

static const char *elements_of(Graph *graph, const Value *value) {
  Text text = text_new(graph->arena);
  const Dim **elements = known_elements(graph, value);
  if (!elements) return "unknown";
  for (int64_t i = 0; i < value_count(value); i++) {
    text_add(&text, i ? " " : "");
    dim_print(&text, elements[i]);
  }
  return text.data;
}

typedef struct Step {
  const char *op, *inputs, *attributes, *elements;
} Step;

/* Shape of f32[T,B,12], then one op on it. */
static void expect_elements(const Step *steps, int n) {
  for (int i = 0; i < n; i++) {
    Graph *graph = build_graph(arena);
    build_node(graph, "Shape", "f32[T,B,12]", "", 1);
    Node *node = build_node(graph, steps[i].op, steps[i].inputs, steps[i].attributes, 1);
    build_output(graph, node->outputs[0]);
    infer_shapes(graph);
    assert_string_equal(elements_of(graph, node->outputs[0]), steps[i].elements);
  }
}

static void shape_arithmetic_is_followed(void **state) {
  (void)state;
  const Step steps[] = {
      {"Identity", "@0", "", "T B 12"},
      {"Gather", "@0 i64=0,-1", "", "T 12"},
      {"Gather", "@0 i64(1)", "", "B"},
      {"Slice", "@0 i64=1 i64=9223372036854775807", "", "B 12"},
      {"Slice", "@0 i64=-1 i64=-4 i64=0 i64=-1", "", "12 B T"},
      {"Concat", "@0 i64=-1", "axis=0", "T B 12 -1"},
      {"Unsqueeze", "@0 i64=0", "", "T B 12"},
      {"Reshape", "@0 i64=3,1", "", "T B 12"},
      {"Cast", "@0", "to=i32", "T B 12"},
      {"Cast", "@0", "to=f32", "T B 12"},
      {"Add", "@0 i64=1,2,3", "", "T + 1 B + 2 15"},
      {"Sub", "@0 i64(1)", "", "T - 1 B - 1 11"},
      {"Mul", "@0 @0", "", "T*T B*B 144"},
      {"Div", "@0 i64(2)", "", "floor(T / 2) floor(B / 2) 6"},
      {"Div", "@0 i64(-2)", "", "unknown"},
      {"Neg", "@0", "", "-T -B -12"},
      {"Mod", "@0 i64(4)", "", "T - 4*floor(T / 4) B - 4*floor(B / 4) 0"},
      {"Max", "@0 i64(12)", "", "max(T, 12) 12 12"},
      {"ReduceProd", "@0", "keepdims=0", "12*T*B"},
      {"ReduceSum", "@0", "", "T + B + 12"},
      {"Expand", "@0 i64=2,3", "", "T B 12 T B 12"},
      {"Tile", "@0 i64=2", "", "T B 12 T B 12"},
      {"Transpose", "@0", "", "T B 12"},
      {"Where", "bool=0,1,1 @0 i64=7,8,9", "", "7 B 12"},
      {"Equal", "@0 i64(-1)", "", "0 0 0"},
      {"Less", "@0 i64(1000000)", "", "1 1 1"},
      {"Greater", "@0 i64(3)", "", "unknown"},
      {"Size", "f32[T,B,12]", "", "12*T*B"},
  };
  expect_elements(steps, sizeof steps / sizeof *steps);
}

/* Scales of f32, as an exporter writes x.size(0) * 1.5: Shape -> Cast -> `op` by a number -> Floor -> Cast. */
static void floats_are_followed_while_they_are_exact(void **state) {
  (void)state;
  const struct {
    const char *op, *number, *rounding, *elements;
  } rows[] = {
      {"Mul", "f32(2)", "Floor", "2*T 2*B 24"},
      {"Mul", "f32(1.5)", "Floor", "T + floor(T / 2) B + floor(B / 2) 18"},
      {"Mul", "f32(0.25)", "Ceil", "floor((T + 3) / 4) floor((B + 3) / 4) 3"},
      {"Div", "f32(3)", "Floor", "floor(T / 3) floor(B / 3) 4"},
      {"Div", "f32(3)", "Ceil", "floor((T + 2) / 3) floor((B + 2) / 3) 4"},
      {"Add", "f32(0.5)", "Floor", "T B 12"},
      {"Sub", "f32(0.5)", "Ceil", "T B 12"},
      {"Mul", "f32(0.1)", "Floor", "unknown"},
      {"Mul", "f32(65537)", "Floor", "unknown"}, /* 400 * 65537 has more than 24 bits */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Graph *graph = build_graph(arena);
    build_node(graph, "Shape", "f32[T,B,12]", "", 1);
    build_node(graph, "Cast", "@0", "to=f32", 1);
    build_node(graph, rows[i].op, arena_format(arena, "@1 %s", rows[i].number), "", 1);
    build_node(graph, rows[i].rounding, "@2", "", 1);
    Node *node = build_node(graph, "Cast", "@3", "to=i64", 1);
    build_output(graph, node->outputs[0]);
    infer_shapes(graph);
    assert_string_equal(elements_of(graph, node->outputs[0]), rows[i].elements);
  }
}

/* x -> Shape -> Gather 0 -> Unsqueeze -> Concat with 12 and -1 -> Reshape: exporters write x.view(T, 12, -1) so.
 */
static void a_target_computed_from_shapes_reshapes(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Shape", "f32[T,B,24]", "", 1);
  build_node(graph, "Gather", "@0 i64(0)", "", 1);
  build_node(graph, "Unsqueeze", "@1 i64=0", "", 1);
  build_node(graph, "Concat", "@2 i64=12 i64=-1", "axis=0", 1);
  Node *reshape = build_node(graph, "Reshape", "_ @3", "", 1);
  reshape->inputs[0] = graph->inputs[0];
  build_output(graph, reshape->outputs[0]);
  infer_shapes(graph);
  assert_string_equal(text_of(graph, reshape->outputs[0]), "f32[T, 12, 2*B]");
}

static void constant_nodes_become_constants(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Constant", "", "value_floats=[1.5,2.5]", 1);
  Node *node = build_node(graph, "Add", "f32[T,2] @0", "", 1);
  build_output(graph, node->outputs[0]);
  infer_shapes(graph);
  assert_int_equal(graph->n_nodes, 1);
  assert_true(value_is_constant(node->inputs[1]));
  assert_true(((const float *)node->inputs[1]->data)[1] == 2.5F);
  verify(graph);
}

static void run_infer(void *graph) { infer_shapes(graph); }

static void expect_stop(Graph *graph, int code, const char *text, const char *other) {
  Outcome outcome = outcome_of(run_infer, graph);
  expect_outcome(&outcome, code, text, other);
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)); at++) n++;
  return n;
}

static void every_bad_node_is_reported_and_none_twice(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Softmax", "f32[T]", "axis=5", 1);
  build_node(graph, "Relu", "@0", "", 1); /* reads an unknown shape: no message of its own */
  build_node(graph, "MatMul", "@1 f32[3,4]", "", 1);
  build_node(graph, "Transpose", "f32[T]", "perm=[0,0]", 1);
  Outcome outcome = outcome_of(run_infer, graph);
  expect_outcome(&outcome, 2, "Softmax: axis is 5", "Transpose: `perm` has 2 axes");
  assert_int_equal(count(outcome.messages, "error:"), 2);
}

static void exit_codes_tell_the_kind_of_trouble(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Conv", "f32[1,1,4,4,4,4] f32[1,1,1,1,1,1]", "", 1);
  expect_stop(graph, 3, "4-D windows are not supported", NULL);
  graph = build_graph(arena);
  build_node(graph, "Tanh", "i64[T]", "", 1);
  expect_stop(graph, 3, "is i64; it may be f64", NULL);
  graph = build_graph(arena);
  build_node(graph, "Expand", "f32[1] i64=1048576,1048577", "", 1);
  expect_stop(graph, 4, "the limit is 1099511627776", NULL);
}

/* Each Concat doubles its input: 2^45 elements after 45 of them. Nothing of that size is ever allocated. */
static void a_nest_of_concats_is_stopped_before_it_grows(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Concat", "f32[1] f32[1]", "axis=0", 1);
  for (int i = 0; i < 45; i++) build_node(graph, "Concat", arena_format(arena, "@%d @%d", i, i), "axis=0", 1);
  expect_stop(graph, 4, "at its dimensions' maxima", NULL);
}

static void inputs_are_checked_too(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Relu", "f32[-1]", "", 1);
  expect_stop(graph, 2, "is -1; no extent may be negative", NULL);
  graph = build_graph(arena);
  build_node(graph, "Relu", "f32[T,2147483648,2147483648]", "", 1);
  expect_stop(graph, 4, "the limit is", NULL);
  graph = build_graph(arena);
  build_node(graph, "Relu", "f32[1,1,1,1,1,1,1,1,1]", "", 1);
  expect_stop(graph, 3, "has rank 9; at most 8 is supported", NULL);
  graph = build_graph(arena);
  Node *relu = build_node(graph, "Relu", "f32[2]", "", 1);
  relu->inputs[0]->rank = -1;
  expect_stop(graph, 2, "has no shape or type", NULL);
}

static void named_dimensions_are_checked(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  dim_symbol_add(graph->dims, "H", (DimBounds){4, 2, 8, 1});
  expect_stop(graph, 2, "dimension `H` has min 4, opt 2, max 8", NULL);
}

static void a_state_keeps_its_shape(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "Concat", "f32[B,4] f32[B,4]", "axis=1", 1);
  State carried = {.input = graph->inputs[0], .output = node->outputs[0]};
  graph->states = &carried;
  graph->n_states = 1;
  expect_stop(graph, 2, "a state goes in as `x0` f32[B, 4] and comes out as `y2` f32[B, 8]", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(shape_arithmetic_is_followed, setup, teardown),
      cmocka_unit_test_setup_teardown(floats_are_followed_while_they_are_exact, setup, teardown),
      cmocka_unit_test_setup_teardown(a_target_computed_from_shapes_reshapes, setup, teardown),
      cmocka_unit_test_setup_teardown(constant_nodes_become_constants, setup, teardown),
      cmocka_unit_test_setup_teardown(every_bad_node_is_reported_and_none_twice, setup, teardown),
      cmocka_unit_test_setup_teardown(exit_codes_tell_the_kind_of_trouble, setup, teardown),
      cmocka_unit_test_setup_teardown(a_nest_of_concats_is_stopped_before_it_grows, setup, teardown),
      cmocka_unit_test_setup_teardown(inputs_are_checked_too, setup, teardown),
      cmocka_unit_test_setup_teardown(named_dimensions_are_checked, setup, teardown),
      cmocka_unit_test_setup_teardown(a_state_keeps_its_shape, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
