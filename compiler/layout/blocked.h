/* SPDX-License-Identifier: MIT */
/*
 * The blocked layout NCHW[x]c (NeoCPU section 3.1): [N][ceil(C/x)][H][W][x], so that x channels of a pixel are one
 * vector. A tensor of rank 3, [N, C, W], is a plane of one row.
 *
 * x is the lanes of a vector, or two vectors': a wide block, which only some kernels read or write. Images of fewer
 * channels may be narrow, in one block of C channels; of bytes, of C rounded up to STEP_CHANNELS.
 *
 * Elements are f32, or the bytes of quantised numbers, u8 or i8: x is the lanes of f32 vectors for both, so that
 * kernels of either take the same parts of a tensor.
 *
 * The lanes of the last block past channel C are unspecified: no kernel may use them as values.
 *
 * H and W may be dims that only the run knows. Kernels then take them as operands.
 *
 * A tensor may be a part of another: a contiguous range of its channel blocks. Its images then have the stride of the
 * whole tensor's, so kernels take that stride for every blocked tensor. Only tensors of constant H and W have parts.
 */
#ifndef RNNCC_BLOCKED_H
#define RNNCC_BLOCKED_H

#include "ir/graph.h"

typedef struct Blocked {
  int64_t block;    /* x */
  int64_t channels; /* C, not rounded up */
  int64_t blocks;   /* ceil(C / x) */
  const Dim *height, *width;
  const Dim *plane; /* elements of one channel block: height * width * x */
  const Dim *image; /* elements from one image to the next */
} Blocked;

/* Are H and W constant? */
bool has_constant_plane(const Value *value);

/* Channels that a step of a product of bytes multiplies: DOT of templates/simd/int8.h. */
enum { STEP_CHANNELS = 4 };

/* Can the value have a blocked layout: f32, u8 or i8, rank 3 or 4, C constant, H and W never 0, planes not too large?
 */
bool can_be_blocked(const Value *value);
/* Why it cannot, to follow "its input ": "is not of type f32, u8 or i8". NULL: it can. */
const char *blocked_obstacle(const Value *value);

/* Channels of a wide block. */
int wide_block(const Graph *graph);

/* needs: can_be_blocked. A row-major value is described as if in blocks of a vector: where same_bytes() holds, both are
 * the same. */
Blocked blocked_of(const Graph *graph, const Value *value);

/* Vectors of a plane: pixels, times the vectors of a block. */
const Dim *blocked_vectors(const Graph *graph, const Blocked *blocked);

/* A constant of one float a channel, padded with zeros to whole blocks; copies `data`. */
Value *channel_constant(Graph *graph, const char *name, const float *data, int64_t count, int64_t block);
Value *channel_constant_rounded(Graph *graph, const char *name, const double *data, int64_t count, int64_t block);

/* Are blocks of `block` and row-major the same bytes? True for one pixel and whole blocks of channels. */
bool same_bytes(const Value *value, int block);

/* Byte offset of a channel, the first of a block, in an image of a blocked value. needs: has_constant_plane, or channel
 * 0. */
int64_t channel_bytes(const Value *value, int64_t channel);

/* Byte offset of the value in its root's memory. */
int64_t value_first_byte(const Value *value);

#endif
