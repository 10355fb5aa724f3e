/* SPDX-License-Identifier: MIT */
/* The layout passes, with families that can all run blocked except MatMul's and Flatten's. Convolutions seek blocking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/family.h"
#include "ir_build.h"
#include "layout/layout.h"
#include "machine/targets.h"
#include "passes.h"

static Arena *arena;

static LayoutSet blocked(Graph *graph, const Node *node) {
  (void)graph;
  (void)node;
  return LAYOUT_SET_BLOCKED;
}
static LayoutSet blocked_or_narrow(Graph *graph, const Node *node) { return blocked(graph, node) | LAYOUT_SET_NARROW; }
static const KernelFamily seeking = {.layouts = blocked_or_narrow, .seeks_blocked = true};
static const KernelFamily following = {.layouts = blocked};
static const KernelFamily plain = {0};

static int setup(void **state) {
  (void)state;
  arena = arena_new();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  arena_free(arena);
  return 0;
}

static const KernelFamily *family_of(const char *op) {
  if (!strcmp(op, "Conv")) return &seeking;
  return !strcmp(op, "MatMul") || !strcmp(op, "Flatten") ? &plain : &following;
}

/* Nodes of {op, inputs, attributes}, after all layout passes; the last one makes the output. LANES is 16. */
static Graph *laid_out(const char *const (*rows)[3], int n) {
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  for (int i = 0; i < n; i++) {
    int outputs = strcmp(rows[i][0], "Split") ? 1 : 2;
    Node *node = build_node(graph, rows[i][0], rows[i][1], rows[i][2] ? rows[i][2] : "", outputs);
    OpInfo *op = arena_copy(arena, node->op, sizeof *op);
    op->family = family_of(op->name);
    node->op = op;
  }
  build_output(graph, graph->nodes[n - 1]->outputs[0]);
  infer_shapes(graph);
  choose_layouts(graph);
  insert_layout_transforms(graph);
  place_parts(graph);
  verify(graph);
  return graph;
}
#define LAID_OUT(...)                                                                                                  \
  laid_out((const char *const[][3]){__VA_ARGS__}, sizeof((const char *const[][3]){__VA_ARGS__}) / (3 * sizeof(char *)))

static void a_residual_network_is_transformed_once_at_each_end(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,3,8,8] f32[32,3,1,1]!"}, {"Relu", "@0"}, {"Conv", "@1 f32[32,32,1,1]!"},
                          {"Add", "@2 @1"}, {"MaxPool", "@3", "kernel_shape=[2,2]"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 2);
  assert_string_equal(graph->nodes[0]->op->name, "LayoutTransform");
  assert_int_equal(graph->nodes[0]->outputs[0]->channel_block, 3);
  for (int n = 1; n < graph->n_nodes - 1; n++) assert_int_equal(graph->nodes[n]->outputs[0]->channel_block, 16);
  assert_int_equal(graph->outputs[0]->channel_block, 0);
}

static void one_pixel_in_whole_blocks_needs_no_transform(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,8,8] f32[32,16,8,8]!"}, {"Flatten", "@0"}, {"MatMul", "@1 f32[32,5]!"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 1);
  graph = LAID_OUT({"Conv", "f32[B,16,8,8] f32[33,16,8,8]!"}, {"Flatten", "@0"}, {"MatMul", "@1 f32[33,5]!"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 2);
}

static void readers_that_agree_share_a_transform(void **state) {
  (void)state;
  Graph *graph =
      LAID_OUT({"Conv", "f32[B,16,8,8] f32[16,16,1,1]!"}, {"Flatten", "@0"}, {"Flatten", "@0"}, {"Add", "@1 @2"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 2);
}

static void what_no_convolution_precedes_stays_as_it_is(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Relu", "f32[B,16,8,8]"}, {"MaxPool", "@0", "kernel_shape=[2,2]"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 0);
  assert_false(is_blocked(graph->nodes[0]));
}

static void spatial_extents_of_run_time_stay_plain(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,T,8] f32[16,16,1,1]!"});
  assert_false(is_blocked(graph->nodes[0]));
}

static void a_mask_over_pixels_is_read_row_major(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,8,8] f32[16,16,1,1]!"}, {"Mul", "@0 f32[B,1,8,8]"});
  assert_int_equal(count_nodes(graph, "LayoutTransform"), 2);
  assert_int_equal(graph->nodes[2]->inputs[1]->channel_block, 0);
}

static int64_t floats_before(const Value *value) { return value_first_byte(value) / (int64_t)sizeof(float); }

static void parts_of_a_concat_are_written_in_place(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,4,4] f32[32,16,1,1]!"}, {"Conv", "@0 f32[16,32,1,1]!"},
                          {"Concat", "@0 @1", "axis=1"}, {"Relu", "@2"});
  const Node *concat = producer_named(graph, "Concat");
  assert_ptr_equal(concat->inputs[0]->view_of, concat->outputs[0]);
  assert_ptr_equal(concat->inputs[1]->view_of, concat->outputs[0]);
  assert_int_equal(floats_before(concat->inputs[1]), 2 * 4 * 4 * 16);
  assert_int_equal(dim_value(blocked_of(graph, concat->inputs[1]).image), 3 * 4 * 4 * 16);
}

