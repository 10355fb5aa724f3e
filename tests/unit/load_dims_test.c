/* SPDX-License-Identifier: MIT */
/* A data-dependent dim is loaded once, behind a barrier, before the first item that needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_program.h"

static Program *program;
static const DimSymbol *symbol;
static const Dim *found;

/* A call that finds the dim. */
static void begin(void) {
  program = hand_program();
  symbol = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  found = dim_symbol(program->graph->dims, symbol);
  operand_found(hand_call(program, NULL, hand_value(program, 10)), "found", found);
}

static void add_use(void) { operand_dim(hand_call(program, NULL, hand_value(program, 10)), "n", found); }

/* Each value has memory of its own, so that shared memory needs no barriers. */
static void run_passes(void) {
  for (int i = 0; i < program->n_values; i++) {
    program->values[i]->storage = STORAGE_ARENA;
    program->values[i]->offset = 64 * i;
  }
  place_barriers(program);
  load_dims(program);
}

static void assert_kinds(const Block *block, int n, const ItemKind *kinds) {
  assert_int_equal(block->count, n);
  for (int i = 0; i < n; i++) assert_int_equal(block->items[i]->kind, kinds[i]);
}

static void it_is_loaded_once_before_the_first_use(void **state) {
  (void)state;
  begin();
  add_use();
  add_use();
  run_passes();
  assert_kinds(program->schedule, 5, (const ItemKind[]){ITEM_CALL, ITEM_BARRIER, ITEM_LOAD_DIM, ITEM_CALL, ITEM_CALL});
  assert_ptr_equal(program->schedule->items[2]->symbol, symbol);
}

static void it_is_not_loaded_if_nobody_needs_it(void **state) {
  (void)state;
  begin();
  hand_call(program, NULL, hand_value(program, 10));
  run_passes();
  assert_int_equal(hand_count(program, ITEM_LOAD_DIM), 0);
}

/* Nor where a barrier is behind the call that finds it, which is there for memory. */
static void a_barrier_alone_loads_nothing(void **state) {
  (void)state;
  begin();
  Value *shared = hand_value(program, 10);
  hand_call(program, NULL, shared);
  hand_call(program, shared, hand_value(program, 10));
  run_passes();
  assert_int_equal(hand_count(program, ITEM_BARRIER), 1);
  assert_int_equal(hand_count(program, ITEM_LOAD_DIM), 0);
}

/* The branch may not be taken, but what follows needs the dim in any case. */
static void it_is_loaded_before_a_block_begins(void **state) {
  (void)state;
  begin();
  Value *condition = hand_input(program, 1);
  const Node *node = program->calls[0]->item->node;
  program_if(program, node, condition);
  add_use();
  program_else(program);
  program_end(program);
  add_use();
  run_passes();
  assert_kinds(program->schedule, 5, (const ItemKind[]){ITEM_CALL, ITEM_BARRIER, ITEM_LOAD_DIM, ITEM_IF, ITEM_CALL});
  assert_int_equal(hand_count(program, ITEM_LOAD_DIM), 1);
}

/* A dim that is found within a block is loaded within it. */
static void it_is_loaded_before_its_block_ends(void **state) {
  (void)state;
  program = hand_program();
  symbol = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  found = dim_symbol(program->graph->dims, symbol);
  program_scope(program, graph_node(program->graph, op_find("Relu"), "n", 0, 0));
  operand_found(hand_call(program, NULL, hand_value(program, 10)), "found", found);
  program_end(program);
  add_use();
  run_passes();
  assert_kinds(program->schedule, 2, (const ItemKind[]){ITEM_SCOPE, ITEM_CALL});
  assert_kinds(program->schedule->items[0]->block, 3, (const ItemKind[]){ITEM_CALL, ITEM_BARRIER, ITEM_LOAD_DIM});
}

/* The first turn's barrier is too late: all workers must know the number of turns before. */
static void a_wavefront_knows_its_dims_before_it_begins(void **state) {
  (void)state;
  begin();
  program_wavefront(program, NULL, 1, 2, dim_add(program->graph->dims, found, dim_const(program->graph->dims, 1)));
  hand_call(program, NULL, hand_value(program, 10));
  program_end(program);
  run_passes();
  assert_kinds(program->schedule, 4, (const ItemKind[]){ITEM_CALL, ITEM_BARRIER, ITEM_LOAD_DIM, ITEM_WAVEFRONT});
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(it_is_loaded_once_before_the_first_use), TEST(it_is_not_loaded_if_nobody_needs_it),
      TEST(a_barrier_alone_loads_nothing),          TEST(it_is_loaded_before_a_block_begins),
      TEST(it_is_loaded_before_its_block_ends),     TEST(a_wavefront_knows_its_dims_before_it_begins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
