/* SPDX-License-Identifier: MIT */
/* The place of every value while the module runs. */
#ifndef RNNCC_PLAN_MEMORY_H
#define RNNCC_PLAN_MEMORY_H

#include "program/fit_spans.h"
#include "program/program.h"

/* A value of the arena, or of the gradients' memory, (a root), and when it is live. */
typedef struct Interval {
  Value *value;
  int64_t bytes;     /* at the dims' maxima, rounded up to 64 */
  int first, last;   /* live from step to step, both included; one past the last step: to the end */
  const Value *over; /* written over this one, by the last call that reads it; NULL: none */
  int span;          /* index of its span; of the gradients' memory: not used */
} Interval;

struct MemoryPlan {
  int end; /* one past the last step */
  int n_intervals;
  Interval *intervals; /* by value id; the values have the offsets */
  int n_in_gradients;
  Interval *in_gradients; /* the same, of values whose place is in the gradients' memory */
  int n_spans;
  Span *spans; /* one for each chain of values written over each other */
  int64_t arena_bytes;
  int64_t lower_bound; /* the largest live set */
};

#endif