/* With 24 channels, the second part begins within a block. */
static void channels_within_a_block_are_copied(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,4,4] f32[24,16,1,1]!"}, {"Conv", "@0 f32[16,24,1,1]!"},
                          {"Concat", "@0 @1", "axis=1"}, {"Relu", "@2"});
  const Node *concat = producer_named(graph, "Concat");
  assert_null(concat->inputs[0]->view_of);
  assert_null(concat->inputs[1]->view_of);
}

/* A copy from one of its places to the other would read what it writes. */
static void the_same_value_twice_is_copied(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,4,4] f32[16,16,1,1]!"}, {"Concat", "@0 @0", "axis=1"}, {"Relu", "@1"});
  const Node *concat = producer_named(graph, "Concat");
  assert_true(is_blocked(concat));
  assert_null(concat->inputs[0]->view_of);
}

/* The first input is in place; its first half is copied to a place within a block. */
static void a_half_of_a_part_is_no_part_if_it_is_copied_beside(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,4,4] f32[32,16,1,1]!"}, {"Split", "@0 i64=16,16", "axis=1"},
                          {"Conv", "@0 f32[8,32,1,1]!"}, {"Concat", "@0 @2 @1", "axis=1"}, {"Relu", "@3"});
  const Node *concat = producer_named(graph, "Concat"), *split = producer_named(graph, "Split");
  assert_true(is_blocked(concat) && is_blocked(split));
  assert_ptr_equal(concat->inputs[0]->view_of, concat->outputs[0]);
  assert_null(split->outputs[0]->view_of);
  assert_ptr_equal(split->outputs[1]->view_of, split->inputs[0]);
}

/* A reader that needs whole images side by side prevents that the value is a part of the buffer. */
static void a_value_with_row_major_readers_is_copied(void **state) {
  (void)state;
  Graph *graph = LAID_OUT({"Conv", "f32[B,16,1,1] f32[16,16,1,1]!"}, {"Flatten", "@0"}, {"Concat", "@0 @0", "axis=1"},
                          {"Relu", "@2"}, {"Flatten", "@3"}, {"Concat", "@1 @4", "axis=1"});
  const Node *concat = producer_named(graph, "Concat");
  assert_null(concat->inputs[0]->view_of);
}

/* DenseNet: each concatenation begins with the one before, in either form that exporters write. */
static void growing_concatenations_share_one_buffer(void **state) {
  (void)state;
  Graph *graph =
      LAID_OUT({"Conv", "f32[B,16,4,4] f32[16,16,1,1]!"}, {"Conv", "@0 f32[16,16,1,1]!"}, {"Concat", "@0 @1", "axis=1"},
               {"Conv", "@2 f32[16,32,1,1]!"}, {"Concat", "@0 @1 @3", "axis=1"}, {"Conv", "@4 f32[16,48,1,1]!"});
  const Value *whole = graph->nodes[graph->n_nodes - 2]->inputs[0];
  int parts = 0;
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i] != whole && value_root(graph->values[i]) == whole) parts++;
  assert_int_equal(parts, 4);
}

static void nested_concatenations_share_one_buffer(void **state) {
  (void)state;
  Graph *graph =
      LAID_OUT({"Conv", "f32[B,16,4,4] f32[16,16,1,1]!"}, {"Conv", "@0 f32[16,16,1,1]!"}, {"Concat", "@0 @1", "axis=1"},
               {"Conv", "@2 f32[16,32,1,1]!"}, {"Concat", "@2 @3", "axis=1"}, {"Conv", "@4 f32[16,48,1,1]!"});
  const Value *second = producer_named(graph, "Concat")->inputs[1];
  assert_int_equal(floats_before(second), 4 * 4 * 16);
  assert_int_equal(dim_value(blocked_of(graph, second).image), 3 * 4 * 4 * 16);
}

static void halves_of_a_split_are_read_in_place(void **state) {
  (void)state;
  Graph *graph =
      LAID_OUT({"Conv", "f32[B,16,4,4] f32[48,16,1,1]!"}, {"Split", "@0 i64=32,16", "axis=1"}, {"Relu", "@1"});
  const Node *split = producer_named(graph, "Split");
  assert_ptr_equal(split->outputs[0]->view_of, split->inputs[0]);
  assert_int_equal(floats_before(split->outputs[1]), 2 * 4 * 4 * 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      TEST(a_residual_network_is_transformed_once_at_each_end),
      TEST(one_pixel_in_whole_blocks_needs_no_transform),
      TEST(readers_that_agree_share_a_transform),
      TEST(what_no_convolution_precedes_stays_as_it_is),
      TEST(spatial_extents_of_run_time_stay_plain),
      TEST(a_mask_over_pixels_is_read_row_major),
      TEST(parts_of_a_concat_are_written_in_place),
      TEST(channels_within_a_block_are_copied),
      TEST(the_same_value_twice_is_copied),
      TEST(a_half_of_a_part_is_no_part_if_it_is_copied_beside),
      TEST(a_value_with_row_major_readers_is_copied),
      TEST(growing_concatenations_share_one_buffer),
      TEST(nested_concatenations_share_one_buffer),
      TEST(halves_of_a_split_are_read_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
