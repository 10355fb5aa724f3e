/* SPDX-License-Identifier: MIT */
/* From which amount of work on a run is shared: where what workers save is more than their meetings take. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_program.h"
#include "ir/config.h"
#include "machine/machine.h"

static Machine machine;
static const Config config = {.machine = &machine};
static Program *program;

/* A flop, or a byte, is a nanosecond of one core. A barrier counts as four of the machine's: 100 ns. */
static void begin(int cores) {
  machine = (Machine){.cores = cores, .gflops = 1, .l2_gbps = 1, .barrier_ns = 25};
  program = hand_program();
  program->graph->config = &config;
}

static void add_call(double flops, double bytes) {
  Call *call = hand_call(program, NULL, NULL);
  call->flops = flops;
  call->bytes = bytes;
}

static void add_barrier(void) { block_add(arena, program->block, item_new(arena, ITEM_BARRIER, NULL)); }

static void expect(double share_from) {
  find_share_from(program);
  assert_true(fabs(program->share_from - share_from) < 1e-9);
}

static void two_workers_save_half_and_meet(void **state) {
  (void)state;
  begin(2);
  add_call(100, 300);
  add_barrier();
  add_barrier();
  add_call(400, 0);
  expect(200 / (800 * 0.5));
}

static void more_workers_save_more(void **state) {
  (void)state;
  begin(4);
  add_call(400, 0);
  add_barrier();
  expect(100 / (400 * 0.75));
}

static void one_worker_has_nobody_to_share_with(void **state) {
  (void)state;
  begin(1);
  add_call(1, 0);
  add_barrier();
  expect(0);
}

static const Node *a_node(void) { return graph_node(program->graph, op_find("Relu"), "n", 0, 0); }

static void add_loop(const Dim *turns) {
  program_loop(program, a_node(), dim_symbol_own(program->graph->dims, DIM_LOCAL, 0, 9), turns, NULL);
  add_call(100, 0);
  add_barrier();
  program_end(program);
}

static void turns_of_a_loop_count_each(void **state) {
  (void)state;
  begin(2);
  add_call(500, 0);
  add_loop(dim_const(program->graph->dims, 5));
  expect(500 / (1000 * 0.5));
}

static void a_loop_of_unknown_turns_is_always_shared(void **state) {
  (void)state;
  begin(2);
  add_loop(NULL);
  expect(0);
}

static void a_search_is_always_shared(void **state) {
  (void)state;
  begin(2);
  hand_call(program, NULL, NULL)->item->node = graph_node(program->graph, op_find("TopK"), "n", 0, 0);
  add_barrier();
  expect(0);
}

static void of_two_branches_the_one_with_more_work_counts(void **state) {
  (void)state;
  begin(2);
  program_if(program, a_node(), NULL);
  add_call(100, 0);
  program_else(program);
  add_call(200, 0);
  add_barrier();
  program_end(program);
  expect(100 / (200 * 0.5));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(two_workers_save_half_and_meet),
      TEST(more_workers_save_more),
      TEST(one_worker_has_nobody_to_share_with),
      TEST(turns_of_a_loop_count_each),
      TEST(a_loop_of_unknown_turns_is_always_shared),
      TEST(a_search_is_always_shared),
      TEST(of_two_branches_the_one_with_more_work_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
