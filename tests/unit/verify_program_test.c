/* SPDX-License-Identifier: MIT */
/* verify_program finds each of these mistakes, made in programs that are otherwise correct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hand_program.h"
#include "ir/family.h"
#include "program/verify_program.h"

static Program *program;
static Value *x, *first, *second, *y;
static const Dim *found;

static void run_passes(void) {
  plan_memory(program);
  place_barriers(program);
  load_dims(program);
}

static void expect(const char *mistake) {
  const char *got = program_mistake(program, PROGRAM_WHOLE);
  if (!mistake && got) fail_msg("expected no mistake, found: %s", got);
  if (mistake && !(got && strstr(got, mistake))) fail_msg("expected \"%s\", found: %s", mistake, got ? got : "none");
}

static void drop(Block *block, int index) {
  for (int i = index; i + 1 < block->count; i++) block->items[i] = block->items[i + 1];
  block->count--;
}

/* x -> first -> second -> y; the last call reads `first`, too. */
static void begin_chain(void) {
  program = hand_program();
  x = hand_input(program, 16);
  first = hand_value(program, 16);
  second = hand_value(program, 16);
  y = hand_value(program, 16);
  hand_output(program, y);
  hand_call(program, x, first);
  hand_call(program, first, second);
  operand_value(hand_call(program, second, y), "b", first, READ);
}

static void chain(void) {
  begin_chain();
  run_passes();
  expect(NULL);
}

static void a_right_program_has_no_mistake(void **state) {
  (void)state;
  chain();
  assert_int_equal(hand_count(program, ITEM_BARRIER), 2);
}

static void a_dropped_barrier_is_found(void **state) {
  (void)state;
  for (int at = 1; at <= 3; at += 2) {
    chain();
    assert_int_equal(program->schedule->items[at]->kind, ITEM_BARRIER);
    drop(program->schedule, at);
    expect("there is no barrier since");
  }
}

static void a_value_that_is_read_before_it_is_written_is_found(void **state) {
  (void)state;
  chain();
  Item **items = program->schedule->items, *writer = items[0];
  items[0] = items[2];
  items[2] = writer;
  expect("reads t1, whose memory does not hold it");
}

static void two_live_values_in_one_memory_are_found(void **state) {
  (void)state;
  chain();
  assert_int_not_equal(first->offset, second->offset);
  second->offset = first->offset;
  expect("share memory");
  second->offset = first->offset + 32; /* a part of it */
  expect("share memory");
}

/* The second value is dead, but the first one is read by the last call. */
static void memory_that_is_given_away_too_early_is_found(void **state) {
  (void)state;
  chain();
  Value *late = hand_value(program, 16);
  late->storage = STORAGE_ARENA;
  late->offset = first->offset;
  hand_call(program, NULL, late);
  Item *writer = program->schedule->items[program->schedule->count - 1];
  program->schedule->items[program->schedule->count - 1] = program->schedule->items[4];
  program->schedule->items[4] = program->schedule->items[3];
  program->schedule->items[3] = writer;
  expect("there is no barrier since");
  Item *barrier = program->schedule->items[4];
  program->schedule->items[4] = writer;
  program->schedule->items[3] = barrier;
  block_add(arena, program->schedule, program->schedule->items[5]);
  program->schedule->items[5] = barrier;
  expect("reads t1, whose memory does not hold it");
}

static void an_operand_that_says_read_and_writes_is_found(void **state) {
  (void)state;
  chain();
  Call *call = program->calls[1];
  call->item->accesses[call->operands[2].access].mode = READ;
  expect("`y` says that t2 is read, but the kernel may write there");
}

static void an_operand_that_says_write_of_const_is_found(void **state) {
  (void)state;
  chain();
  Call *call = program->calls[1];
  call->item->accesses[call->operands[0].access].mode = WRITE;
  expect("`a` says that t1 is written, but the kernel only reads there");
}

