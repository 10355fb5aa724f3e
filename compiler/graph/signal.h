/* SPDX-License-Identifier: MIT */
/* The Fourier transforms' operands, read. */
#ifndef RNNCC_SIGNAL_H
#define RNNCC_SIGNAL_H

#include "ir/graph.h"

/* Numbers of the longest transform that is one matrix product; longer ones are split. */
enum { MAX_DFT_MATRIX = 1024 };

/* The largest divisor up to the square root: a transform of `length` is split in it and the rest. 1: a prime. */
int64_t dft_factor(int64_t length);

typedef struct Dft {
  int axis;
  int64_t length, parts; /* of the transform; 1: of real numbers, 2: of complex ones */
  bool inverse, onesided;
} Dft;

typedef struct Stft {
  int64_t step, length, parts, bins; /* of a frame */
  bool onesided;
  const Dim *frames;
} Stft;

/* False with an error told. */
bool read_dft(Graph *graph, const Node *node, Dft *dft);
bool read_stft(Graph *graph, const Node *node, Stft *stft);

#endif
