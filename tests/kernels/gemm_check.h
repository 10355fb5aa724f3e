/* SPDX-License-Identifier: MIT */
/* A specialised matrix product, the packing that goes with it, and their knobs. */
#ifndef GEMM_CHECK_H
#define GEMM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "team.h"

typedef void GemmKernel(const Team *team, const float *a, const float *b, const float *addend, float *c, float scale,
                        float addend_scale, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth,
                        int64_t addend_row, int64_t c_row, int64_t batch_rank, const int64_t *batch_dims,
                        const int64_t *a_batch, const int64_t *b_batch, const float *scales);

typedef void PackKernel(const Team *team, const float *source, const float *addend, float *target, int64_t batches,
                        int64_t batch_stride, int64_t directions, int64_t direction_stride, int64_t units,
                        int64_t depth, int64_t column_stride, int64_t depth_stride);

typedef struct GemmVariant {
  const char *name;
  int lanes, vectors;
  bool scaled, addend;
  int crews, crew; /* the knobs */
  GemmKernel *gemm;
  PackKernel *pack;
} GemmVariant;

extern const GemmVariant *const gemm_variants[]; /* NULL-terminated */

#endif
