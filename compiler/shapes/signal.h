/* SPDX-License-Identifier: MIT */
/* The operands of Fourier transforms. */
#ifndef RNNCC_SIGNAL_H
#define RNNCC_SIGNAL_H

#include "ir/graph.h"

/* Most points of a transform, and of one that has no plan (fourier_plan.h) and is a matrix product. */
enum { MAX_DFT = 1 << 24, MAX_DFT_MATRIX = 2048 };

/* The least power of two in which a convolution of `length` points with twice as many does not overlap. */
int64_t dft_period(int64_t length);

typedef struct Dft {
  int axis;
  const Dim *of_run;             /* the length, where only the run knows it: no number below but the parts; or NULL */
  int64_t length;                /* of the transform */
  int64_t points, parts;         /* that it reads of the axis; 1: real numbers, 2: complex ones */
  int64_t results, result_parts; /* that it writes */
  bool inverse, onesided;
} Dft;

typedef struct Stft {
  int64_t step, length, parts, bins; /* of a frame */
  bool onesided;
  const Dim *frames;
} Stft;

/* False after an error. */
bool read_dft(Graph *graph, const Node *node, Dft *dft);
bool read_stft(Graph *graph, const Node *node, Stft *stft);

#endif
