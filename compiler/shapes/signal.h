/* SPDX-License-Identifier: MIT */
/* The Fourier transforms' operands, read. */
#ifndef RNNCC_SIGNAL_H
#define RNNCC_SIGNAL_H

#include "ir/graph.h"

/* Numbers of the longest transform that is one matrix product, and of the longest that is though it could be split: 400
 * and 512 real numbers take 3.1 and 4.9 us as one, 2.8 and 3.6 in two steps (an EPYC 9004, one thread, 100 at a time).
 */
enum { MAX_DFT_MATRIX = 2048, BEST_DFT_MATRIX = 256 };

/* The largest divisor up to the square root: a transform of `length` is split in it and the rest. */
int64_t dft_factor(int64_t length);
/* Whether it is one matrix product: it is short, or would leave a part that is not much shorter. */
bool dft_is_matrix(int64_t length);

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
