/* SPDX-License-Identifier: MIT */
/*
 * Private-cache-aware partitioning (DeepCPU, section 5.2): C[I,J] += A[I,K] B[K,J], once for each step of a sequence,
 * is split into X_i x X_j x X_k = P parts, one a core, and each core keeps its part of B through the sequence. What
 * moves from the shared cache to the private ones is, in bytes of the three matrices,
 *
 *   steps * (X_j |A| + 2 X_k |C|) + X_i |B|       while a core's part of B, |B| / (X_j X_k), fits its private cache
 *   steps * (X_j |A| + X_i |B| + 2 X_k |C|)       else
 *
 * In a recurrent layer I are the samples, J the gates' units, K the hidden state. Kernels leave the depth whole, X_k =
 * 1: then every sum runs in the same order on any number of cores, and is the same bits.
 */
#ifndef RNNCC_PARTITION_H
#define RNNCC_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Split {
  int i, j, k; /* X_i, X_j, X_k */
} Split;

typedef struct MmExtents {
  int64_t i, j, k; /* I, J, K, in f32 elements */
  int64_t steps;
  int64_t most_i, most_j; /* parts that the kernels can cut I and J into: samples, panels of units */
} MmExtents;

double pcp_traffic(const MmExtents *mm, Split split, int64_t private_bytes);

/* Is X_k 1, and no part empty? */
bool split_is_legal(const MmExtents *mm, Split split);

/* The legal split into p parts of the least traffic, and of those within a twentieth of the least, which is less than
 * the formula can tell, the one of the smallest X_j: parts of J wait for each other every step, parts of I never. X_i *
 * X_j is less than p where no legal split has p parts: the largest that has. */
Split pcp_split(const MmExtents *mm, int p, int64_t private_bytes);

#endif