static void an_input_that_is_written_is_found(void **state) {
  (void)state;
  program = hand_program();
  x = hand_input(program, 16);
  hand_call(program, NULL, x);
  run_passes();
  expect("writes t0, which is constant");
}

static void an_output_that_is_not_written_is_found(void **state) {
  (void)state;
  chain();
  drop(program->schedule, 4);
  expect("at the end t3, an output, is not in its memory");
}

/* ---- bytes ---- */

/* A call that works in `bytes` bytes from `offset` on, of 128. */
static const char *mistake_at(int64_t offset, int64_t bytes) {
  program = hand_program();
  Value *memory = hand_value(program, 32);
  Call *call = hand_call(program, NULL, NULL);
  ((Node *)call->item->node)->scratch = memory;
  operand_bytes(call, "memory", memory, offset, bytes, READ_WRITE);
  run_passes();
  return program_mistake(program, PROGRAM_WHOLE);
}

static void an_offset_out_of_its_slot_is_found(void **state) {
  (void)state;
  assert_null(mistake_at(64, 64));
  assert_non_null(strstr(mistake_at(68, 64), "touches t0 up to byte 132, but t0 has 128 bytes"));
  assert_non_null(strstr(mistake_at(64, 68), "touches t0 up to byte 132"));
  assert_non_null(strstr(mistake_at(-4, 64), "touches t0"));
}

static void an_offset_inside_an_element_is_found(void **state) {
  (void)state;
  assert_non_null(strstr(mistake_at(1, 64), "`memory` begins inside an element of t0"));
}

/* Two parts of one value: one is read, the other is written. */
static void parts_that_are_read_and_written_must_be_apart(void **state) {
  (void)state;
  for (int64_t offset = 28; offset <= 32; offset += 4) {
    program = hand_program();
    first = hand_value(program, 16);
    hand_call(program, NULL, first);
    Call *call = hand_call(program, NULL, NULL);
    operand_bytes(call, "a", first, 0, 32, READ);
    operand_part(call, "y", first, dim_const(program->graph->dims, offset), NULL, WRITE);
    run_passes();
    expect(offset < 32 ? "reads t0 and writes t0, which share memory" : NULL);
  }
}

/* ---- what calls of a node share, and results written over operands ---- */

static void calls_that_share_a_value_need_no_barrier(void **state) {
  (void)state;
  for (int says_so = 0; says_so < 2; says_so++) {
    program = hand_program();
    y = hand_value(program, 16);
    hand_output(program, y);
    Call *calls[2] = {hand_call(program, NULL, y)};
    calls[1] = program_call(program, calls[0]->item->node, &hand_kernel);
    operand_value(calls[1], "y", y, WRITE);
    for (int i = 0; i < 2 && says_so; i++) operand_sharing(calls[i], "y", SHARED_APART);
    plan_memory(program);
    expect(says_so ? NULL : "there is no barrier since");
  }
}

static bool over_any(const Node *node, int input) { return (void)node, (void)input, true; }
static const KernelFamily in_place = {.overwrites = over_any}, apart = {0};
static const OpInfo op_in_place = {.name = "Test", .family = &in_place}, op_apart = {.name = "Test", .family = &apart};

static void a_result_over_its_operand_is_right_if_the_family_says_so(void **state) {
  (void)state;
  for (int says_so = 0; says_so < 2; says_so++) {
    program = hand_program();
    x = hand_input(program, 16);
    first = hand_value(program, 16);
    y = hand_value(program, 16);
    hand_call(program, x, first);
    Call *call = hand_call(program, first, y);
    Node *node = (Node *)call->item->node;
    node->inputs = &first;
    node->outputs = &y;
    node->n_inputs = node->n_outputs = 1;
    hand_call(program, y, NULL);
    run_passes();
    y->offset = first->offset;
    node->op = says_so ? &op_in_place : &op_apart;
    expect(says_so ? NULL : "reads t1 and writes t2, which share memory");
  }
}

