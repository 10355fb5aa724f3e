/* SPDX-License-Identifier: MIT */
/* Shared by all users of templates/gemm_packed.c: its knobs, and packing of B. */
#ifndef RNNCC_GEMM_H
#define RNNCC_GEMM_H

#include "kernels/gemm/matrices.h"
#include "kernels/gemm/panels.h"
#include "machine/targets.h"
#include "template/specialise.h"

typedef struct Program Program; /* program/program.h */
typedef struct Call Call;

/* Rows of the blocks of M, balanced: any number up to `most`, or one of two neighbours if M is constant. The number of
 * blocks is a multiple of `ways`, if M has as many rows. */
typedef struct BlockRows {
  int least, most;
} BlockRows;
BlockRows block_rows(int most, const Dim *m, int ways);
/* The same of tiles, each of two rows, so that all blocks begin with even ones. `most` is even. */
BlockRows block_rows_in_tiles(Graph *graph, int most, const Dim *m, int ways);

typedef struct GemmKnobs {
  BlockRows rows;
  int vectors, group;
  int row_parts; /* of products in matrices: numbers of bf16 that a float of a row becomes */
  int64_t depth_block;
} GemmKnobs;

/* For m rows, n columns and depth k. */
GemmKnobs gemm_knobs(const Graph *graph, int64_t n, int64_t k, const Dim *m);
/* Vectors of a panel of n columns. */
int gemm_panel_vectors(const Target *target, int64_t n);
/* Rows of a block whose rows * vectors sums stay in the target's registers. */
int register_rows(const Target *target, int vectors);
/* The same of tiles; even. */
int register_rows_in_tiles(const Target *target, int vectors);

/* Of templates/panel_matrices.h, of bf16: steps of the depth in a matrix, and of these those that share a word. */
enum { BF16_DEPTH = MATRIX_BYTES / 2, BF16_WORD = 2 };
/* Products of bf16 in matrices, of panels of at most so many vectors. */
GemmKnobs gemm_knobs_in_matrices(Graph *graph, int vectors, const Dim *m, int row_parts);
/* The bytes of m rows as their kernel brings them to bf16. */
const Dim *rounded_bytes(Graph *graph, const Dim *m, const Dim *k, int row_parts);
KernelSpec *gemm_bf16_spec(Arena *arena, const GemmKnobs *knobs);

void gemm_dump(Text *out, const GemmKnobs *knobs); /* a line of a dump */

/* The template with these knobs; the caller sets others. */
KernelSpec *gemm_spec(Arena *arena, const GemmKnobs *knobs);

/* A constant matrix, packed: f32 of rank 1. addend: added to it; NULL: none. */
Value *packed_constant(Graph *graph, const char *name, const Panels *panels, const float *source, const float *addend);

/* A kernel that packs a matrix at run time, with an addend if `adds`. The caller gives source, addend, target, and all
 * sizes except those of the directions. */
Call *lower_packing(Program *program, const Node *node, const Panels *panels, bool adds);

#endif
