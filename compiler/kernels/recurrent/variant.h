/* SPDX-License-Identifier: MIT */
/*
 * How a recurrent layer is run: what the plan chooses by cost, tuning measures, and tests force. Every variant gives
 * the same outputs but for rounding, and each the same bits on any number of threads.
 */
#ifndef RNNCC_VARIANT_H
#define RNNCC_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

/* Where the products with W run (DeepCPU, 5.1: a time-independent phase, or fused into the time-dependent one). */
typedef enum InputProduct {
  INPUT_AHEAD,    /* one product for many steps, before them */
  INPUT_WITH_STEP /* W x and R h of a step in one sweep over panels that hold both */
} InputProduct;

typedef struct RecurrentVariant {
  InputProduct input;
  int workers;     /* most workers that share one direction (P); the team may have fewer, or more, which then rest */
  int sample_ways; /* of them, how many share the samples (X_i); the others share the units (X_j) */
  bool hide;       /* two workers: each first multiplies what it has made itself of the hidden state, then waits */
  int depth_block; /* rows of R that all samples' blocks take together, the next prefetched; 0: all of them */
  int chunk; /* steps that one product with W is made for; a stack can run as a wavefront of such chunks; 0: all */
} RecurrentVariant;

/* Sets what `text` names: "input=ahead|step", "workers=N", "sample_ways=N", "hide=0|1", "depth_block=N", "chunk=N",
 * with commas between. False, with `wrong` (may be NULL) at the offending part, if it says something else. */
bool variant_override(RecurrentVariant *variant, const char *text, const char **wrong);

/* The text that variant_override() reads back. */
const char *variant_text(Arena *arena, const RecurrentVariant *variant);

#endif
