/* SPDX-License-Identifier: MIT */
/* Phased schedules: those of the paper, their number, and the rules compared with an independent count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/recurrent/phase_window.h"
#include "passes.h"

static LayerWindow *window_of(const char *op, const char *inputs, const char *attributes, Grain grain) {
  Graph *graph = build_graph(arena);
  build_output(graph, build_node(graph, op, inputs, attributes, 1)->outputs[0]);
  infer_shapes(graph);
  return layer_window(arena, mm_dag(graph), 0, grain);
}

static LayerWindow *lstm(Grain grain) {
  return window_of("LSTM", "f32[T,B,3] f32[1,20,3]! f32[1,20,5]!", "hidden_size=5", grain);
}
static LayerWindow *gru_after(Grain grain) {
  return window_of("GRU", "f32[T,B,3] f32[1,15,3]! f32[1,15,5]!", "hidden_size=5 linear_before_reset=1", grain);
}
static LayerWindow *gru_before(Grain grain) {
  return window_of("GRU", "f32[T,B,3] f32[1,15,3]! f32[1,15,5]!", "hidden_size=5", grain);
}

typedef struct Texts {
  const PhaseWindow *window;
  int count;
  const char *text[64];
} Texts;

static void keep_text(void *context, const PhasedSchedule *schedule, PruneRule rule) {
  Texts *texts = context;
  assert_int_equal(rule, PRUNE_NONE);
  assert_true(texts->count < 64);
  texts->text[texts->count++] = phases_text(arena, texts->window, schedule);
}

static Texts survivors_of(const LayerWindow *layer) {
  Texts texts = {.window = &layer->window};
  phases_visit_survivors(&layer->window, keep_text, &texts);
  return texts;
}

static void assert_survivor(const Texts *texts, const char *wanted) {
  for (int i = 0; i < texts->count; i++)
    if (!strcmp(texts->text[i], wanted)) return;
  fail_msg("%s is not among the %d survivors, of which the first is %s", wanted, texts->count, texts->text[0]);
}

/* Listing 2 of the paper has two schedules: all products of a step in its phase; or W x of all steps first. */
static void of_an_lstm_the_papers_two_schedules_survive_and_no_other(void **state) {
  (void)state;
  Texts texts = survivors_of(lstm(GRAIN_INPUT));
  assert_int_equal(texts.count, 2);
  assert_survivor(&texts, "W(0) R(0) | W(1) R(1)");
  assert_survivor(&texts, "W(0) W(1) | R(0) | R(1)");
}

/* Section 5.4: "For LSTMs, Q < 20, which can be verified by enumerating all such valid schedules". */
static void gate_by_gate_fewer_than_twenty_lstm_schedules_survive(void **state) {
  (void)state;
  LayerWindow *layer = lstm(GRAIN_GATE);
  PhaseCounts counts = phases_count(arena, &layer->window);
  assert_int_equal(counts.symmetric, 16); /* each of four W x ahead, or with its step */
  assert_true(counts.symmetric < 20);
  Texts texts = survivors_of(layer);
  assert_int_equal(texts.count, 16);
  assert_survivor(&texts, "W_i(0) W_i(1) | W_o(0) W_f(0) W_c(0) R_i(0) R_o(0) R_f(0) R_c(0) | W_o(1) W_f(1) W_c(1) "
                          "R_i(1) R_o(1) R_f(1) R_c(1)");
}

/* If the reset gate comes before the product, a step has two phases: R_r in the first, R_h in the second, R_z in
 * either. W_z x and W_h x are ahead, or in either phase; W_r x is ahead or in the first: 2 * 3 * 3 * 2 schedules. */
static void a_gru_has_one_phase_a_step_or_two_by_where_its_reset_gate_stands(void **state) {
  (void)state;
  Texts after = survivors_of(gru_after(GRAIN_INPUT));
  assert_int_equal(after.count, 2);
  assert_survivor(&after, "W(0) W(1) | R(0) | R(1)");
  Texts before = survivors_of(gru_before(GRAIN_INPUT));
  assert_int_equal(before.count, 2);
  assert_survivor(&before, "W(0) W(1) | R_zr(0) | R_h(0) | R_zr(1) | R_h(1)");
  assert_survivor(&before, "W(0) R_zr(0) | R_h(0) | W(1) R_zr(1) | R_h(1)");
  assert_int_equal(phases_count(arena, &gru_after(GRAIN_GATE)->window).symmetric, 8);
  assert_int_equal(phases_count(arena, &gru_before(GRAIN_GATE)->window).symmetric, 2 * 3 * 3 * 2);
}

static void two_directions_run_side_by_side_and_not_one_after_the_other(void **state) {
  (void)state;
  Texts texts = survivors_of(
      window_of("LSTM", "f32[T,B,3] f32[2,20,3]! f32[2,20,5]!", "hidden_size=5 direction=bidirectional", GRAIN_INPUT));
  assert_int_equal(texts.count, 4);
  assert_survivor(&texts, "Wf(0) Wf(1) Wb(0) Wb(1) | Rf(0) Rb(0) | Rf(1) Rb(1)");
}

