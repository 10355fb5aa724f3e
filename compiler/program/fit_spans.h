/* SPDX-License-Identifier: MIT */
/* Offsets for pieces of memory that are in use during known times (dynamic storage allocation). */
#ifndef RNNCC_FIT_SPANS_H
#define RNNCC_FIT_SPANS_H

#include <stdint.h>

#include "support/arena.h"

typedef struct Span {
  int64_t bytes;
  int first, last; /* in use from step to step, both included */
  int64_t offset;  /* set by fit_spans */
} Span;

/* Sets offsets such that spans in use at the same time share no byte. Returns the end of the highest. About n log n
 * steps if few are in use at once. */
int64_t fit_spans(Arena *arena, Span *spans, int n);

/* The most bytes in use at one step, a lower bound of the arena. */
int64_t largest_live_set(Arena *arena, const Span *spans, int n);

#endif
