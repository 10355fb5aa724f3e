/* SPDX-License-Identifier: MIT */
/* The candidates of a recurrent layer are exactly the schedules that survive the rules of phases.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/recurrent/choose.h"
#include "passes.h"

/* ---- layers of all kinds ---- */

static const char *const layers[][3] = {
    {"RNN", "f32[9,B,16] f32[1,16,16]! f32[1,16,16]!", ""},
    {"LSTM", "f32[T,B,16] f32[1,64,16]! f32[1,64,16]!", ""},
    {"LSTM", "f32[9,4,16] f32[1,64,16]! f32[1,64,16]! _ i32[4]", ""},
    {"LSTM", "f32[9,1,16] f32[2,64,16]! f32[2,64,16]!", "direction=bidirectional"},
    {"LSTM", "f32[1,1,256] f32[1,1024,256]! f32[1,1024,256]!", ""},
    {"GRU", "f32[9,2,16] f32[1,48,16]! f32[1,48,16]!", "linear_before_reset=1"},
    {"GRU", "f32[9,2,16] f32[1,48,16]! f32[1,48,16]!", "direction=reverse"},
    {"GRU", "f32[9,2,16] f32[2,48,16]! f32[2,48,16]!", "direction=bidirectional"},
};
enum { LAYERS = sizeof layers / sizeof *layers };

/* The candidates of a layer behind a MatMul, whose product belongs to the window. */
static Candidates candidates_behind(const char *matmul, const char *const *layer) {
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  const char *inputs = layer[1];
  if (matmul) {
    build_node(graph, "MatMul", matmul, "", 1);
    inputs = arena_format(arena, "@0%s", strchr(layer[1], ' '));
  }
  int hidden = strstr(layer[1], "256") ? 256 : 16;
  build_node(graph, layer[0], inputs, arena_format(arena, "hidden_size=%d %s", hidden, layer[2]), 1);
  build_output(graph, graph->nodes[graph->n_nodes - 1]->outputs[0]);
  infer_shapes(graph);
  const MmDag *dag = mm_dag(graph);
  return layer_candidates(graph, dag, &dag->layers[0]);
}

static Candidates candidates_of(int i) { return candidates_behind(NULL, layers[i]); }

/* ---- survivors and candidates ---- */

typedef struct Survivors {
  const Candidates *all;
  int count;
} Survivors;

static void expect_listed(void *context, const PhasedSchedule *schedule, PruneRule rule) {
  Survivors *s = context;
  assert_int_equal(rule, PRUNE_NONE);
  assert_in_range(s->count, 0, s->all->schedules.count - 1);
  const LayerSchedule *listed = s->all->schedules.list[s->count++];
  assert_int_equal(listed->pruned, PRUNE_NONE);
  assert_int_equal(listed->phases.count, schedule->count);
  assert_memory_equal(listed->phases.phases, schedule->phases, (size_t)schedule->count * sizeof *schedule->phases);
}

static void the_schedules_of_a_layer_are_the_survivors_of_the_enumeration(void **state) {
  (void)state;
  for (int i = 0; i < LAYERS; i++) {
    Candidates all = candidates_of(i);
    Survivors survivors = {.all = &all};
    phases_visit_survivors(&all.window->window, expect_listed, &survivors);
    assert_int_equal(survivors.count, all.schedules.count);
  }
}

static int candidates_with(const Candidates *all, const LayerSchedule *schedule) {
  int count = 0;
  for (int i = 0; i < all->count; i++) count += all->list[i].schedule == schedule;
  return count;
}

/* Compares the objects themselves, so that no candidate can come from elsewhere. */
static void candidates_are_the_survivors_that_kernels_can_run(void **state) {
  (void)state;
  for (int i = 0; i < LAYERS; i++) {
    Candidates all = candidates_of(i);
    bool lengths = strstr(layers[i][1], "i32") != NULL;
    int ranked = 0;
    for (int k = 0; k < all.schedules.count; k++) {
      const LayerSchedule *schedule = all.schedules.list[k];
      bool wanted = schedule->runs && !(lengths && schedule->input == INPUT_WITH_STEP);
      assert_int_equal(candidates_with(&all, schedule) > 0, wanted);
      ranked += candidates_with(&all, schedule);
    }
    assert_int_equal(ranked, all.count);
    for (int c = 0; c < all.count; c++) assert_int_equal(all.list[c].variant.input, all.list[c].schedule->input);
  }
}

static void each_way_to_make_the_inputs_products_has_one_survivor(void **state) {
  (void)state;
  for (int i = 0; i < LAYERS; i++) {
    Candidates all = candidates_of(i);
    int of_input[2] = {0};
    for (int k = 0; k < all.schedules.count; k++)
      if (all.schedules.list[k]->runs) of_input[all.schedules.list[k]->input]++;
    assert_int_equal(of_input[INPUT_AHEAD], 1);
    assert_int_equal(of_input[INPUT_WITH_STEP], 1);
  }
}

