/* SPDX-License-Identifier: MIT */
/* The memory plan on random schedules: values that are live together do not overlap, values are written over others
 * only if that is allowed, and little memory is wasted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "ir/family.h"
#include "outcome.h"
#include "passes.h"
#include "program/build.h"
#include "program/build_internal.h"
#include "program/plan_memory.h"

enum { CALLS = 40, VALUES = 60 };

static const SpecialisedKernel kernel = {.function = "kernel"};

static Value *make_value(Program *program, int64_t bytes) {
  Graph *graph = program->graph;
  Value *value = graph_value(graph, "v", LOCATION_FILE(NULL));
  value->dtype = RNNCC_U8;
  value->rank = 1;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  value->shape[0] = dim_const(graph->dims, bytes);
  program_add_value(program, value);
  return value;
}

/* This many calls, without nodes. */
static void add_calls(Program *program, int n) {
  for (int i = 0; i < n; i++) program_call(program, NULL, &kernel);
}

static Program *make_program(Graph *graph) {
  Program *program = program_new(graph);
  add_calls(program, CALLS);
  return program;
}

static void access_value(Program *program, int call, Value *value) {
  Access access = {.value = value, .offset = dim_const(program->graph->dims, 0), .mode = READ_WRITE};
  item_access(program, program->calls[call]->item, access);
}

/* Values written at one random call and read at a later one. */
static Program *random_schedule(unsigned seed, Graph *graph) {
  Program *program = make_program(graph);
  srand(seed);
  for (int i = 0; i < VALUES; i++) {
    int first = rand() % CALLS, last = first + rand() % 8;
    Value *value = make_value(program, rand() % 5000);
    access_value(program, first, value);
    access_value(program, last < CALLS ? last : CALLS - 1, value);
  }
  return program;
}

static const MemoryPlan *planned(Program *program) {
  plan_memory(program);
  return program->plan;
}

static void assert_apart(const Interval *a, const Interval *b) {
  if (a->last < b->first || b->last < a->first) return;
  if (a->over == b->value || b->over == a->value) return;
  int64_t a_begin = a->value->offset, b_begin = b->value->offset;
  if (a_begin < b_begin + b->bytes && b_begin < a_begin + a->bytes)
    fail_msg("t%d and t%d are live together and share bytes", a->value->id, b->value->id);
}

static void values_live_together_share_no_byte(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < (SANITIZED ? 10 : 100); seed++) {
    Arena *arena = arena_new();
    const MemoryPlan *plan = planned(random_schedule(seed, graph_new(arena)));
    for (int i = 0; i < plan->n_intervals; i++) {
      assert_int_equal(plan->intervals[i].value->offset % 64, 0);
      assert_true(plan->intervals[i].value->offset + plan->intervals[i].bytes <= plan->arena_bytes);
      for (int j = 0; j < i; j++) assert_apart(&plan->intervals[i], &plan->intervals[j]);
    }
    arena_free(arena);
  }
}

/* The calls of a wavefront run again and again, interleaved. */
static void values_of_a_wavefront_are_live_through_all_of_it(void **state) {
  (void)state;
  enum { FIRST = 10, LAST = 14 };
  Arena *arena = arena_new();
  Graph *graph = graph_new(arena);
  Program *program = program_new(graph);
  add_calls(program, FIRST);
  program_wavefront(program, NULL, 5, 1, dim_const(graph->dims, 8));
  add_calls(program, LAST + 1 - FIRST);
  program_end(program);
  add_calls(program, CALLS - LAST - 1);
  for (int i = 0; i < CALLS; i++) access_value(program, i, make_value(program, 100));
  const MemoryPlan *plan = planned(program);
  for (int i = 0; i < CALLS; i++) {
    bool inside = i >= FIRST && i <= LAST;
    assert_int_equal(plan->intervals[i].first, inside ? FIRST : i);
    assert_int_equal(plan->intervals[i].last, inside ? LAST : i);
  }
  arena_free(arena);
}

/* ---- values written over others ---- */

