/* SPDX-License-Identifier: MIT */
/*
 * Packed matrices: panels of [k][vectors][LANES] columns (templates/panel.h).
 *
 * The columns come in `directions` sets of `gates` gates of `units` columns each; an ordinary matrix has one of both.
 * A recurrent layer's cell reads all gates of a unit together, so the packed order of vectors is
 *
 *   [direction][panel of units][gate][vector of units in the panel][LANES]
 *
 * Vectors past a gate's last unit, and past the last vector, are zero: kernels compute on them and store nothing.
 */
#ifndef RNNCC_PANELS_H
#define RNNCC_PANELS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Panels {
  int lanes;
  int vectors;      /* in a packed panel; need not be gates * unit_vectors */
  int gates;        /* 1 for an ordinary matrix */
  int unit_vectors; /* consecutive vectors of one gate */
  int addend_gates; /* leading gates that get the addend */
  bool in_matrices; /* of bf16: for templates/panel_matrices.h, which multiplies whole matrices of the depth */
  int64_t directions, units, depth;
  /* Strides of the source, in elements. */
  int64_t direction_stride, column_stride, depth_stride;
} Panels;

int64_t panels_floats(const Panels *panels); /* size of the packed matrix */

/* The packed columns, with padding. */
int64_t panels_columns(const Panels *panels);
/* Where in the source the packed column begins; -1: padding. */
int64_t panels_source(const Panels *panels, int64_t column);

/* target: panels_floats() zeros. addend: like source, added to it; NULL: none. */
void panels_pack(const Panels *panels, const float *source, const float *addend, float *target);

/* Vectors of a panel for an ordinary matrix of n columns: at most `most`, more than one if there are more, with the
 * least padding. */
int panels_best_vectors(int64_t n, int lanes, int most);

#endif
