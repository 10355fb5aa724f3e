/* SPDX-License-Identifier: MIT */
/* Which schedules are tried next: the first of each algorithm, then those that should be fastest according to the
 * results of similar ones; schedules that failed are not chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "tune/trials.h"

static const ScheduleKnob knobs[] = {{"a", 0, 9, NULL}, {"b", 0, 9, NULL}, {NULL, 0, 0, NULL}};
static const ConvAlgorithm quick = {.kind = {"quick", knobs}}, slow = {.kind = {"slow", knobs}};

/* Predicted: 1, 1.11, 1.22, ... us of quick schedules whose knobs are (i % 3, i / 3); the last is slow, of 2.9 us. */
enum { COUNT = 10 };

static const char *kernels_of(const void *layer, const ConvCandidate *candidate) {
  (void)layer;
  return candidate->algorithm == &quick ? "quick kernels" : "slow kernels";
}

static Trials some_trials(void) {
  static ConvCandidate list[COUNT];
  for (int i = 0; i < COUNT; i++)
    list[i] = (ConvCandidate){.algorithm = &quick, .knobs = {{i % 3, i / 3}}, .seconds = 1e-6 * (1 + 0.11 * i)};
  list[COUNT - 1].algorithm = &slow;
  list[COUNT - 1].seconds = 2.9e-6;
  ConvCandidates candidates = {.arena = arena, .count = COUNT, .list = list};
  return trials_new(arena, &candidates, &(ScheduleRecords){0}, &(RecordKey){0}, kernels_of, NULL);
}

static void end_trial(Trials *trials, int number, TrialState state, double median_us) {
  trials->list[number].state = state;
  trials->list[number].median_us = median_us;
  trials->tried++;
}

static void assert_next(const Trials *trials, bool all, int count, const int *expected) {
  Trial *next[COUNT];
  assert_int_equal(trials_next(arena, trials, count, all, next), count);
  for (int i = 0; i < count; i++) assert_int_equal(next[i]->number, expected[i]);
}

static void the_first_of_each_algorithm_comes_first(void **state) {
  (void)state;
  Trials trials = some_trials();
  assert_next(&trials, false, 4, (int[]){0, COUNT - 1, 1, 2});
  ((ConvCandidate *)(uintptr_t)trials.list[COUNT - 1].candidate)->seconds =
      3.1e-6; /* three times as slow: it is tried later */
  assert_next(&trials, false, 4, (int[]){0, 1, 2, 3});
}

static void errors_of_predictions_correct_similar_schedules(void **state) {
  (void)state;
  Trials trials = some_trials();
  end_trial(&trials, 0, TRIAL_OK, 1.3); /* knobs (0, 0): so others of a = 0, and of b = 0, are expected to be slower */
  end_trial(&trials, COUNT - 1, TRIAL_OK, 2.9);
  end_trial(&trials, 4, TRIAL_OK, 1.3); /* (1, 1), predicted 1.44: quicker */
  assert_next(&trials, false, 1, (int[]){1});
  end_trial(&trials, 8, TRIAL_CRASHED, 0); /* without a time */
  end_trial(&trials, 1, TRIAL_OK, 3); /* (1, 0), next to (2, 0): not to (0, 1), which was predicted to take longer */
  assert_next(&trials, false, 1, (int[]){3});
}

static void the_times_of_one_algorithm_hardly_correct_another(void **state) {
  (void)state;
  Trials trials = some_trials();
  ConvCandidate *other = (ConvCandidate *)(uintptr_t)trials.list[COUNT - 2].candidate;
  other->algorithm = &slow;
  for (int i = 0; i < 7; i++) end_trial(&trials, i, TRIAL_OK, 4e6 * trials.list[i].candidate->seconds);
  end_trial(&trials, COUNT - 2, TRIAL_OK, 1e6 * other->seconds);
  assert_next(&trials, true, 2, (int[]){COUNT - 1, 7}); /* the slow one is as predicted, 2.9 us; not the quick, 1.77 */
}

static void hopeless_schedules_are_left_out_unless_all_are_requested(void **state) {
  (void)state;
  Trials trials = some_trials();
  Trial *next[COUNT];
  end_trial(&trials, 0, TRIAL_OK, 1);
  assert_int_equal(trials_next(arena, &trials, COUNT, false, next), 5); /* to 1.44 us, and the slow one */
  assert_int_equal(trials_next(arena, &trials, COUNT, true, next), COUNT - 1);
}

static void failed_schedules_are_neither_tried_again_nor_chosen(void **state) {
  (void)state;
  Trials trials = some_trials();
  static const TrialState failures[] = {TRIAL_CRASHED, TRIAL_HUNG, TRIAL_WRONG, TRIAL_LOST};
  for (int i = 0; i < 4; i++) end_trial(&trials, i, failures[i], 0);
  assert_null(trials_best(&trials));
  end_trial(&trials, 7, TRIAL_OK, 5);
  end_trial(&trials, 5, TRIAL_OK, 4);
  assert_ptr_equal(trials_best(&trials), &trials.list[5]);
  Trial *next[COUNT];
  assert_int_equal(trials_next(arena, &trials, COUNT, true, next), COUNT - 6);
  for (int i = 0; i < COUNT - 6; i++) assert_int_equal(next[i]->state, TRIAL_OPEN);
}

static void trials_with_records_of_the_key_are_done(void **state) {
  (void)state;
  Trials fresh = some_trials();
  RecordKey key = {.family = "conv", .workload = "w", .target = "t"}, other = key;
  other.workload = "v";
  ScheduleRecord list[] = {
      {.key = key, .schedule = fresh.list[2].schedule, .status = "ok", .median_us = 7},
      {.key = key, .schedule = fresh.list[1].schedule, .kernels = "older", .status = "crashed"},
      {.key = key, .schedule = fresh.list[3].schedule, .kernels = "quick kernels", .status = "crashed"},
      {.key = key, .schedule = fresh.list[5].schedule, .status = "ok", .median_us = 0},
      {.key = key, .schedule = fresh.list[2].schedule, .status = "ok", .median_us = 8},
      {.key = key, .schedule = fresh.list[2].schedule, .median_us = 6},
      {.key = other, .schedule = fresh.list[4].schedule, .status = "ok", .median_us = 1}};
  ConvCandidate candidates[COUNT];
  for (int i = 0; i < COUNT; i++) candidates[i] = *fresh.list[i].candidate;
  Trials trials = trials_new(arena, &(ConvCandidates){.count = COUNT, .list = candidates},
                             &(ScheduleRecords){.count = 7, .list = list}, &key, kernels_of, NULL);
  assert_int_equal(trials.tried, 2); /* a record without a time does not count; one is of other kernels */
  assert_ptr_equal(trials_best(&trials), &trials.list[2]);
  assert_true(trials.list[2].median_us == 8 && trials.list[3].state == TRIAL_CRASHED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_of_each_algorithm_comes_first),
      cmocka_unit_test(errors_of_predictions_correct_similar_schedules),
      cmocka_unit_test(the_times_of_one_algorithm_hardly_correct_another),
      cmocka_unit_test(hopeless_schedules_are_left_out_unless_all_are_requested),
      cmocka_unit_test(failed_schedules_are_neither_tried_again_nor_chosen),
      cmocka_unit_test(trials_with_records_of_the_key_are_done),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