/* Where a node has memory for that, its result may not be written over the operand. */
static void a_result_over_an_operand_of_other_memory_is_found(void **state) {
  (void)state;
  for (int own = 0; own < 2; own++) {
    program = hand_program();
    x = hand_input(program, 16);
    first = hand_value(program, 16);
    second = hand_value(program, 16);
    y = hand_value(program, 16);
    hand_call(program, x, first);
    Call *call = hand_call(program, first, y);
    operand_value(call, "memory", second, WRITE);
    Node *node = (Node *)call->item->node;
    node->inputs = &first;
    node->outputs = &y;
    node->n_inputs = node->n_outputs = 1;
    node->in_place = second;
    hand_call(program, y, NULL);
    run_passes();
    node->op = &op_in_place;
    expect(NULL);
    (own ? second : y)->offset = first->offset;
    expect(own ? NULL : "reads t1 and writes t3, which share memory");
  }
}

/* ---- dims ---- */

/* One call finds a dim, the next needs it. */
static void dims(void) {
  program = hand_program();
  const DimSymbol *symbol = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  found = dim_symbol(program->graph->dims, symbol);
  first = hand_value(program, 16);
  second = hand_value(program, 16);
  operand_found(hand_call(program, NULL, first), "found", found);
  operand_dim(hand_call(program, NULL, second), "n", found);
  run_passes();
  expect(NULL);
}

static void a_dropped_load_of_a_dim_is_found(void **state) {
  (void)state;
  dims();
  assert_int_equal(program->schedule->items[2]->kind, ITEM_LOAD_DIM);
  drop(program->schedule, 2);
  expect("needs #0, which is not known yet");
}

static void a_load_without_a_barrier_is_found(void **state) {
  (void)state;
  dims();
  drop(program->schedule, 1);
  expect("no kernel has found #0, or there is no barrier since");
}

/* ---- control flow ---- */

static void a_value_that_one_branch_does_not_write_is_found(void **state) {
  (void)state;
  for (int writes = 1; writes >= 0; writes--) {
    program = hand_program();
    x = hand_input(program, 16);
    first = hand_value(program, 16);
    const Node *node = graph_node(program->graph, op_find("Relu"), "n", 0, 0);
    program_if(program, node, x);
    hand_call(program, x, first);
    program_else(program);
    if (writes) hand_call(program, x, first);
    program_end(program);
    hand_call(program, first, NULL);
    run_passes();
    expect(writes ? NULL : "reads t1, whose memory does not hold it");
  }
}

/* A value from outside the loop is read in each iteration, so a result of the loop must not be written over it. */
static void values_that_the_next_iteration_needs_are_kept(void **state) {
  (void)state;
  program = hand_program();
  x = hand_input(program, 16);
  first = hand_value(program, 16);
  const DimSymbol *counter = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  const Node *node = hand_call(program, x, first)->item->node;
  program_loop(program, node, counter, dim_const(program->graph->dims, 9), NULL);
  second = hand_value(program, 16);
  y = hand_value(program, 16);
  hand_call(program, first, second);
  hand_call(program, second, y);
  program_end(program);
  run_passes();
  expect(NULL);
  y->offset = first->offset;
  expect("reads t1, whose memory does not hold it");
}

/* Its limit is looked at until the loop ends; what follows may be written over it only behind a barrier. */
static void a_limit_that_is_written_over_behind_its_loop_is_found(void **state) {
  (void)state;
  program = hand_program();
  x = hand_input(program, 16);
  first = hand_value(program, 16);
  const Node *node = hand_call(program, x, first)->item->node;
  const DimSymbol *counter = dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, 0, 9);
  program_loop(program, node, counter, NULL, first);
  hand_call(program, x, hand_value(program, 16));
  program_end(program);
  second = hand_value(program, 16);
  hand_call(program, x, second);
  run_passes();
  expect(NULL);
  const Block *block = program->schedule;
  if (block->items[3]->kind == ITEM_BARRIER) drop(program->schedule, 3);
  second->offset = first->offset;
  expect("writes t3, and there is no barrier since n0 read t1");
}

