/* SPDX-License-Identifier: MIT */
/* The memory plan on random schedules: what is live together is apart, and little is wasted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan_memory.h"

enum { CALLS = 40, VALUES = 60 };

static Value *make_value(Graph *graph, int64_t bytes) {
  Value *value = graph_value(graph, "v", LOCATION_FILE(NULL));
  value->dtype = RNNCC_U8;
  value->rank = 1;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  value->shape[0] = dim_const(graph->dims, bytes);
  return value;
}

static Emitter *make_emitter(Graph *graph) {
  Emitter *emitter = ARENA_NEW(graph->arena, Emitter);
  emitter->arena = graph->arena;
  emitter->graph = graph;
  emitter->n_calls = CALLS;
  emitter->calls = ARENA_ARRAY(graph->arena, KernelCall *, CALLS);
  for (int i = 0; i < CALLS; i++) {
    emitter->calls[i] = ARENA_NEW(graph->arena, KernelCall);
    emitter->calls[i]->accesses = ARENA_ARRAY(graph->arena, Access, 2 * VALUES);
  }
  return emitter;
}

static void access_value(Emitter *emitter, int call, Value *value) {
  KernelCall *at = emitter->calls[call];
  at->accesses[at->n_accesses++] = (Access){value, true};
}

/* Values written at one random call and read at a later one. */
static Emitter *random_schedule(unsigned seed, Graph *graph) {
  Emitter *emitter = make_emitter(graph);
  srand(seed);
  for (int i = 0; i < VALUES; i++) {
    int first = rand() % CALLS, last = first + rand() % 8;
    Value *value = make_value(graph, rand() % 5000);
    access_value(emitter, first, value);
    access_value(emitter, last < CALLS ? last : CALLS - 1, value);
  }
  return emitter;
}

static void assert_apart(const Interval *a, const Interval *b) {
  if (a->last < b->first || b->last < a->first) return;
  int64_t a_begin = a->value->offset, b_begin = b->value->offset;
  if (a_begin < b_begin + b->bytes && b_begin < a_begin + a->bytes)
    fail_msg("t%d and t%d are live together and share bytes", a->value->id, b->value->id);
}

static void values_live_together_share_no_byte(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < 100; seed++) {
    Arena *arena = arena_new();
    MemoryPlan *plan = plan_memory(random_schedule(seed, graph_new(arena)));
    for (int i = 0; i < plan->n_intervals; i++) {
      assert_int_equal(plan->intervals[i].value->offset % 64, 0);
      assert_true(plan->intervals[i].value->offset + plan->intervals[i].bytes <= plan->arena_bytes);
      for (int j = 0; j < i; j++) assert_apart(&plan->intervals[i], &plan->intervals[j]);
    }
    arena_free(arena);
  }
}

/* Its calls run again and again, interleaved. */
static void what_a_wavefront_touches_is_live_through_all_of_it(void **state) {
  (void)state;
  enum { FIRST = 10, LAST = 14 };
  Arena *arena = arena_new();
  Graph *graph = graph_new(arena);
  Emitter *emitter = make_emitter(graph);
  Wavefront wavefront = {.layers = 5};
  for (int i = FIRST; i <= LAST; i++) emitter->calls[i]->wavefront = &wavefront;
  for (int i = 0; i < CALLS; i++) access_value(emitter, i, make_value(graph, 100));
  MemoryPlan *plan = plan_memory(emitter);
  for (int i = 0; i < CALLS; i++) {
    bool inside = i >= FIRST && i <= LAST;
    assert_int_equal(plan->intervals[i].first, inside ? FIRST : i);
    assert_int_equal(plan->intervals[i].last, inside ? LAST : i);
  }
  arena_free(arena);
}

/* A third over the largest live set on the worst of random schedules; networks come much closer. */
static void the_arena_stays_near_the_largest_live_set(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < 100; seed++) {
    Arena *arena = arena_new();
    MemoryPlan *plan = plan_memory(random_schedule(seed, graph_new(arena)));
    assert_true(plan->arena_bytes >= plan->lower_bound);
    assert_true(plan->arena_bytes <= plan->lower_bound + plan->lower_bound / 3);
    arena_free(arena);
  }
}

static void an_output_is_written_in_place_unless_the_run_can_fault(void **state) {
  (void)state;
  for (int may_fault = 0; may_fault < 2; may_fault++) {
    Arena *arena = arena_new();
    Graph *graph = graph_new(arena);
    Emitter *emitter = make_emitter(graph);
    Value *output = make_value(graph, 100);
    access_value(emitter, CALLS - 1, output);
    graph->n_outputs = 1;
    graph->outputs = &output;
    emitter->may_fault = may_fault;
    plan_memory(emitter);
    assert_int_equal(output->storage, may_fault ? STORAGE_ARENA : STORAGE_OUTPUT);
    arena_free(arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_live_together_share_no_byte),
      cmocka_unit_test(what_a_wavefront_touches_is_live_through_all_of_it),
      cmocka_unit_test(the_arena_stays_near_the_largest_live_set),
      cmocka_unit_test(an_output_is_written_in_place_unless_the_run_can_fault),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
