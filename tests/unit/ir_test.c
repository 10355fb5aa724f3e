/* SPDX-License-Identifier: MIT */
/* Graphs: numbering, uses, dead code, the dump, and verify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "../support/simplify.h"
#include "arena_fixture.h"
#include "ir_build.h"
#include "outcome.h"
#include "support/text.h"

/* x -> Relu -> Tanh -> output */
static Graph *small_graph(void) {
  Graph *graph = build_graph(arena);
  build_node(graph, "Relu", "f32[T,4]", "", 1);
  build_node(graph, "Tanh", "@0", "", 1);
  build_output(graph, graph->nodes[1]->outputs[0]);
  return graph;
}

static void uses_count_inputs_and_outputs(void **state) {
  (void)state;
  Graph *graph = small_graph();
  Node *twice = build_node(graph, "Mul", "@0 @0", "", 1);
  UseList uses = graph_uses(graph);
  assert_int_equal(uses.count[graph->inputs[0]->id], 1);
  assert_ptr_equal(uses.single[graph->inputs[0]->id], graph->nodes[0]);
  assert_int_equal(uses.count[graph->nodes[0]->outputs[0]->id], 3);
  assert_null(uses.single[graph->nodes[0]->outputs[0]->id]);
  assert_int_equal(uses.count[graph->outputs[0]->id], 1);
  assert_null(uses.single[graph->outputs[0]->id]); /* a graph output has no single node */
  assert_int_equal(uses.count[twice->outputs[0]->id], 0);
}

static void dead_nodes_go_and_ids_stay_dense(void **state) {
  (void)state;
  Graph *graph = small_graph();
  build_node(graph, "Exp", "@1", "", 1);
  build_node(graph, "Log", "@2", "", 1);
  graph_remove_dead(graph);
  assert_int_equal(graph->n_nodes, 2);
  assert_int_equal(graph->n_values, 3);
  for (int i = 0; i < graph->n_values; i++) assert_int_equal(graph->values[i]->id, i);
  verify(graph);
}

static void unread_optional_outputs_are_dropped(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *lstm = build_node(graph, "LSTM", "f32[T,B,5] f32[1,12,5]! f32[1,12,3]!", "hidden_size=3", 3);
  build_output(graph, lstm->outputs[1]);
  graph_remove_dead(graph);
  assert_null(lstm->outputs[0]);
  assert_non_null(lstm->outputs[1]);
  assert_null(lstm->outputs[2]);
}

/* The number of outputs says how many parts Split makes, so all stay. */
static void unread_parts_of_split_stay(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *split = build_node(graph, "Split", "f32[6]", "", 3);
  build_output(graph, split->outputs[1]);
  graph_remove_dead(graph);
  for (int i = 0; i < 3; i++) assert_non_null(split->outputs[i]);
}

static void dump_is_one_line_a_value_and_a_node(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "Transpose", "f32[T,4]", "perm=[1,0]", 1);
  build_node(graph, "LeakyRelu", "@0", "alpha=0.5", 1);
  build_output(graph, graph->nodes[1]->outputs[0]);
  infer_shapes(graph);
  Text text = text_new(arena);
  graph_dump(&text, graph);
  assert_string_equal(text.data, "graph \"test\"\n"
                                 "dim d0: 2..400 opt 50 \"T\"\n"
                                 "dim d1: 1..8 opt 1 \"B\"\n"
                                 "input t0: f32[T, 4] \"x0\"\n"
                                 "n0: t1 = Transpose(t0) perm=[1 0] \"Transpose\"\n"
                                 "  value t1: f32[4, T] \"y1\"\n"
                                 "n1: t2 = LeakyRelu(t1) alpha=0.5 \"LeakyRelu\"\n"
                                 "  value t2: f32[4, T] \"y2\"\n"
                                 "output t2\n");
}

