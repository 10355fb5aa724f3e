/* SPDX-License-Identifier: MIT */
/* Packed weights of fewer bits (ir/narrow.h), for all users of templates/panel_narrow.h, which has their layout. */
#ifndef RNNCC_NARROW_PANELS_H
#define RNNCC_NARROW_PANELS_H

#include "kernels/gemm/gemm.h"

typedef struct NarrowPanels {
  Value *packed;
  Value *scales; /* of i8 and i4; else NULL */
} NarrowPanels;

/* Of a constant of which the element `first` is the first one. */
NarrowPanels packed_narrow(Graph *graph, const char *name, const Panels *panels, const Value *source, int64_t first);

/* Sets the knobs that say how the weights are stored. NULL: in f32. */
void weights_knobs(KernelSpec *spec, const NarrowWeights *narrow);
bool weights_alike(const NarrowWeights *a, const NarrowWeights *b); /* the same knobs */

/* Bytes of a weight; bits of one. */
double weights_size(const NarrowWeights *narrow);

/* A slice of the depth begins with a multiple of so many steps, of weights that are stored so. */
int64_t weights_slice(const NarrowWeights *narrow);

/* The knobs of the product of m rows by these weights, with such slices, and with tiles if it is made in them. */
GemmKnobs narrow_gemm_knobs(Graph *graph, GemmKnobs knobs, const Dim *m, const NarrowWeights *narrow);

/* Are products of these weights in tiles of bf16 (templates/simd/bf16.h)? */
bool weights_in_tiles(const Target *target, const NarrowWeights *narrow);

/* Are products of at most so many rows with these weights by up to 16 rows at once (templates/panel_matrices.h)? */
bool weights_in_matrices(const Target *target, const NarrowWeights *narrow, int64_t rows, int64_t depth);
/* Then the numbers of bf16 that a float of a row becomes: it is rounded, or the sum of three. */
int weights_row_parts(const NarrowWeights *narrow);

/* Rows of a block of such tiles whose sums stay in registers; of the blocks of M. */
int bf16_register_rows(const Target *target, int vectors);
BlockRows bf16_block_rows(Graph *graph, int vectors, const Dim *m, int ways);

/* Tells the type of a call's multiply-adds with such weights, which have been told; in matrices each counts as many as
 * a float has parts. */
void weights_products(Call *call, const NarrowWeights *narrow, bool in_matrices);

#endif
