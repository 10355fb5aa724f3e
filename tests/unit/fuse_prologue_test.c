/* SPDX-License-Identifier: MIT */
/* fuse_prologue with a family that accepts every prologue: nodes from a batch normalisation on are fused, if nothing
 * else reads their results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/family.h"
#include "steps.h"

static bool take_all(Graph *graph, const Node *host, const Node *prologue) {
  (void)graph, (void)host, (void)prologue;
  return true;
}
static bool take_norms(Graph *graph, const Node *host, const Node *prologue) {
  (void)graph, (void)host;
  return is_op(prologue, OP_BatchNormalization);
}
static const KernelFamily greedy = {.takes_prologue = take_all};
static const KernelFamily picky = {.takes_prologue = take_norms};

#define NORM "f32=2,-3 f32=1,5 f32=4,-6 f32=1,9"

/* The last node is of this family, and so is every Conv. */
static Graph *built(const Steps steps, const KernelFamily *family) {
  Graph *graph = build_graph(arena);
  add_steps(graph, steps);
  for (int i = 0; i < graph->n_nodes; i++) {
    OpInfo *op = arena_copy(arena, graph->nodes[i]->op, sizeof *op);
    op->family = op->kind == OP_Conv || i == graph->n_nodes - 1 ? family : NULL;
    graph->nodes[i]->op = op;
  }
  return build_end(graph);
}

static Graph *fused(Graph *graph) {
  fuse_prologue(graph);
  verify(graph);
  return graph;
}

static const Steps norm_relu_conv = {{"BatchNormalization", "f32[1,2,6] " NORM, "epsilon=0"},
                                     {"Relu", "@0", ""},
                                     {"Clip", "@1 _ f32(6)", ""},
                                     {"Conv", "@2 f32[3,2,1]!", ""}};

static void normalisation_and_activation_fuse_in_their_order(void **state) {
  (void)state;
  Graph *graph = fused(built(norm_relu_conv, &greedy));
  assert_int_equal(graph->n_nodes, 1);
  const Node *host = graph->nodes[0];
  assert_int_equal(host->n_prologue, 3);
  assert_string_equal(host->prologue[0]->op->name, "BatchNormalization");
  assert_string_equal(host->prologue[1]->op->name, "Relu");
  assert_string_equal(host->prologue[2]->op->name, "Clip");
  assert_ptr_equal(host->inputs[0], graph->inputs[0]);
}

/* Small integers: all sums are exact, so the results are bit-identical. */
static void fusing_keeps_the_result(void **state) {
  (void)state;
  const Tensor *before = run_on_integers(built(norm_relu_conv, &greedy), -3),
               *after = run_on_integers(fused(built(norm_relu_conv, &greedy)), -3);
  assert_memory_equal(before->data, after->data, 18 * sizeof(float));
}

static void each_reader_of_a_tensor_has_its_own(void **state) {
  (void)state;
  static const Steps steps = {{"Neg", "f32[1,2,6]", ""},
                              {"BatchNormalization", "@0 " NORM, ""},
                              {"Conv", "@1 f32[2,2,1]!", ""},
                              {"BatchNormalization", "@0 " NORM, ""},
                              {"Conv", "@3 f32[2,2,1]!", ""}};
  Graph *graph = built(steps, &greedy);
  build_output(graph, graph->nodes[2]->outputs[0]);
  fused(graph);
  assert_int_equal(graph->n_nodes, 3);
  assert_int_equal(graph->nodes[1]->n_prologue, 1);
  assert_int_equal(graph->nodes[2]->n_prologue, 1);
}

static void a_host_may_have_one_input(void **state) {
  (void)state;
  static const Steps steps = {{"BatchNormalization", "f32[1,2,6] " NORM, ""}, {"MaxPool", "@0", "kernel_shape=[2]"}};
  Graph *graph = fused(built(steps, &greedy));
  assert_int_equal(graph->n_nodes, 1);
  assert_int_equal(graph->nodes[0]->n_prologue, 1);
}

static void what_others_read_or_the_family_refuses_stays(void **state) {
  (void)state;
  static const Steps shared = {{"BatchNormalization", "f32[1,2,6] " NORM, ""},
                               {"Relu", "@0", ""},
                               {"Conv", "@1 f32[2,2,1]!", ""},
                               {"Add", "@1 @2", ""}};
  static const Steps no_norm = {{"Relu", "f32[1,2,6]", ""}, {"Conv", "@0 f32[2,2,1]!", ""}};
  static const Steps unknown = {{"BatchNormalization", "f32[1,2,6] f32[2] f32[2] f32[2] f32[2]", ""},
                                {"Conv", "@0 f32[2,2,1]!", ""}};
  static const Steps sum = {
      {"BatchNormalization", "f32[1,2,6] " NORM, ""}, {"Add", "@0 f32[1,2,6]", ""}, {"Conv", "@1 f32[2,2,1]!", ""}};
  assert_int_equal(fused(built(shared, &greedy))->n_nodes, 4);
  assert_int_equal(fused(built(no_norm, &greedy))->n_nodes, 2);
  assert_int_equal(fused(built(unknown, &greedy))->n_nodes, 2);
  assert_int_equal(fused(built(sum, &greedy))->n_nodes, 3);
  assert_int_equal(fused(built(norm_relu_conv, &picky))->n_nodes, 4);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(normalisation_and_activation_fuse_in_their_order),
      TEST(fusing_keeps_the_result),
      TEST(each_reader_of_a_tensor_has_its_own),
      TEST(a_host_may_have_one_input),
      TEST(what_others_read_or_the_family_refuses_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
