/* SPDX-License-Identifier: MIT */
/*
 * Private-cache-aware partitioning (DeepCPU, section 5.2): C[I,J] += A[I,K] B[K,J], once for each step of a sequence,
 * is split into X_i x X_j x X_k = P parts, one a core, and each core keeps its part of B through the sequence. The
 * traffic from the shared cache to the private ones is, in bytes of the three matrices,
 *
 *   steps * (X_j |A| + 2 X_k |C|) + X_i |B|       while a core's part of B, |B| / (X_j X_k), fits its private cache
 *   steps * (X_j |A| + X_i |B| + 2 X_k |C|)       else
 *
 * In a recurrent layer I are the samples, J the gates' units, K the hidden state. Kernels do not split K (X_k =
 * 1), so sums have the same order, and the same bits, on any number of cores.
 */
#ifndef RNNCC_PARTITION_H
#define RNNCC_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Split {
  int i, j, k; /* X_i, X_j, X_k */
} Split;

typedef struct MmExtents {
  int64_t i, j, k; /* I, J, K, in elements: f32, or bytes of A and B */
  bool bytes;
  int64_t steps;
  int64_t most_i, most_j; /* upper bounds of X_i and X_j: samples, panels of units */
} MmExtents;

double pcp_traffic(const MmExtents *mm, Split split, int64_t private_bytes);

/* Is X_k 1, and is no part empty? */
bool split_is_legal(const MmExtents *mm, Split split);

/* The legal split into p parts of the least traffic. Of splits within 5% of the least, less than the formula's error,
 * the one with the smallest X_j: parts of J need a barrier every step, parts of I none. If no legal split has p parts,
 * the largest number of parts that has one. */
Split pcp_split(const MmExtents *mm, int p, int64_t private_bytes);

#endif
