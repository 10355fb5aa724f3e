/* SPDX-License-Identifier: MIT */
/* Barriers of the schedule: one where a call touches memory that a call since the last barrier wrote, none elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "emit/unit.h"
#include "ir/op.h"

enum { MAX_CALLS = 8 };

static Graph *graph;
static Program *program;

static void begin(void) {
  graph = graph_new(arena);
  program = ARENA_NEW(arena, Program);
  program->arena = arena;
  program->graph = graph;
  program->calls = ARENA_ARRAY(arena, Call *, MAX_CALLS);
}

/* f32[2, channels, 3, 3] in blocks of 8. */
static Value *image(int64_t channels, int64_t offset) {
  const int64_t shape[] = {2, channels, 3, 3};
  Value *value = graph_constant(graph, "v", RNNCC_F32, 4, shape, NULL);
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

/* A call that reads a value and writes another; NULL: none. */
static void add_call(Value *read, Value *written) {
  static const SpecialisedKernel kernel = {.function = "kernel"};
  const Dim *zero = dim_const(graph->dims, 0);
  Call *call = ARENA_NEW(arena, Call);
  call->program = program;
  call->kernel = &kernel;
  call->node = graph_node(graph, op_info(OP_Relu), "n", 0, 0);
  call->accesses = ARENA_ARRAY(arena, Access, 2);
  if (read) call->accesses[call->n_accesses++] = (Access){.value = read, .offset = zero, .mode = READ};
  if (written) call->accesses[call->n_accesses++] = (Access){.value = written, .offset = zero, .mode = WRITE};
  program->calls[program->n_calls++] = call;
}

static int barriers(void) {
  Unit unit = {.text = text_new(arena)};
  int n = 0;
  program->n_values = graph->n_values;
  emit_schedule(&unit, program);
  for (const char *at = unit.text.data; (at = strstr(at, "team_barrier(team);")); at++) n++;
  return n;
}

static void a_result_is_read_behind_a_barrier(void **state) {
  (void)state;
  begin();
  Value *a = image(16, 0), *b = image(16, 4096), *c = image(16, 8192);
  add_call(NULL, a);
  add_call(a, b);
  add_call(b, c);
  assert_int_equal(barriers(), 2);
}

static void readers_of_one_value_need_none_between(void **state) {
  (void)state;
  begin();
  Value *a = image(16, 0);
  add_call(NULL, a);
  add_call(a, image(16, 4096));
  add_call(a, image(16, 8192));
  assert_int_equal(barriers(), 1);
}

static void memory_is_used_again_behind_a_barrier(void **state) {
  (void)state;
  begin();
  add_call(image(16, 0), image(16, 4096));
  add_call(NULL, image(16, 64)); /* over what the call before reads */
  assert_int_equal(barriers(), 1);
}

/* Slices of a concatenation, written by branches that know nothing of each other, then read as one. */
static void parts_of_one_tensor_are_written_without_a_barrier(void **state) {
  (void)state;
  begin();
  Value *whole = image(35, 0);
  add_call(NULL, part(whole, 16, 0));
  add_call(NULL, part(whole, 8, 2));
  add_call(NULL, part(whole, 11, 3));
  assert_int_equal(barriers(), 0);
  add_call(whole, image(16, 65536));
  assert_int_equal(barriers(), 1);
}

static void a_part_is_read_behind_a_barrier(void **state) {
  (void)state;
  begin();
  Value *whole = image(40, 0), *middle = part(whole, 16, 2);
  add_call(NULL, part(middle, 8, 1)); /* blocks 3..3 of the whole */
  add_call(part(whole, 24, 0), image(16, 65536));
  assert_int_equal(barriers(), 0);
  add_call(part(whole, 8, 3), image(16, 131072));
  assert_int_equal(barriers(), 1);
}

/* A view in another layout may touch any channel. */
static void a_view_that_is_no_part_may_be_anywhere(void **state) {
  (void)state;
  begin();
  Value *whole = image(32, 0), *flat = image(16, 0);
  flat->view_of = whole;
  flat->channel_block = 0;
  add_call(NULL, part(whole, 8, 3));
  add_call(flat, image(16, 65536));
  assert_int_equal(barriers(), 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_result_is_read_behind_a_barrier),     TEST(readers_of_one_value_need_none_between),
      TEST(memory_is_used_again_behind_a_barrier), TEST(parts_of_one_tensor_are_written_without_a_barrier),
      TEST(a_part_is_read_behind_a_barrier),       TEST(a_view_that_is_no_part_may_be_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
