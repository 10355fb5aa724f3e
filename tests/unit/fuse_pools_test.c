/* SPDX-License-Identifier: MIT */
/* fuse_pools with convolutions whose kernels can pool: which poolings they do, and how the graph changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ir/family.h"
#include "steps.h"

static bool always(const Node *node) {
  (void)node;
  return true;
}
static bool never(const Node *node) {
  (void)node;
  return false;
}
static const KernelFamily able = {.pools = always};
static const KernelFamily unable = {.pools = never};
static const KernelFamily other = {0};

static void set_family(Node *node, const KernelFamily *family) {
  OpInfo *op = arena_copy(arena, node->op, sizeof *op);
  op->family = family;
  node->op = op;
}

/* All values between nodes are blocked, as after choose_layouts, and every Conv is of this family. */
static Graph *built(const Steps steps, const KernelFamily *family) {
  Graph *graph = built_of(steps);
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    node->layout = (NodeLayout){LAYOUT_BLOCKED, LAYOUT_BLOCKED};
    for (int i = 0; i < node->n_outputs; i++) node->outputs[i]->channel_block = 16;
    set_family(node, is_op(node, OP_Conv) ? family : &other);
    node->schedule = ARENA_NEW(arena, Schedule);
    node->schedule->text = "usual";
  }
  return graph;
}

static Graph *fused(Graph *graph) {
  fuse_pools(graph);
  verify(graph);
  return graph;
}

#define CONV "Conv", "f32[B,3,9,8] f32[16,3,3,3]!", "pads=[1,1,1,1]"

static void a_maximum_of_2x2_is_its_kernel_s(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] auto_pad=VALID"}},
      {{"Conv", "f32[B,3,8,6] f32[16,3,1,1]!", ""}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"}},
      {{"Conv", "f32[B,3,8,6] f32[16,3,1,1]!", ""},
       {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] auto_pad=SAME_UPPER"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Graph *graph = fused(built(cases[i], &able));
    if (graph->n_nodes != 1) fail_msg("case %zu", i);
    const Node *host = graph->nodes[0];
    assert_string_equal(host->pool->op->name, "MaxPool");
    assert_string_equal(host->schedule->text, "usual_max2x2");
    assert_ptr_equal(host->outputs[0], graph->outputs[0]);
    assert_string_equal(text_of(graph, host->outputs[0]), i < 2 ? "f32[B, 16, 4, 4]" : "f32[B, 16, 4, 3]");
  }
}

static void other_poolings_stay(void **state) {
  (void)state;
  static const Steps cases[] = {
      {{CONV}, {"AveragePool", "@0", "kernel_shape=[2,2] strides=[2,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,1]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,3] strides=[2,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[3,2] strides=[2,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] dilations=[1,2]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] pads=[0,1,0,1]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] pads=[0,0,1,0]"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] pads=[0,1,0,0]"}}, /* as many windows */
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"}},
      {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2] auto_pad=SAME_UPPER"}},
      {{CONV}, {"Relu", "@0", ""}, {"MaxPool", "@1", "kernel_shape=[2,2] strides=[2,2]"}},
      {{"Conv", "f32[B,3,8] f32[16,3,1]!", ""}, {"MaxPool", "@0", "kernel_shape=[2] strides=[2]"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int before = built_of(cases[i])->n_nodes;
    if (fused(built(cases[i], &able))->n_nodes != before) fail_msg("case %zu", i);
  }
}

static const Steps conv_pool = {{CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"}};

static void kernels_that_cannot_are_left_alone(void **state) {
  (void)state;
  assert_int_equal(fused(built(conv_pool, &unable))->n_nodes, 2);
  assert_int_equal(fused(built(conv_pool, &other))->n_nodes, 2);
}

static void what_others_read_is_written(void **state) {
  (void)state;
  static const Steps twice = {
      {CONV}, {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"}, {"MaxPool", "@0", "kernel_shape=[2,2]"}};
  Graph *graph = built(twice, &able);
  build_output(graph, graph->nodes[1]->outputs[0]);
  assert_int_equal(fused(graph)->n_nodes, 3);
  graph = built(conv_pool, &able);
  build_output(graph, graph->nodes[0]->outputs[0]);
  assert_int_equal(fused(graph)->n_nodes, 2);
}

static void the_pooling_is_in_the_same_blocks(void **state) {
  (void)state;
  for (int node = 0; node < 2; node++) {
    Graph *graph = built(conv_pool, &able);
    graph->nodes[node]->outputs[0]->channel_block = 0;
    assert_int_equal(fused(graph)->n_nodes, 2);
  }
}

static void a_kernel_pools_once(void **state) {
  (void)state;
  static const Steps steps = {{CONV},
                              {"MaxPool", "@0", "kernel_shape=[2,2] strides=[2,2]"},
                              {"MaxPool", "@1", "kernel_shape=[2,2] strides=[2,2]"}};
  assert_int_equal(fused(built(steps, &able))->n_nodes, 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_maximum_of_2x2_is_its_kernel_s),   TEST(other_poolings_stay),
      TEST(kernels_that_cannot_are_left_alone), TEST(what_others_read_is_written),
      TEST(the_pooling_is_in_the_same_blocks),  TEST(a_kernel_pools_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
