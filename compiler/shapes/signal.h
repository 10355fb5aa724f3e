/* SPDX-License-Identifier: MIT */
/* The operands of Fourier transforms. */
#ifndef RNNCC_SIGNAL_H
#define RNNCC_SIGNAL_H

#include "ir/graph.h"

/* The longest transform as one matrix product, and the longest one that is not split even where it can be: 400 and 512
 * real numbers take 3.1 and 4.9 us as one product, 2.8 and 3.6 us in two steps (EPYC 9004, one thread, 100 at a time).
 */
enum { MAX_DFT_MATRIX = 2048, BEST_DFT_MATRIX = 256 };

/* The largest divisor up to the square root, by which a transform of `length` is split. */
int64_t dft_factor(int64_t length);
/* Is it one matrix product: short, or without a good factor? */
bool dft_is_matrix(int64_t length);

typedef struct Dft {
  int axis;
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
