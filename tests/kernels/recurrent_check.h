/* SPDX-License-Identifier: MIT */
/* A specialised recurrent kernel and its knobs. */
#ifndef RECURRENT_CHECK_H
#define RECURRENT_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "team.h"

typedef void RecurrentKernel(Team *team, const float *x, const float *input, const float *bias, float *gates,
                             const float *weights, const float *candidate, const float *after_bias,
                             const float *peepholes, const void *lengths, const float *initial_h,
                             const float *initial_c, float *y, float *y_h, float *y_c, float *memory, float *partial,
                             float clip, int64_t steps, int64_t first, int64_t count, int64_t batch, int64_t inputs,
                             int64_t hidden, int64_t directions, int64_t direction, int64_t reverse,
                             int64_t batch_first, int64_t turn, const float *input_scales, const float *scales,
                             const float *candidate_scales);

typedef struct Variant {
  const char *name;
  int cell; /* CELL of the template */
  int unit_vectors, panel_parts, lanes, length_bytes;
  bool clip, peepholes, input_forget, hide, halves, input; /* the knobs of the same names */
  RecurrentKernel *kernel;
} Variant;

extern const Variant *const variants[]; /* NULL-terminated */

enum { GEMM_VECTORS = 4 };
void kernel_gemm_packed(const Team *team, const float *a, const float *b, const float *addend, float *c, float scale,
                        float addend_scale, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth,
                        int64_t addend_row, int64_t c_row, int64_t batch_rank, const int64_t *batch_dims,
                        const int64_t *a_batch, const int64_t *b_batch);

#endif
