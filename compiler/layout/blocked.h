/* SPDX-License-Identifier: MIT */
/*
 * The blocked layout NCHW[x]c (NeoCPU section 3.1): [N][ceil(C/x)][H][W][x], so that x channels of a pixel are one
 * vector. A tensor of rank 3, [N, C, W], is a plane of one row.
 *
 * x is the lanes of a vector (C, for images of fewer channels), or two vectors': a wide block, which only some kernels
 * read or write.
 *
 * The lanes of the last block past channel C are unspecified: no kernel may use them as values.
 *
 * A tensor may be a part of another: a contiguous range of its channel blocks. Its images then are as far apart as the
 * whole's, which is why kernels take that distance for every blocked tensor.
 */
#ifndef RNNCC_BLOCKED_H
#define RNNCC_BLOCKED_H

#include "ir/graph.h"

typedef struct Blocked {
  int64_t block;    /* x */
  int64_t channels; /* C, without what rounds it up to whole blocks */
  int64_t blocks;   /* ceil(C / x) */
  int64_t height, width;
  int64_t plane; /* floats of one channel block: height * width * x */
  int64_t image; /* floats from one image to the next */
} Blocked;

/* Can the value stand in a blocked layout: f32, rank 3 or 4, all but N known? */
bool can_be_blocked(const Value *value);

/* Channels of a wide block. */
int wide_block(const Graph *graph);
/* Is the value in wide blocks? */
bool is_wide(const Graph *graph, const Value *value);

/* needs: can_be_blocked. A value that is not blocked is told as if it were, in blocks of the target's vectors: where
 * same_bytes() holds the two are one. */
Blocked blocked_of(const Graph *graph, const Value *value);

/* A constant of `count` floats, one a channel, and zeros up to whole blocks. `data`: copied; the other rounds doubles.
 */
Value *channel_constant(Graph *graph, const char *name, const float *data, int64_t count, int64_t block);
Value *channel_constant_rounded(Graph *graph, const char *name, const double *data, int64_t count, int64_t block);

/* Is the value in blocks of `block` the same bytes as row-major? One pixel, and whole blocks of channels. */
bool same_bytes(const Value *value, int block);

/* Bytes from the start of an image of a blocked value to its channel, the first of a block. */
int64_t channel_bytes(const Value *value, int64_t channel);

/* Bytes from the start of its root's memory to where the value begins. */
int64_t value_first_byte(const Value *value);

#endif