static void a_product_before_a_layer_is_ahead_in_every_candidate(void **state) {
  (void)state;
  Candidates all = candidates_behind("f32[9,2,16] f32[16,16]!", layers[5]);
  assert_int_equal(all.window->window.products, 3);
  for (int i = 0; i < all.count; i++) {
    const PhasedSchedule *phases = &all.list[i].schedule->phases;
    assert_string_equal(all.window->window.product[0].name, "P");
    assert_true(phases->phases[0] == (1 | 1 << 3)); /* of both steps, and nothing else */
  }
}

/* ---- windows made by hand ---- */

enum { W, R };

static LayerWindow *two_products(PhaseProduct w, PhaseProduct r) {
  LayerWindow *made = ARENA_NEW(arena, LayerWindow);
  made->groups[W] = (MmGroup){.operand = MM_INPUT, .input = 1};
  made->groups[R] = (MmGroup){.operand = MM_HIDDEN, .input = 2};
  made->products[W] = w;
  made->products[R] = r;
  made->window = (PhaseWindow){.products = 2, .steps = WINDOW_STEPS, .product = made->products};
  return made;
}

static LayerCase some_layer(void) {
  return (LayerCase){.directions = 1,
                     .weight = sizeof(float),
                     .gates = 4,
                     .lanes = 16,
                     .rows = 6,
                     .vectors = 4,
                     .parts = 4,
                     .input_rows = 6,
                     .input_vectors = 4,
                     .phases = 1,
                     .functions = 5,
                     .takes_steps = true,
                     .steps = 100,
                     .batch = 1,
                     .inputs = 256,
                     .hidden = 256,
                     .panels = 16,
                     .panel_units = 16};
}

/* An input that depends on the layer's own output, as in a decoder, cannot be computed ahead. */
static void pruned_schedules_are_not_candidates(void **state) {
  (void)state;
  Machine machine = machine_of(target_find("x86-64-v4"), false, 2);
  LayerCase layer = some_layer();
  PhaseProduct r = {.name = "R", .time_dependent = true, .step_before = 1 << W | 1 << R};
  const LayerWindow *usual = two_products((PhaseProduct){.name = "W"}, r);
  const LayerWindow *decoder =
      two_products((PhaseProduct){.name = "W", .time_dependent = true, .step_before = 1 << W | 1 << R}, r);
  Candidates both = recurrent_candidates(arena, &machine, usual, &layer);
  Candidates with_step = recurrent_candidates(arena, &machine, decoder, &layer);
  assert_int_equal(both.list[both.chosen].variant.input, INPUT_AHEAD); /* what would be taken */
  assert_true(with_step.count > 0);
  for (int i = 0; i < with_step.count; i++) assert_int_equal(with_step.list[i].variant.input, INPUT_WITH_STEP);
}

/* ---- what is pruned ---- */

static void pruned_schedules_join_the_list_with_their_rule(void **state) {
  (void)state;
  Candidates all = candidates_of(0);
  LayerSchedules whole = all.schedules;
  add_pruned_schedules(arena, all.window, UINT64_MAX, &whole);
  PhaseCounts counts = phases_count(arena, &all.window->window);
  uint64_t of_rule[PRUNE_SYMMETRY + 1] = {0};
  for (int i = 0; i < whole.count; i++) {
    of_rule[whole.list[i]->pruned]++;
    assert_int_equal(phases_rule(&all.window->window, &whole.list[i]->phases), whole.list[i]->pruned);
    if (i < all.schedules.count) assert_ptr_equal(whole.list[i], all.schedules.list[i]);
    if (whole.list[i]->pruned != PRUNE_NONE) assert_int_equal(candidates_with(&all, whole.list[i]), 0);
  }
  assert_int_equal(of_rule[PRUNE_NONE], counts.symmetric);
  assert_int_equal(of_rule[PRUNE_SYMMETRY], counts.depending - counts.symmetric);
  assert_int_equal(of_rule[PRUNE_DEPENDENCY], counts.ordered - counts.depending);
  assert_int_equal(of_rule[PRUNE_ORDER], counts.valid - counts.ordered);
  LayerSchedules few = all.schedules;
  add_pruned_schedules(arena, all.window, 1, &few);
  assert_int_equal(few.count, all.schedules.count + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_schedules_of_a_layer_are_the_survivors_of_the_enumeration, setup, teardown),
      cmocka_unit_test_setup_teardown(candidates_are_the_survivors_that_kernels_can_run, setup, teardown),
      cmocka_unit_test_setup_teardown(each_way_to_make_the_inputs_products_has_one_survivor, setup, teardown),
      cmocka_unit_test_setup_teardown(a_product_before_a_layer_is_ahead_in_every_candidate, setup, teardown),
      cmocka_unit_test_setup_teardown(pruned_schedules_are_not_candidates, setup, teardown),
      cmocka_unit_test_setup_teardown(pruned_schedules_join_the_list_with_their_rule, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