/* A recursive walk would need some 100 MB of stack for this, and a fifth of it with a sanitizer. */
static void a_chain_of_very_many_nodes_goes_through_all_passes(void **state) {
  (void)state;
  enum { LENGTH = SANITIZED ? 200000 : 1000000 };
  Graph *graph = build_graph(arena);
  Value *last = build_node(graph, "Relu", "f32[T,4]", "", 1)->outputs[0];
  for (int i = 1; i < LENGTH; i++) {
    Node *node = graph_node(graph, op_find(i % 2 ? "Identity" : "Tanh"), "chain", 1, 1);
    node->inputs[0] = last;
    last = graph_value(graph, "y", node->where);
    graph_set_output(node, 0, last);
  }
  build_output(graph, last);
  verify(graph);
  infer_shapes(graph);
  simplify(graph);
  assert_int_equal(graph->n_nodes, LENGTH / 2);
  verify(graph);
  fuse_epilogue(graph);
  verify(graph);
  alias_views(graph);
  verify(graph);
}

static void sizes_saturate(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "Abs", "f32[4294967296,4294967296,T]", "", 1);
  assert_true(value_max_count(node->inputs[0]) == INT64_MAX);
  assert_true(value_max_bytes(node->inputs[0]) == INT64_MAX);
}

static void axes_count_from_both_ends(void **state) {
  (void)state;
  assert_int_equal(normal_axis(-1, 3), 2);
  assert_int_equal(normal_axis(2, 3), 2);
  assert_int_equal(normal_axis(3, 3), -1);
  assert_int_equal(normal_axis(-4, 3), -1);
  assert_int_equal(normal_axis(INT64_MIN, 3), -1);
  assert_int_equal(normal_axis(0, 0), -1);
}

static void type_names_read_back(void **state) {
  (void)state;
  for (int type = RNNCC_F32; type <= RNNCC_BOOL; type++)
    assert_int_equal(dtype_from_name(dtype_name((DType)type)), type);
  assert_int_equal(dtype_from_name("c64"), RNNCC_NONE);
  assert_int_equal(dtype_from_name("none"), RNNCC_NONE);
}

static void run_verify(void *graph) { verify(graph); }

static void expect_bug(Graph *graph, const char *message) {
  Outcome outcome = outcome_of(run_verify, graph);
  expect_outcome(&outcome, 5, "internal error", message);
}

static void verify_finds_a_read_before_the_write(void **state) {
  (void)state;
  Graph *graph = small_graph();
  Node *first = graph->nodes[0];
  graph->nodes[0] = graph->nodes[1];
  graph->nodes[1] = first;
  graph_renumber(graph);
  expect_bug(graph, "before it is written");
}

static void verify_finds_a_wrong_producer(void **state) {
  (void)state;
  Graph *graph = small_graph();
  graph->nodes[1]->outputs[0]->producer = graph->nodes[0];
  expect_bug(graph, "is not output 0 of its producer");
}

static void verify_finds_stale_ids(void **state) {
  (void)state;
  Graph *graph = small_graph();
  graph->values[1]->id = 7;
  expect_bug(graph, "carries id 7");
}

static void verify_finds_a_dropped_required_input(void **state) {
  (void)state;
  Graph *graph = small_graph();
  graph->nodes[1]->n_inputs = 0;
  expect_bug(graph, "has 0 inputs");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(uses_count_inputs_and_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(dead_nodes_go_and_ids_stay_dense, setup, teardown),
      cmocka_unit_test_setup_teardown(unread_optional_outputs_are_dropped, setup, teardown),
      cmocka_unit_test_setup_teardown(unread_parts_of_split_stay, setup, teardown),
      cmocka_unit_test_setup_teardown(dump_is_one_line_a_value_and_a_node, setup, teardown),
      cmocka_unit_test_setup_teardown(a_chain_of_very_many_nodes_goes_through_all_passes, setup, teardown),
      cmocka_unit_test_setup_teardown(sizes_saturate, setup, teardown),
      cmocka_unit_test(axes_count_from_both_ends),
      cmocka_unit_test(type_names_read_back),
      cmocka_unit_test_setup_teardown(verify_finds_a_read_before_the_write, setup, teardown),
      cmocka_unit_test_setup_teardown(verify_finds_a_wrong_producer, setup, teardown),
      cmocka_unit_test_setup_teardown(verify_finds_stale_ids, setup, teardown),
      cmocka_unit_test_setup_teardown(verify_finds_a_dropped_required_input, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
