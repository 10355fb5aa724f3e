/* SPDX-License-Identifier: MIT */
/* Barriers of the schedule: one where a call touches memory that a call since the last barrier wrote, none elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_program.h"

static Program *program;

static void begin(void) { program = hand_program(); }

/* f32[2, channels, 3, 3] in blocks of 8. */
static Value *image(int64_t channels, int64_t offset) {
  const int64_t shape[] = {2, channels, 3, 3};
  Value *value = graph_constant(program->graph, "v", RNNCC_F32, 4, shape, NULL);
  program_add_value(program, value);
  value->channel_block = 8;
  value->storage = STORAGE_ARENA;
  value->offset = offset;
  return value;
}

static Value *part(Value *whole, int64_t channels, int64_t first_block) {
  Value *value = image(channels, 0);
  value->view_of = whole;
  value->first_block = first_block;
  return value;
}

static int barriers(void) {
  place_barriers(program);
  return hand_count(program, ITEM_BARRIER);
}

static void a_result_is_read_behind_a_barrier(void **state) {
  (void)state;
  begin();
  Value *a = image(16, 0), *b = image(16, 4096), *c = image(16, 8192);
  hand_call(program, NULL, a);
  hand_call(program, a, b);
  hand_call(program, b, c);
  assert_int_equal(barriers(), 2);
}

static void readers_of_one_value_need_none_between(void **state) {
  (void)state;
  begin();
  Value *a = image(16, 0);
  hand_call(program, NULL, a);
  hand_call(program, a, image(16, 4096));
  hand_call(program, a, image(16, 8192));
  assert_int_equal(barriers(), 1);
}

static void memory_is_used_again_behind_a_barrier(void **state) {
  (void)state;
  begin();
  hand_call(program, image(16, 0), image(16, 4096));
  hand_call(program, NULL, image(16, 64)); /* over what the call before reads */
  assert_int_equal(barriers(), 1);
}

/* Slices of a concatenation, written by independent branches, then read as one. */
static void parts_of_one_tensor_are_written_without_a_barrier(void **state) {
  (void)state;
  begin();
  Value *whole = image(35, 0);
  hand_call(program, NULL, part(whole, 16, 0));
  hand_call(program, NULL, part(whole, 8, 2));
  hand_call(program, NULL, part(whole, 11, 3));
  hand_call(program, whole, image(16, 65536));
  assert_int_equal(barriers(), 1);
  assert_int_equal(program->schedule->items[3]->kind, ITEM_BARRIER);
}

static void a_part_is_read_behind_a_barrier(void **state) {
  (void)state;
  begin();
  Value *whole = image(40, 0), *middle = part(whole, 16, 2);
  hand_call(program, NULL, part(middle, 8, 1)); /* blocks 3..3 of the whole */
  hand_call(program, part(whole, 24, 0), image(16, 65536));
  hand_call(program, part(whole, 8, 3), image(16, 131072));
  assert_int_equal(barriers(), 1);
  assert_int_equal(program->schedule->items[2]->kind, ITEM_BARRIER);
}

/* A view in another layout may touch any channel. */
static void a_view_that_is_no_part_may_be_anywhere(void **state) {
  (void)state;
  begin();
  Value *whole = image(32, 0), *flat = image(16, 0);
  flat->view_of = whole;
  flat->channel_block = 0;
  hand_call(program, NULL, part(whole, 8, 3));
  hand_call(program, flat, image(16, 65536));
  assert_int_equal(barriers(), 1);
}

/* Copies of the parts of a concatenation, each to its place; then a copy whose place is not known. */
static void calls_of_a_node_that_share_a_value_need_no_barrier_between(void **state) {
  (void)state;
  begin();
  Value *y = image(16, 0);
  const Node *node = hand_call(program, NULL, y)->item->node;
  operand_sharing(program->calls[0], "y", SHARED_APART);
  for (int i = 1; i < 4; i++) {
    Call *call = program_call(program, node, &hand_kernel);
    operand_value(call, "y", y, WRITE);
    if (i < 3) operand_sharing(call, "y", SHARED_APART);
  }
  assert_int_equal(barriers(), 1);
  assert_int_equal(program->schedule->items[3]->kind, ITEM_BARRIER);
}

static void calls_of_other_nodes_share_nothing(void **state) {
  (void)state;
  begin();
  Value *y = image(16, 0);
  for (int i = 0; i < 2; i++) operand_sharing(hand_call(program, NULL, y), "y", SHARED_APART);
  assert_int_equal(barriers(), 1);
}

