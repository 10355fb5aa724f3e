/* SPDX-License-Identifier: MIT */
/* A specialised attention kernel and its knobs. */
#ifndef ATTENTION_CHECK_H
#define ATTENTION_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "team.h"

typedef void AttentionKernel(const Team *team, const float *q, const float *k, const float *v, const float *mask,
                             float *y, float *scratch, float scale, int64_t queries, int64_t keys, int64_t depth,
                             int64_t width, int64_t q_row, int64_t q_column, int64_t k_row, int64_t k_column,
                             int64_t v_row, int64_t v_column, int64_t mask_row, int64_t mask_column, int64_t y_row,
                             int64_t batch_rank, const int64_t *batch_dims, const int64_t *strides, int64_t low,
                             int64_t high, int64_t period, int64_t slots, int64_t slot);

typedef struct AttentionVariant {
  const char *name;
  int lanes, vectors, keys, query_blocks, mask;
  bool blind_zero, band; /* the knobs */
  AttentionKernel *attention;
} AttentionVariant;

extern const AttentionVariant *const attention_variants[]; /* NULL-terminated */

#endif
