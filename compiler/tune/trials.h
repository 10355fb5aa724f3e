/* SPDX-License-Identifier: MIT */
/*
 * The candidates of one convolution and the results of those tried. The cost model's predictions, corrected by
 * measurements, say which to try next: a prediction is assumed to be as wrong as those of similar candidates that were
 * measured.
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
  TRIAL_LOST, /* could not be built or measured, for no fault of its own: not recorded */
} TrialState;

typedef struct Trial {
  int number; /* position in the list */
  const ConvCandidate *candidate;
  const char *schedule; /* in its text form */
  TrialState state;
  double median_us;
  const char *module; /* path; NULL: not built, or removed */
} Trial;

typedef struct Trials {
  int count, tried; /* tried: those that are not open */
  Trial *list;      /* in the candidates' order: the first is the choice without records */
} Trials;

/* The version of a candidate's kernels: kernels_fingerprint(). */
typedef const char *CandidateKernels(const void *layer, const ConvCandidate *candidate);

/* Candidates that have a record of this key and of their kernels start with its result. */
Trials trials_new(Arena *arena, const ConvCandidates *candidates, const ScheduleRecords *records, const RecordKey *key,
                  CandidateKernels *kernels, const void *layer);

/* The name of a record's status for the state; NULL: none. */
const char *trial_status(TrialState state);

/* Up to `most` open candidates to be tried next: the first of all, the first of each other algorithm that may be as
 * good, then those that should be fastest. Without `all`, none that should take 1.5 times as long as the best. Returns
 * how many. */
int trials_next(Arena *arena, const Trials *trials, int most, bool all, Trial **next);

/* The fastest that works; NULL: none. */
Trial *trials_best(const Trials *trials);

#endif
