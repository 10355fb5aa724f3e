/* SPDX-License-Identifier: MIT */
/* The DAG of matrix products: their dependencies, for each kind of cell, in stacked and in parallel layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/recurrent/mm_dag.h"
#include "passes.h"

enum { GATE_Z, GATE_R, GATE_CANDIDATE };

static MmDag *dag_of(Graph *graph) {
  infer_shapes(graph);
  return mm_dag(graph);
}

static int count_needs(const Mm *mm, MmWhen when) {
  int count = 0;
  for (int i = 0; i < mm->n_needs; i++) count += mm->needs[i].when == when;
  return count;
}

static bool needs(const Mm *mm, int from, MmWhen when) {
  for (int i = 0; i < mm->n_needs; i++)
    if (mm->needs[i].from == from && mm->needs[i].when == when) return true;
  return false;
}

static const Mm *hidden_mm(const MmDag *dag, int layer, int direction, int gate) {
  return &dag->mms[mm_index(&dag->layers[layer], direction, MM_HIDDEN, gate)];
}

static const Mm *input_mm(const MmDag *dag, int layer, int direction, int gate) {
  return &dag->mms[mm_index(&dag->layers[layer], direction, MM_INPUT, gate)];
}

/* DeepCPU, section 2: an LSTM cell has 8 products that do not depend on each other; across cells, the hidden state of a
 * step depends on the step before. */
static void an_lstm_step_has_eight_products_of_which_four_wait_for_the_step_before(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *lstm = build_node(graph, "LSTM", "f32[T,B,3] f32[1,20,3]! f32[1,20,5]!", "hidden_size=5", 3);
  build_output(graph, lstm->outputs[0]);
  MmDag *dag = dag_of(graph);
  assert_int_equal(dag->n_mms, 8);
  for (int gate = 0; gate < 4; gate++) {
    assert_int_equal(input_mm(dag, 0, 0, gate)->n_needs, 0);
    assert_int_equal(input_mm(dag, 0, 0, gate)->operand, MM_INPUT);
    assert_int_equal(hidden_mm(dag, 0, 0, gate)->n_needs, 8);
    assert_int_equal(count_needs(hidden_mm(dag, 0, 0, gate), MM_STEP_BEFORE), 8);
    assert_int_equal(hidden_mm(dag, 0, 0, gate)->operand, MM_HIDDEN);
  }
  assert_int_equal(input_mm(dag, 0, 0, 0)->depth, 3);
  assert_int_equal(hidden_mm(dag, 0, 0, 0)->depth, 5);
}

static void a_gru_candidate_waits_for_the_reset_gate_only_if_that_comes_before_its_product(void **state) {
  (void)state;
  for (int after = 0; after < 2; after++) {
    Graph *graph = build_graph(arena);
    const char *attributes = after ? "hidden_size=5 linear_before_reset=1" : "hidden_size=5";
    build_output(graph, build_node(graph, "GRU", "f32[T,B,3] f32[1,15,3]! f32[1,15,5]!", attributes, 2)->outputs[0]);
    MmDag *dag = dag_of(graph);
    const Mm *candidate = hidden_mm(dag, 0, 0, GATE_CANDIDATE);
    assert_int_equal(count_needs(candidate, MM_SAME_STEP), after ? 0 : 2);
    assert_int_equal(needs(candidate, mm_index(&dag->layers[0], 0, MM_HIDDEN, GATE_R), MM_SAME_STEP), !after);
    assert_int_equal(needs(candidate, mm_index(&dag->layers[0], 0, MM_INPUT, GATE_R), MM_SAME_STEP), !after);
    assert_int_equal(count_needs(hidden_mm(dag, 0, 0, GATE_Z), MM_SAME_STEP), 0);
    assert_int_equal(count_needs(hidden_mm(dag, 0, 0, GATE_R), MM_SAME_STEP), 0);
  }
}

static void a_layer_waits_step_for_step_for_the_one_below_whatever_views_stand_between(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "LSTM", "f32[T,B,3] f32[1,20,3]! f32[1,20,5]!", "hidden_size=5", 1);
  build_node(graph, "Squeeze", "@0 i64=1", "", 1);
  build_node(graph, "Relu", "@1", "", 1);
  Node *top = build_node(graph, "GRU", "@2 f32[1,15,5]! f32[1,15,5]!", "hidden_size=5", 1);
  build_output(graph, top->outputs[0]);
  MmDag *dag = dag_of(graph);
  assert_int_equal(dag->n_layers, 2);
  assert_int_equal(count_needs(input_mm(dag, 1, 0, 0), MM_SAME_STEP), 8);
  assert_int_equal(input_mm(dag, 1, 0, 0)->n_needs, 8);
}