static bool over_first_input(const Node *node, int input) {
  (void)node;
  return input == 0;
}
static const KernelFamily in_place = {.overwrites = over_first_input};
static const OpInfo op_in_place = {.name = "Test", .family = &in_place};

/* A call that reads these and writes a value of `bytes`, by a node that may write it over its first input. */
static Value *add_call(Program *program, int at, Value *first, Value *second, int64_t bytes) {
  Graph *graph = program->graph;
  Node *node = graph_node(graph, &op_in_place, "n", second ? 2 : 1, 1);
  Value *output = make_value(program, bytes);
  node->inputs[0] = first;
  if (second) node->inputs[1] = second;
  graph_set_output(node, 0, output);
  program->calls[at]->item->node = node;
  access_value(program, at, first);
  if (second) access_value(program, at, second);
  access_value(program, at, output);
  return output;
}

typedef struct Chain {
  Program *program;
  Value *x, *y;
} Chain;

/* x is made by call 0, y from it by call 1 and read by call 2. */
static Chain chain_new(Arena *arena, int64_t x_bytes, int64_t y_bytes) {
  Chain chain = {.program = make_program(graph_new(arena))};
  chain.x = make_value(chain.program, x_bytes);
  access_value(chain.program, 0, chain.x);
  chain.y = add_call(chain.program, 1, chain.x, NULL, y_bytes);
  access_value(chain.program, 2, chain.y);
  return chain;
}

static void a_value_is_written_over_its_dying_input(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Chain chain = chain_new(arena, 640, 640);
  Value *z = add_call(chain.program, 2, chain.y, NULL, 640);
  access_value(chain.program, 3, z);
  const MemoryPlan *plan = planned(chain.program);
  assert_int_equal(plan->arena_bytes, 640);
  assert_int_equal(plan->lower_bound, 640);
  assert_int_equal(chain.y->offset, chain.x->offset);
  assert_int_equal(z->offset, chain.x->offset);
  assert_int_equal(plan->n_spans, 1);
  arena_free(arena);
}

static void expect_apart(Chain chain) {
  const MemoryPlan *plan = planned(chain.program);
  for (int i = 0; i < plan->n_intervals; i++) assert_null(plan->intervals[i].over);
  for (int i = 0; i < plan->n_intervals; i++)
    for (int j = 0; j < i; j++) assert_apart(&plan->intervals[i], &plan->intervals[j]);
}

static void values_still_in_use_are_not_written_over(void **state) {
  (void)state;
  Arena *arena = arena_new();
  expect_apart(chain_new(arena, 640, 320)); /* other bytes */

  Chain read_later = chain_new(arena, 640, 640);
  access_value(read_later.program, 3, read_later.x);
  expect_apart(read_later);

  Chain input = chain_new(arena, 640, 640);
  input.x->is_input = true;
  expect_apart(input);

  Chain state_input = chain_new(arena, 640, 640);
  State carried = {.input = state_input.x, .output = state_input.y};
  state_input.program->graph->states = &carried;
  state_input.program->graph->n_states = 1;
  expect_apart(state_input);

  Chain twice = chain_new(arena, 640, 640); /* its second input is not read where it is written */
  add_call(twice.program, 2, twice.y, twice.y, 640);
  const MemoryPlan *plan = planned(twice.program);
  assert_ptr_equal(plan->intervals[1].over, twice.x);
  assert_null(plan->intervals[2].over);

  Chain part = chain_new(arena, 640, 640); /* a view of less than all of it */
  Value *whole = make_value(part.program, 1280);
  part.x->view_of = whole;
  expect_apart(part);
  arena_free(arena);
}

/* A node of two results and three calls, whose working memory may be written over x: the first call reads x, the others
 * what is there then. */
static Chain working_in_place(Arena *arena, bool reads_x_later) {
  Chain chain = {.program = make_program(graph_new(arena))};
  chain.x = make_value(chain.program, 640);
  access_value(chain.program, 0, chain.x);
  Node *node = graph_node(chain.program->graph, &op_in_place, "n", 1, 2);
  node->inputs[0] = chain.x;
  for (int i = 0; i < 2; i++) graph_set_output(node, i, make_value(chain.program, 640));
  chain.y = node->in_place = make_value(chain.program, 640);
  for (int call = 1; call < 4; call++) {
    chain.program->calls[call]->item->node = node;
    access_value(chain.program, call, chain.y);
    if (call == 1 || reads_x_later) access_value(chain.program, call, chain.x);
    if (call > 1) access_value(chain.program, call, node->outputs[call - 2]);
  }
  return chain;
}