/* Barriers are before a loop begins, before its body ends, and before items behind it that read. */
static void workers_meet_at_the_borders_of_a_block(void **state) {
  (void)state;
  begin();
  Value *a = image(16, 0), *b = image(16, 4096);
  const DimSymbol *counter = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  const Node *node = hand_call(program, NULL, a)->item->node;
  program_loop(program, node, counter, dim_const(program->graph->dims, 9), NULL);
  hand_call(program, a, b);
  program_end(program);
  hand_call(program, b, NULL);
  place_barriers(program);
  const Block *block = program->schedule;
  assert_int_equal(block->count, 4);
  assert_int_equal(block->items[1]->kind, ITEM_BARRIER);
  assert_int_equal(block->items[2]->block->count, 2);
  assert_int_equal(block->items[2]->block->items[1]->kind, ITEM_BARRIER);
  assert_int_equal(block->items[3]->kind, ITEM_CALL);
}

/* A flag that ends a loop, or leads to a branch, is read by some while others are behind the loop, or in the branch. */
static void a_condition_is_read_until_a_barrier_behind_it(void **state) {
  (void)state;
  for (int within = 0; within < 2; within++) {
    begin();
    Value *flag = image(16, 0), *b = image(16, 4096), *over_flag = image(16, 0);
    const Node *node = hand_call(program, NULL, flag)->item->node;
    const DimSymbol *counter = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
    program_loop(program, node, counter, within ? dim_const(program->graph->dims, 9) : NULL, within ? NULL : flag);
    if (within) program_break_unless(program, node, flag);
    hand_call(program, NULL, b);
    program_end(program);
    hand_call(program, NULL, over_flag);
    place_barriers(program);
    const Block *block = program->schedule;
    assert_int_equal(block->count, 5);
    assert_int_equal(block->items[3]->kind, ITEM_BARRIER);
  }
  begin();
  Value *flag = image(16, 0);
  program_if(program, hand_call(program, NULL, flag)->item->node, flag);
  program_else(program);
  hand_call(program, NULL, image(16, 0));
  program_end(program);
  place_barriers(program);
  assert_int_equal(program->schedule->items[2]->other->items[0]->kind, ITEM_BARRIER);
}

static int barriers_of_wavefront(int layers) {
  begin();
  Value *a = image(16, 0), *b = image(16, 4096);
  program_wavefront(program, NULL, layers, 5, dim_const(program->graph->dims, 20));
  hand_call(program, NULL, a);
  program_layer(program, layers - 1);
  hand_call(program, a, b);
  program_end(program);
  return barriers();
}

static void a_turn_of_a_wavefront_begins_with_a_barrier(void **state) {
  (void)state;
  assert_int_equal(barriers_of_wavefront(2), 1);
}

static void a_result_of_a_lone_layer_is_read_behind_a_barrier(void **state) {
  (void)state;
  assert_int_equal(barriers_of_wavefront(1), 2);
}

/* Products of two directions, then their steps. */
static void directions_of_a_lone_layer_run_at_once(void **state) {
  (void)state;
  begin();
  Value *gates = image(16, 0);
  program_wavefront(program, NULL, 1, 5, dim_const(program->graph->dims, 20));
  const Node *node = hand_call(program, NULL, gates)->item->node;
  operand_sharing(program->calls[0], "y", SHARED_BY_WORKER);
  for (int i = 1; i < 4; i++) {
    Call *call = program_call(program, node, &hand_kernel);
    operand_value(call, "y", gates, i < 2 ? WRITE : READ_WRITE);
    operand_sharing(call, "y", i < 2 ? SHARED_BY_WORKER : SHARED_APART);
  }
  program_end(program);
  assert_int_equal(barriers(), 2);
}

/* One worker finds the extent; the others may read it only behind a barrier. */
static void a_found_dim_is_needed_behind_a_barrier(void **state) {
  (void)state;
  begin();
  const DimSymbol *symbol = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  const Dim *found = dim_symbol(program->graph->dims, symbol);
  operand_found(hand_call(program, NULL, image(16, 0)), "found", found);
  hand_call(program, NULL, image(16, 4096));
  operand_dim(hand_call(program, NULL, image(16, 8192)), "n", found);
  place_barriers(program);
  assert_int_equal(program->schedule->count, 4);
  assert_int_equal(program->schedule->items[2]->kind, ITEM_BARRIER);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_result_is_read_behind_a_barrier),
      TEST(readers_of_one_value_need_none_between),
      TEST(memory_is_used_again_behind_a_barrier),
      TEST(parts_of_one_tensor_are_written_without_a_barrier),
      TEST(a_part_is_read_behind_a_barrier),
      TEST(a_view_that_is_no_part_may_be_anywhere),
      TEST(calls_of_a_node_that_share_a_value_need_no_barrier_between),
      TEST(calls_of_other_nodes_share_nothing),
      TEST(workers_meet_at_the_borders_of_a_block),
      TEST(a_condition_is_read_until_a_barrier_behind_it),
      TEST(a_turn_of_a_wavefront_begins_with_a_barrier),
      TEST(a_result_of_a_lone_layer_is_read_behind_a_barrier),
      TEST(directions_of_a_lone_layer_run_at_once),
      TEST(a_found_dim_is_needed_behind_a_barrier),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
