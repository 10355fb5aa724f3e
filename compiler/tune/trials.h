/* SPDX-License-Identifier: MIT */
/*
 * The candidates of one convolution, and what is known of each. Which is tried next is said by the model's predictions,
 * put right by what was measured: a candidate is expected to be as far off as those measured that are like it.
 */
#ifndef RNNCC_TRIALS_H
#define RNNCC_TRIALS_H

#include "kernels/conv/candidates.h"
#include "schedules/records.h"

typedef enum TrialState {
  TRIAL_OPEN,    /* not tried */
  TRIAL_OK,      /* median_us is its time */
  TRIAL_CRASHED, /* these three are never chosen */
  TRIAL_HUNG,
  TRIAL_WRONG,
  TRIAL_LOST, /* it could not be built or measured, which says nothing of it: not recorded */
} TrialState;

typedef struct Trial {
  int number; /* place in the list */
  const ConvCandidate *candidate;
  const char *schedule; /* in words */
  TrialState state;
  double median_us;
  const char *module; /* path, while it is built; NULL: it is not */
} Trial;

typedef struct Trials {
  int count, tried; /* tried: those that are not open */
  Trial *list;      /* as the candidates are: the first is what is taken without records */
} Trials;

/* The version of a candidate's kernels: kernels_fingerprint(). */
typedef const char *CandidateKernels(const void *layer, const ConvCandidate *candidate);

/* Candidates that have a record of this key and of their kernels start with its result. */
Trials trials_new(Arena *arena, const ConvCandidates *candidates, const ScheduleRecords *records, const RecordKey *key,
                  CandidateKernels *kernels, const void *layer);

/* The name of a record's status for the state; NULL: none. */
const char *trial_status(TrialState state);

/* Up to `most` open ones to be tried next: the first of all, the first of each other algorithm that may be as good,
 * then those that should be fastest. Without `all`, none that should take half as long again as the best. How many. */
int trials_next(Arena *arena, const Trials *trials, int most, bool all, Trial **next);

/* The fastest; NULL if none is known to be good. */
Trial *trials_best(const Trials *trials);

#endif