static void working_memory_is_written_over_an_input_that_ends_there(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Chain chain = working_in_place(arena, false);
  planned(chain.program);
  assert_int_equal(chain.y->offset, chain.x->offset);
  expect_apart(working_in_place(arena, true));
  arena_free(arena);
}

/* ---- what is wasted ---- */

/* At most an eighth more than the largest live set, on the worst of random schedules, whose sizes fit badly. */
static void the_arena_stays_near_the_largest_live_set(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < (SANITIZED ? 20 : 300); seed++) {
    Arena *arena = arena_new();
    const MemoryPlan *plan = planned(random_schedule(seed, graph_new(arena)));
    assert_true(plan->arena_bytes >= plan->lower_bound);
    if (plan->arena_bytes > plan->lower_bound + plan->lower_bound / 8)
      fail_msg("seed %u: %lld of %lld", seed, (long long)plan->arena_bytes, (long long)plan->lower_bound);
    arena_free(arena);
  }
}

static void the_largest_live_set_is_the_largest_sum(void **state) {
  (void)state;
  Arena *arena = arena_new();
  srand(7);
  for (int round = 0; round < 100; round++) {
    Span spans[20];
    for (int i = 0; i < 20; i++) {
      int first = rand() % 30;
      spans[i] = (Span){.bytes = rand() % 1000, .first = first, .last = first + rand() % 10};
    }
    int64_t largest = 0;
    for (int step = 0; step < 40; step++) {
      int64_t sum = 0;
      for (int i = 0; i < 20; i++) sum += spans[i].first <= step && step <= spans[i].last ? spans[i].bytes : 0;
      if (sum > largest) largest = sum;
    }
    assert_int_equal(largest_live_set(arena, spans, 20), largest);
  }
  arena_free(arena);
}

static void an_output_is_written_in_place_unless_the_run_can_fault(void **state) {
  (void)state;
  for (int may_fault = 0; may_fault < 2; may_fault++) {
    Arena *arena = arena_new();
    Graph *graph = graph_new(arena);
    Program *program = make_program(graph);
    Value *output = make_value(program, 100);
    access_value(program, CALLS - 1, output);
    graph->n_outputs = 1;
    graph->outputs = &output;
    program->may_fault = may_fault;
    plan_memory(program);
    assert_int_equal(output->storage, may_fault ? STORAGE_ARENA : STORAGE_OUTPUT);
    arena_free(arena);
  }
}

/* Of two weights of so many bytes each; their gradients are written by calls 10 and 20. */
static Program *make_training(Arena *arena, int64_t bytes) {
  Graph *graph = graph_new(arena);
  Program *program = make_program(graph);
  graph->n_parameters = graph->n_inputs = graph->n_outputs = 2;
  graph->inputs = ARENA_ARRAY(arena, Value *, 2);
  graph->outputs = ARENA_ARRAY(arena, Value *, 2);
  for (int i = 0; i < 2; i++) {
    graph->inputs[i] = make_value(program, bytes);
    graph->outputs[i] = make_value(program, bytes);
    access_value(program, 10 * (i + 1), graph->outputs[i]);
  }
  return program;
}

static Value *live(Program *program, int first, int last, int64_t bytes) {
  Value *value = make_value(program, bytes);
  access_value(program, first, value);
  access_value(program, last, value);
  return value;
}

static void assert_place(const Value *value, Storage storage, int64_t offset) {
  assert_int_equal(value->storage, storage);
  assert_int_equal(value->offset, offset);
}