static void a_product_that_feeds_a_layer_stands_ahead_of_it(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_node(graph, "MatMul", "f32[T,B,7] f32[7,3]!", "", 1);
  build_output(graph, build_node(graph, "RNN", "@0 f32[1,5,3]! f32[1,5,5]!", "hidden_size=5", 1)->outputs[0]);
  infer_shapes(graph);
  Texts texts = survivors_of(layer_window(arena, mm_dag(graph), 0, GRAIN_INPUT));
  assert_int_equal(texts.count, 2);
  assert_survivor(&texts, "P(0) P(1) | W(0) W(1) | R(0) | R(1)");
  assert_survivor(&texts, "P(0) P(1) | W(0) R(0) | W(1) R(1)");
}

/* ---- compared with schedules as numbers: the phase of each product ---- */

typedef struct Numbered {
  const PhaseWindow *window;
  int n, phase[8];
  PhaseCounts counts;
} Numbered;

static bool needs_bit(const Numbered *s, int bit, int of) {
  int products = s->window->products, step = bit / products, of_step = of / products;
  const PhaseProduct *product = &s->window->product[bit % products];
  if (of_step == step) return product->same_step >> (of % products) & 1;
  return of_step == step - 1 && (product->step_before >> (of % products) & 1);
}

static bool dependent_at(const Numbered *s, int phase) {
  for (int bit = 0; bit < s->n; bit++)
    if (s->phase[bit] == phase && s->window->product[bit % s->window->products].time_dependent) return true;
  return false;
}

static bool is_valid(const Numbered *s, int phases) {
  for (int phase = 0; phase < phases; phase++) {
    bool used = false;
    for (int bit = 0; bit < s->n; bit++) used |= s->phase[bit] == phase;
    if (!used) return false;
  }
  for (int bit = 0; bit < s->n; bit++) {
    if (s->phase[bit] >= phases) return false;
    for (int of = 0; of < s->n; of++)
      if (needs_bit(s, bit, of) && s->phase[of] >= s->phase[bit]) return false;
  }
  return true;
}

static bool keeps_order(const Numbered *s, int phases) {
  for (int phase = 1; phase < phases; phase++)
    if (dependent_at(s, phase - 1) && !dependent_at(s, phase)) return false;
  return true;
}

static bool keeps_dependency(const Numbered *s, int phases) {
  for (int phase = 1; phase < phases; phase++) {
    if (dependent_at(s, phase - 1) != dependent_at(s, phase)) continue;
    bool found = false;
    for (int bit = 0; bit < s->n; bit++)
      for (int of = 0; of < s->n; of++)
        found |= s->phase[bit] == phase && s->phase[of] == phase - 1 && needs_bit(s, bit, of);
    if (!found) return false;
  }
  return true;
}

/* In a time-dependent phase, all products of the second step are the same number of phases after those of the first; in
 * a time-independent phase, they are in the same phase. */
static bool keeps_symmetry(const Numbered *s, int phases) {
  int products = s->window->products, dependent = 0;
  for (int phase = 0; phase < phases; phase++) dependent += dependent_at(s, phase);
  for (int p = 0; p < products; p++) {
    int distance = s->phase[products + p] - s->phase[p];
    if (2 * distance != (dependent_at(s, s->phase[p]) ? dependent : 0)) return false;
  }
  return true;
}

static void count_numbered(Numbered *s, int bit) {
  for (s->phase[bit] = 0; bit < s->n && s->phase[bit] < s->n; s->phase[bit]++) {
    if (bit + 1 < s->n) {
      count_numbered(s, bit + 1);
      continue;
    }
    int phases = 0;
    for (int i = 0; i < s->n; i++) phases = s->phase[i] + 1 > phases ? s->phase[i] + 1 : phases;
    if (!is_valid(s, phases)) continue;
    s->counts.valid++;
    if (!keeps_order(s, phases)) continue;
    s->counts.ordered++;
    if (!keeps_dependency(s, phases)) continue;
    s->counts.depending++;
    s->counts.symmetric += keeps_symmetry(s, phases);
  }
}

static void counts_are_those_of_trying_every_numbering(void **state) {
  (void)state;
  const LayerWindow *layers[] = {lstm(GRAIN_INPUT), gru_before(GRAIN_INPUT),
                                 window_of("RNN", "f32[T,B,3] f32[1,5,3]! f32[1,5,5]!", "hidden_size=5", GRAIN_GATE)};
  for (int i = 0; i < 3; i++) {
    Numbered s = {.window = &layers[i]->window, .n = layers[i]->window.products * layers[i]->window.steps};
    count_numbered(&s, 0);
    PhaseCounts counts = phases_count(arena, s.window);
    assert_true(counts.valid > 10);
    assert_int_equal(counts.valid, s.counts.valid);
    assert_int_equal(counts.ordered, s.counts.ordered);
    assert_int_equal(counts.depending, s.counts.depending);
    assert_int_equal(counts.symmetric, s.counts.symmetric);
  }
}