static void a_layer_on_a_bidirectional_or_turned_one_waits_for_all_its_steps(void **state) {
  (void)state;
  static const char *const below[] = {"direction=bidirectional", "direction=reverse"};
  for (int i = 0; i < 2; i++) {
    Graph *graph = build_graph(arena);
    const char *attributes = arena_format(arena, "hidden_size=5 %s", below[i]);
    const char *inputs = i ? "f32[T,B,3] f32[1,5,3]! f32[1,5,5]!" : "f32[T,B,3] f32[2,5,3]! f32[2,5,5]!";
    build_node(graph, "RNN", inputs, attributes, 1);
    build_node(graph, "Transpose", "@0", "perm=[0,2,1,3]", 1);
    build_node(graph, "Reshape", i ? "@1 i64=0,0,5" : "@1 i64=0,0,10", "", 1);
    const char *top = i ? "@2 f32[1,5,5]! f32[1,5,5]!" : "@2 f32[1,5,10]! f32[1,5,5]!";
    build_output(graph, build_node(graph, "RNN", top, "hidden_size=5", 1)->outputs[0]);
    MmDag *dag = dag_of(graph);
    assert_int_equal(count_needs(input_mm(dag, 1, 0, 0), MM_ALL_STEPS), i ? 2 : 4);
    assert_int_equal(input_mm(dag, 1, 0, 0)->n_needs, i ? 2 : 4);
  }
}

static void an_initial_state_from_another_layer_waits_for_all_its_steps(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *encoder = build_node(graph, "RNN", "f32[T,B,3] f32[1,5,3]! f32[1,5,5]!", "hidden_size=5", 2);
  Node *decoder = build_node(graph, "RNN", "f32[T,B,3] f32[1,5,3]! f32[1,5,5]! _ _ @0", "hidden_size=5", 1);
  decoder->inputs[5] = encoder->outputs[1];
  build_output(graph, decoder->outputs[0]);
  MmDag *dag = dag_of(graph);
  assert_int_equal(count_needs(hidden_mm(dag, 1, 0, 0), MM_ALL_STEPS), 2);
  assert_int_equal(count_needs(hidden_mm(dag, 1, 0, 0), MM_STEP_BEFORE), 2);
  assert_int_equal(input_mm(dag, 1, 0, 0)->n_needs, 0);
}

/* A MatMul two products away from the layer is no part of its DAG. */
static void matrix_products_next_to_a_layer_are_nodes_and_others_are_not(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "MatMul", "f32[T,B,7] f32[7,6]!", "", 1);
  build_node(graph, "MatMul", "@0 f32[6,3]!", "", 1);
  build_node(graph, "Relu", "@1", "", 1);
  build_node(graph, "RNN", "@2 f32[1,5,3]! f32[1,5,5]!", "hidden_size=5", 1);
  build_node(graph, "MatMul", "@3 f32[5,4]!", "", 1);
  build_node(graph, "MatMul", "@4 f32[4,2]!", "", 1);
  build_output(graph, graph->nodes[5]->outputs[0]);
  MmDag *dag = dag_of(graph);
  assert_int_equal(dag->n_mms, 4);
  const Mm *before = &dag->mms[0], *after = &dag->mms[3];
  assert_int_equal(before->operand, MM_AROUND);
  assert_int_equal(before->columns, 3);
  assert_int_equal(before->depth, 6);
  assert_true(needs(input_mm(dag, 0, 0, 0), 0, MM_SAME_STEP));
  assert_int_equal(after->operand, MM_AROUND);
  assert_int_equal(count_needs(after, MM_SAME_STEP), 2);
}

static void a_graph_without_recurrent_ops_has_an_empty_dag(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_output(graph, build_node(graph, "MatMul", "f32[T,B,7] f32[7,6]!", "", 1)->outputs[0]);
  assert_int_equal(dag_of(graph)->n_mms, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_lstm_step_has_eight_products_of_which_four_wait_for_the_step_before, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(a_gru_candidate_waits_for_the_reset_gate_only_if_that_comes_before_its_product,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(a_layer_waits_step_for_step_for_the_one_below_whatever_views_stand_between, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(a_layer_on_a_bidirectional_or_turned_one_waits_for_all_its_steps, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(an_initial_state_from_another_layer_waits_for_all_its_steps, setup, teardown),
      cmocka_unit_test_setup_teardown(matrix_products_next_to_a_layer_are_nodes_and_others_are_not, setup, teardown),
      cmocka_unit_test_setup_teardown(a_graph_without_recurrent_ops_has_an_empty_dag, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