static void what_ends_before_a_gradient_is_written_is_in_its_memory(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Program *program = make_training(arena, 128);
  Value *both = live(program, 0, 9, 256), *second = live(program, 11, 19, 100), *later = live(program, 12, 19, 64),
        *large = live(program, 1, 3, 257), *across = live(program, 15, 20, 64);
  plan_memory(program);
  assert_place(both, STORAGE_GRADIENT, 0);
  assert_place(second, STORAGE_GRADIENT, 128);
  assert_int_equal(later->storage, STORAGE_ARENA);
  assert_int_equal(large->storage, STORAGE_ARENA);
  assert_int_equal(across->storage, STORAGE_ARENA);
  assert_int_equal(program->plan->n_intervals, 3);
  assert_int_equal(program->plan->n_in_gradients, 2);
  assert_ptr_equal(program->plan->in_gradients[0].value, both);
  assert_ptr_equal(program->plan->in_gradients[1].value, second);
  assert_int_equal(program->arena_bytes, 320);
  arena_free(arena);
}

static void padding_between_gradients_stays_as_it_is(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Program *program = make_training(arena, 100);
  Value *both = live(program, 0, 1, 192), *padded = live(program, 2, 3, 100), *fits = live(program, 4, 5, 64);
  plan_memory(program);
  assert_int_equal(both->storage, STORAGE_ARENA);
  assert_int_equal(padded->storage, STORAGE_ARENA);
  assert_place(fits, STORAGE_GRADIENT, 0);
  arena_free(arena);
}

/* An output and a state end well before the gradients are written, and fit in their memory. */
static void what_the_runtime_copies_from_the_arena_stays_there(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Program *program = make_training(arena, 128);
  Graph *graph = program->graph;
  Value *output = live(program, 0, 1, 64), *other = live(program, 7, 8, 64),
        *outputs[] = {output, graph->outputs[0], graph->outputs[1]};
  State carried = {.input = live(program, 1, 2, 64), .output = live(program, 3, 4, 64)};
  graph->n_outputs = 3;
  graph->outputs = outputs;
  graph->n_states = 1;
  graph->states = &carried;
  program->backward = program->calls[5]->item;
  plan_memory(program);
  assert_int_equal(other->storage, STORAGE_GRADIENT);
  assert_int_equal(output->storage, STORAGE_ARENA);
  assert_int_equal(carried.input->storage, STORAGE_ARENA);
  assert_int_equal(carried.output->storage, STORAGE_ARENA);
  arena_free(arena);
}

static void run_plan(void *program) { plan_memory(program); }

/* Values that are live together, of so many bytes each. */
static void expect_too_much(int values, int64_t bytes, const char *text) {
  Arena *arena = arena_new();
  Program *program = make_program(graph_new(arena));
  for (int i = 0; i < values; i++) {
    Value *value = make_value(program, bytes);
    access_value(program, 0, value);
    access_value(program, 1, value);
  }
  Outcome outcome = outcome_of(run_plan, program);
  expect_outcome(&outcome, 4, text, NULL);
  arena_free(arena);
}

static void a_run_of_more_than_64_tib_is_refused(void **state) {
  (void)state;
  expect_too_much(1, (INT64_C(1) << 46) + 1, "tensor `v` may take more than 64 TiB; lower a dimension's max");
  expect_too_much(3, INT64_C(1) << 45, "one run needs more than 64 TiB; lower a dimension's max");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_live_together_share_no_byte),
      cmocka_unit_test(values_of_a_wavefront_are_live_through_all_of_it),
      cmocka_unit_test(a_value_is_written_over_its_dying_input),
      cmocka_unit_test(values_still_in_use_are_not_written_over),
      cmocka_unit_test(working_memory_is_written_over_an_input_that_ends_there),
      cmocka_unit_test(the_largest_live_set_is_the_largest_sum),
      cmocka_unit_test(the_arena_stays_near_the_largest_live_set),
      cmocka_unit_test(an_output_is_written_in_place_unless_the_run_can_fault),
      cmocka_unit_test(what_ends_before_a_gradient_is_written_is_in_its_memory),
      cmocka_unit_test(padding_between_gradients_stays_as_it_is),
      cmocka_unit_test(what_the_runtime_copies_from_the_arena_stays_there),
      cmocka_unit_test(a_run_of_more_than_64_tib_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
