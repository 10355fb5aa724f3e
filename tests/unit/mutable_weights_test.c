/* SPDX-License-Identifier: MIT */
/* Weights that can change: what becomes of a batch normalisation, and which nodes compute of weights alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/mutable.h"
#include "steps.h"

static Graph *with_weights(const Steps steps) {
  Graph *graph = build_graph(arena);
  add_steps(graph, steps);
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  graph_renumber(graph);
  build_config(graph, "x86-64-v3")->mutable_weights = true;
  take_weights(graph);
  infer_shapes(graph);
  return graph;
}

/* ---- batch normalisations ---- */

#define NORM "f32[3]! f32[3]! f32[3]! f32[3]!"

static int norms_after(const Steps steps) {
  Graph *graph = with_weights(steps);
  fold_affine(graph);
  verify(graph);
  infer_shapes(graph);
  return count_nodes(graph, "BatchNormalization");
}

static void a_convolution_takes_the_normalisation_behind_it(void **state) {
  (void)state;
  static const Steps taken[] = {
      {{"Conv", "f32[1,2,5] f32[3,2,2]!", ""}, {"BatchNormalization", "@0 " NORM, ""}},
      {{"Conv", "f32[1,2,5] f32[3,2,2]! f32[3]!", ""}, {"BatchNormalization", "@0 " NORM, ""}},
      {{"ConvTranspose", "f32[1,2,5] f32[2,3,2]!", ""}, {"BatchNormalization", "@0 " NORM, ""}},
  };
  static const Steps left[] = {
      {{"Relu", "f32[1,3,5]", ""}, {"BatchNormalization", "@0 " NORM, ""}},
      {{"ConvTranspose", "f32[1,3,5] f32[3,1,2]!", "group=3"}, {"BatchNormalization", "@0 " NORM, ""}},
      {{"Conv", "f32[1,2,5] f32[3,2,2]!", ""}, {"BatchNormalization", "@0 " NORM, ""}, {"Add", "@0 @1", ""}},
  };
  for (int i = 0; i < 3; i++) assert_int_equal(norms_after(taken[i]), 0);
  for (int i = 0; i < 3; i++) assert_int_equal(norms_after(left[i]), 1);
}

/* Of one that stays, scale and shift are computed of the weights. */
static void what_stays_is_a_scale_and_a_shift(void **state) {
  (void)state;
  static const Steps steps = {{"Relu", "f32[1,3,5]", ""}, {"BatchNormalization", "@0 " NORM, ""}};
  Graph *graph = with_weights(steps);
  fold_affine(graph);
  const Node *norm = producer_named(graph, "BatchNormalization");
  assert_true(node_float(norm, ATTR_epsilon) == 0);
  for (int i = 0; i < 3; i++) {
    assert_true(((const float *)norm->inputs[3]->data)[i] == 0); /* mean */
    assert_true(((const float *)norm->inputs[4]->data)[i] == 1); /* variance */
  }
  assert_string_equal(norm->inputs[1]->producer->op->name, "Div");
  assert_string_equal(norm->inputs[2]->producer->op->name, "Sub");
}

/* ---- what is derived of weights ---- */

/* Nodes of weights alone leave the network, also those that lack an input; each of their results is a constant. */
static void what_weights_alone_tell_is_derived(void **state) {
  (void)state;
  static const Steps steps = {{"LayerNormalization", "f32[4]! f32[4]! _", ""},
                              {"Neg", "f32[4]!", ""},
                              {"Mul", "@0 @1", ""},
                              {"Mul", "f32[2,4] @2", ""},
                              {"Add", "@3 @0", ""},
                              {"Relu", "@4", ""}};
  Graph *graph = with_weights(steps);
  derive_weights(graph);
  const MutableWeights *m = graph->mutables;
  assert_int_equal(graph->n_nodes, 3);
  assert_int_equal(m->derivation->n_nodes, 3);
  assert_int_equal(m->n_derived, 2);
  for (int i = 0; i < m->n_derived; i++) {
    assert_int_equal(m->derived[i]->block, m->n_weights + 1 + i);
    assert_non_null(m->derived[i]->data);
    assert_null(m->derived[i]->producer);
  }
  for (int i = 0; i < m->n_weights; i++) assert_int_equal(m->weights[i].value->block, 1 + i);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_convolution_takes_the_normalisation_behind_it),
      TEST(what_stays_is_a_scale_and_a_shift),
      TEST(what_weights_alone_tell_is_derived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