static void calls_of_a_chunk_without_a_barrier_are_found(void **state) {
  (void)state;
  program = hand_program();
  x = hand_input(program, 16);
  first = hand_value(program, 16);
  program_wavefront(program, NULL, 1, 2, dim_const(program->graph->dims, 8));
  hand_call(program, x, first);
  hand_call(program, first, NULL);
  program_end(program);
  run_passes();
  expect(NULL);
  Block *block = program->schedule->items[0]->block;
  assert_int_equal(block->items[2]->kind, ITEM_BARRIER);
  drop(block, 2);
  expect("there is no barrier since");
}

/* The first call of the next turn writes what the last call of this turn reads. */
static void a_turn_without_a_barrier_is_found(void **state) {
  (void)state;
  program = hand_program();
  first = hand_value(program, 16);
  program_wavefront(program, NULL, 2, 2, dim_const(program->graph->dims, 8));
  hand_call(program, NULL, first);
  program_layer(program, 1);
  hand_call(program, first, NULL);
  program_end(program);
  run_passes();
  expect(NULL);
  drop(program->schedule->items[0]->block, 0);
  expect("there is no barrier since");
}

/* ---- stages ---- */

/* `from`: the first stage that finds the mistake; all later ones find it, too. */
static void expect_from(ProgramStage from, const char *mistake) {
  for (int stage = PROGRAM_LOWERED; stage <= PROGRAM_WHOLE; stage++) {
    const char *got = program_mistake(program, (ProgramStage)stage);
    if (stage < (int)from && got) fail_msg("stage %d: expected no mistake, found: %s", stage, got);
    if (stage >= (int)from && !(got && strstr(got, mistake)))
      fail_msg("stage %d: expected \"%s\", found: %s", stage, mistake, got ? got : "none");
  }
}

static void a_mistake_is_found_as_soon_as_it_is_one(void **state) {
  (void)state;
  begin_chain();
  operand_value(hand_call(program, first, hand_value(program, 16)), "b", hand_value(program, 16), READ);
  run_passes();
  expect_from(PROGRAM_LOWERED, "whose memory does not hold it");

  chain();
  second->offset = first->offset;
  expect_from(PROGRAM_PLANNED, "share memory");

  chain();
  first->storage = STORAGE_NONE;
  expect_from(PROGRAM_PLANNED, "has no place");

  chain();
  drop(program->schedule, 1);
  expect_from(PROGRAM_ORDERED, "there is no barrier since");

  dims();
  drop(program->schedule, 2);
  expect_from(PROGRAM_WHOLE, "needs #0, which is not known yet");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_right_program_has_no_mistake),
      TEST(a_dropped_barrier_is_found),
      TEST(a_value_that_is_read_before_it_is_written_is_found),
      TEST(two_live_values_in_one_memory_are_found),
      TEST(memory_that_is_given_away_too_early_is_found),
      TEST(an_operand_that_says_read_and_writes_is_found),
      TEST(an_operand_that_says_write_of_const_is_found),
      TEST(an_input_that_is_written_is_found),
      TEST(an_output_that_is_not_written_is_found),
      TEST(an_offset_out_of_its_slot_is_found),
      TEST(an_offset_inside_an_element_is_found),
      TEST(parts_that_are_read_and_written_must_be_apart),
      TEST(calls_that_share_a_value_need_no_barrier),
      TEST(a_result_over_its_operand_is_right_if_the_family_says_so),
      TEST(a_result_over_an_operand_of_other_memory_is_found),
      TEST(a_dropped_load_of_a_dim_is_found),
      TEST(a_load_without_a_barrier_is_found),
      TEST(a_value_that_one_branch_does_not_write_is_found),
      TEST(values_that_the_next_iteration_needs_are_kept),
      TEST(a_limit_that_is_written_over_behind_its_loop_is_found),
      TEST(calls_of_a_chunk_without_a_barrier_are_found),
      TEST(a_turn_without_a_barrier_is_found),
      TEST(a_mistake_is_found_as_soon_as_it_is_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
