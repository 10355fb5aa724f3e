/* SPDX-License-Identifier: MIT */
/* Where every value lives while the module runs. */
#ifndef RNNCC_PLAN_MEMORY_H
#define RNNCC_PLAN_MEMORY_H

#include "program/fit_spans.h"
#include "program/program.h"

/* A value of the arena (the root of its views) and when it must keep its bytes. */
typedef struct Interval {
  Value *value;
  int64_t bytes;     /* at the dims' maxima, rounded up to 64 */
  int first, last;   /* steps between which it is live, both included; one past the last: to the end */
  const Value *over; /* it is written over this one, by the call that reads that for the last time; NULL: over none */
  int span;          /* of the plan: the memory that it stands in */
} Interval;

typedef struct MemoryPlan {
  int end; /* one past the last step */
  int n_intervals;
  Interval *intervals; /* by value id; offsets stand in the values */
  int n_spans;
  Span *spans; /* one a chain of values that are written over each other */
  int64_t arena_bytes;
  int64_t lower_bound; /* the largest live set */
} MemoryPlan;

#endif
