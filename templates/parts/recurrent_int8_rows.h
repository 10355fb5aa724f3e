/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers of integers, after recurrent_cells.h: a direction's weights and quantised
 * states, and what becomes of a product's sums. The template says before it how products are made, FORM of
 * panel_int8.h.
 */
#include "simd/int8.h"

/* All states have one range, which is given.
 * legal: 0 1 */
enum { FIXED = 0 };

/* s8 weights, and what they stand for: [panels][H, padded][vectors][LANES], and [panels][vectors][LANES]. */
typedef struct Weights {
  const int8_t *elements;
  const float *scales;
  const int32_t *totals; /* of columns */
} Weights;

typedef struct Steps {
  Layer layer;
  Weights weights, candidate; /* candidate: of GRU_BEFORE */
  uint8_t *state;             /* this worker's: [B][state_row], quantised */
  RowScale *scales;           /* this worker's: [B] */
  FixedRange range;           /* if FIXED */
  int64_t state_row, depth;   /* in bytes: of a row, and those that are multiplied */
} Steps;

SIMD_FUNCTION void quantise_state(const Steps *s, const float *state) {
  const Layer *l = &s->layer;
  for (int64_t i = block_at(l, l->block_begin); i < block_at(l, l->block_end); i++)
    s->scales[i] =
        FIXED ? quantise_row_by(state + i * l->state_row, l->hidden, int8_row_at(s->state, i, s->state_row, FORM), FORM,
                                &s->range)
              : quantise_row(state + i * l->state_row, l->hidden, int8_row_at(s->state, i, s->state_row, FORM), FORM);
}

SIMD_FUNCTION void finish_row(const Steps *s, int64_t step, int64_t panel, int64_t sample, const vint *products,
                              bool candidate) {
  const Layer *l = &s->layer;
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS, first = candidate ? 2 * UNIT_VECTORS : 0;
  const Weights *w = candidate ? &s->candidate : &s->weights;
  const float *gates = gates_of(l, step, sample) + panel * GATE_VECTORS * LANES;
  const float *scales = w->scales + panel * vectors * LANES;
  const int32_t *totals = w->totals + panel * vectors * LANES;
  RowScale row = s->scales[sample];
  PanelRow sums;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++)
    sums[v] =
        int8_product(start_of(l, gates, panel, first + v), products[v], row, scales + v * LANES, totals + v * LANES);
  if (CELL == CELL_GRU_BEFORE && !candidate)
    finish_reset(l, step, panel, sample, sums);
  else
    finish_sample(l, step, panel, sample, sums);
}

/* A sample whose sums are in memory, [vectors][LANES]. */
SIMD_FUNCTION void finish_stored(const Steps *s, int64_t step, int64_t panel, int64_t sample, const int32_t *stored,
                                 bool candidate) {
  int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  PanelSums products;
#pragma clang loop unroll(full)
  for (int v = 0; v < PRODUCT_VECTORS; v++) products[v] = v < vectors ? vint_load(stored + v * LANES) : vint_zero();
  if (candidate)
    finish_row(s, step, panel, sample, products, true);
  else
    finish_row(s, step, panel, sample, products, false);
}
