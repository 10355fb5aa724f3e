/* SPDX-License-Identifier: MIT */
/* Time steps, one after the other, as one value. */
#ifndef RNNCC_REROLL_STEPS_H
#define RNNCC_REROLL_STEPS_H

#include "reroll/strip.h"
#include "shapes/build.h"

/* The inputs or outputs of n steps. Each step has the same number of parts with contiguous columns. */
typedef struct Steps {
  int n, n_parts;
  Strip *strips; /* [n_parts][n], at their origin */
} Steps;

Steps steps_new(Arena *arena, int n, int n_parts);
Strip *steps_part(const Steps *steps, int part);

/* 1 if the strips are neighbouring steps of one value, in order; -1 if in reverse order; else 0. */
int strips_direction(const Strip *strips, int n);

/* Are there rows on an axis before that of the steps? */
bool rows_come_first(const Value *value, int steps_axis);

/* [n, B, columns], in time: the last step first if direction is -1. Parts that are no neighbours in that direction are
 * copied together. */
Value *build_steps(const Builder *builder, const Steps *steps, int direction);

/* The strip as a value of its own, [1, B, columns]. */
Value *build_strip(const Builder *builder, const Strip *strip);

#endif
