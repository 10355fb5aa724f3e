/* SPDX-License-Identifier: MIT */
#include "tune/trials.h"

#include <math.h>
#include <string.h>

/* Candidates that should take more than this many times the best time are not tried. */
static const double HOPELESS = 1.5;

/* Another algorithm is tried if its predicted time is at most this many times the first's. */
static const double WORTH_A_TRY = 3;

/* A candidate that differs from another in n knobs learns half as much from it as one that differs in n - 1. */
static const double LIKENESS = 0.5;

static const char *const statuses[] = {[TRIAL_OK] = "ok",
                                       [TRIAL_CRASHED] = "crashed",
                                       [TRIAL_HUNG] = "hung",
                                       [TRIAL_WRONG] = "wrong",
                                       [TRIAL_LOST] = NULL};
enum { STATES = sizeof statuses / sizeof *statuses };

const char *trial_status(TrialState state) { return statuses[state]; }

/* ---- earlier records ---- */

/* TRIAL_OPEN: not the status of a trial. */
static TrialState state_of(const char *status) {
  for (int state = TRIAL_OK; state < STATES; state++)
    if (status && statuses[state] && !strcmp(status, statuses[state])) return (TrialState)state;
  return TRIAL_OPEN;
}

/* A record of a working schedule without a time carries no information. */
static bool says_nothing(const ScheduleRecord *record) {
  TrialState state = state_of(record->status);
  return state == TRIAL_OPEN || (state == TRIAL_OK && !(record->median_us > 0));
}

static void recall(Trials *trials, const ScheduleRecord *record, CandidateKernels *kernels, const void *layer) {
  for (int i = 0; i < trials->count; i++) {
    Trial *trial = &trials->list[i];
    if (strcmp(trial->schedule, record->schedule) != 0 || !record_has_kernels(record, kernels(layer, trial->candidate)))
      continue;
    trials->tried += trial->state == TRIAL_OPEN;
    trial->state = state_of(record->status);
    trial->median_us = record->median_us;
  }
}

Trials trials_new(Arena *arena, const ConvCandidates *candidates, const ScheduleRecords *records, const RecordKey *key,
                  CandidateKernels *kernels, const void *layer) {
  Trials trials = {.count = candidates->count, .list = ARENA_ARRAY(arena, Trial, candidates->count)};
  for (int i = 0; i < trials.count; i++) {
    const ConvCandidate *candidate = &candidates->list[i];
    trials.list[i] = (Trial){.number = i, .candidate = candidate, .schedule = convolution_text(arena, candidate)};
  }
  for (int i = 0; i < records->count; i++)
    if (!says_nothing(&records->list[i]) && record_is_of(&records->list[i], key))
      recall(&trials, &records->list[i], kernels, layer);
  return trials;
}

/* ---- what comes next ---- */

static int knobs_apart(const ConvCandidate *a, const ConvCandidate *b) {
  int apart = 0;
  for (int i = 0; a->algorithm->kind.knobs[i].name; i++) apart += a->knobs.value[i] != b->knobs.value[i];
  return apart;
}

static double log_error(const Trial *trial) { return log(1e-6 * trial->median_us / trial->candidate->seconds); }

/* The mean of all measured candidates; 0 if there are none. */
static double mean_error(const Trials *trials) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < trials->count; i++)
    if (trials->list[i].state == TRIAL_OK) sum += log_error(&trials->list[i]), count++;
  return count ? sum / count : 0;
}

/* Microseconds. */
static double expected_us(const Trials *trials, const ConvCandidate *candidate, double usual_error) {
  static const double weight_of_all = 0.25;
  double weights = weight_of_all, errors = weight_of_all * usual_error;
  for (int i = 0; i < trials->count; i++) {
    const Trial *other = &trials->list[i];
    if (other->state != TRIAL_OK || other->candidate->algorithm != candidate->algorithm) continue;
    double weight = pow(LIKENESS, knobs_apart(candidate, other->candidate));
    weights += weight;
    errors += weight * log_error(other);
  }
  return 1e6 * candidate->seconds * exp(errors / weights);
}

Trial *trials_best(const Trials *trials) {
  Trial *best = NULL;
  for (int i = 0; i < trials->count; i++) {
    Trial *trial = &trials->list[i];
    if (trial->state == TRIAL_OK && (!best || trial->median_us < best->median_us)) best = trial;
  }
  return best;
}

static bool is_first_of_algorithm(const Trials *trials, int i) {
  const Trial *list = trials->list;
  for (int other = 0; other < i; other++)
    if (list[other].candidate->algorithm == list[i].candidate->algorithm) return false;
  return list[i].candidate->seconds <= WORTH_A_TRY * list[0].candidate->seconds;
}

/* The lowest goes first; below 0: must be tried. */
static double urgency(const Trials *trials, int i, double usual_error) {
  if (is_first_of_algorithm(trials, i)) return (double)i - trials->count;
  return expected_us(trials, trials->list[i].candidate, usual_error);
}

int trials_next(Arena *arena, const Trials *trials, int most, bool all, Trial **next) {
  const Trial *best = trials_best(trials);
  double usual_error = mean_error(trials), limit = best && !all ? HOPELESS * best->median_us : INFINITY;
  double *urgencies = ARENA_ARRAY(arena, double, trials->count);
  for (int i = 0; i < trials->count; i++)
    urgencies[i] = trials->list[i].state == TRIAL_OPEN ? urgency(trials, i, usual_error) : INFINITY;
  for (int count = 0; count < most; count++) {
    int least = 0;
    for (int i = 1; i < trials->count; i++)
      if (urgencies[i] < urgencies[least]) least = i;
    if (urgencies[least] >= limit) return count;
    urgencies[least] = INFINITY;
    next[count] = &trials->list[least];
  }
  return most;
}