typedef struct Seen {
  PhaseCounts counts;
} Seen;

static void see(void *context, const PhasedSchedule *schedule, PruneRule rule) {
  Seen *seen = context;
  assert_true(schedule->count > 0);
  seen->counts.valid++;
  seen->counts.ordered += rule != PRUNE_ORDER;
  seen->counts.depending += rule != PRUNE_ORDER && rule != PRUNE_DEPENDENCY;
  seen->counts.symmetric += rule == PRUNE_NONE;
}

static void the_listing_and_the_counts_agree(void **state) {
  (void)state;
  const LayerWindow *layer =
      window_of("RNN", "f32[T,B,3] f32[2,5,3]! f32[2,5,5]!", "hidden_size=5 direction=bidirectional", GRAIN_INPUT);
  Seen seen = {0};
  phases_visit_all(&layer->window, see, &seen);
  PhaseCounts counts = phases_count(arena, &layer->window);
  assert_memory_equal(&seen.counts, &counts, sizeof counts);
}

/* ---- fusion ---- */

static void products_of_one_input_fuse_along_n_and_all_steps_along_m(void **state) {
  (void)state;
  LayerWindow *layer = lstm(GRAIN_GATE);
  PhaseSet inputs = 0, second_step = phase_step(&layer->window, 1);
  for (int i = 0; i < layer->window.products; i++)
    if (layer->groups[i].operand == MM_INPUT) inputs |= (PhaseSet)1 << i | (PhaseSet)1 << (i + layer->window.products);
  FusedMm fused[MAX_PHASE_BITS];
  assert_int_equal(fuse_phase(layer, inputs, fused), 1);
  assert_int_equal(fused[0].steps, 2);
  assert_int_equal(fused[0].columns, 20);
  assert_int_equal(fused[0].depth, 3);
  assert_int_equal(fuse_phase(layer, second_step, fused), 2); /* [x h], "at most two fused MMs per phase" */
  assert_int_equal(fused[0].steps, 1);
  assert_int_equal(fused[0].columns + fused[1].columns, 40);
}

static void a_candidate_after_its_reset_gate_fuses_with_no_other_gate(void **state) {
  (void)state;
  LayerWindow *layer = gru_before(GRAIN_GATE);
  PhaseSet hidden = 0;
  for (int i = 0; i < layer->window.products; i++)
    if (layer->groups[i].operand == MM_HIDDEN) hidden |= (PhaseSet)1 << i;
  FusedMm fused[MAX_PHASE_BITS];
  assert_int_equal(fuse_phase(layer, hidden, fused), 2);
  assert_int_equal(fused[0].columns, 10);
  assert_int_equal(fused[1].columns, 5);
}

static void both_directions_share_x_of_all_steps_but_not_of_one(void **state) {
  (void)state;
  LayerWindow *layer =
      window_of("RNN", "f32[T,B,3] f32[2,5,3]! f32[2,5,5]!", "hidden_size=5 direction=bidirectional", GRAIN_INPUT);
  PhaseSet inputs = 0;
  for (int i = 0; i < layer->window.products; i++)
    if (layer->groups[i].operand == MM_INPUT) inputs |= (PhaseSet)1 << i;
  FusedMm fused[MAX_PHASE_BITS];
  assert_int_equal(fuse_phase(layer, inputs, fused), 2);
  assert_int_equal(fuse_phase(layer, inputs | inputs << layer->window.products, fused), 1);
  assert_int_equal(fused[0].columns, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(of_an_lstm_the_papers_two_schedules_survive_and_no_other, setup, teardown),
      cmocka_unit_test_setup_teardown(gate_by_gate_fewer_than_twenty_lstm_schedules_survive, setup, teardown),
      cmocka_unit_test_setup_teardown(a_gru_has_one_phase_a_step_or_two_by_where_its_reset_gate_stands, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(two_directions_run_side_by_side_and_not_one_after_the_other, setup, teardown),
      cmocka_unit_test_setup_teardown(a_product_that_feeds_a_layer_stands_ahead_of_it, setup, teardown),
      cmocka_unit_test_setup_teardown(counts_are_those_of_trying_every_numbering, setup, teardown),
      cmocka_unit_test_setup_teardown(the_listing_and_the_counts_agree, setup, teardown),
      cmocka_unit_test_setup_teardown(products_of_one_input_fuse_along_n_and_all_steps_along_m, setup, teardown),
      cmocka_unit_test_setup_teardown(a_candidate_after_its_reset_gate_fuses_with_no_other_gate, setup, teardown),
      cmocka_unit_test_setup_teardown(both_directions_share_x_of_all_steps_but_not_of_one, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
