/* SPDX-License-Identifier: MIT */
/*
 * Packs what a layer had at each row (a sample at a time, in X's order) into panels whose depth is the rows: the
 * right-hand matrix of a gradient of weights, which is one product over all steps. Rows beyond a sample's length are
 * zero, whatever stands there.
 */
#include "parts/trained_layer.h"

/* 1: what a row had one step before; at its first step, the initial state.
 * legal: 0 1 */
enum { BEFORE = 0 };

typedef struct Source {
  const float *rows, *initial; /* NULL: zeros */
  int64_t time_stride, sample_stride;
} Source;

/* Where the row's numbers stand; NULL: they are zero. */
static const float *row_from(const Extents *e, const Source *s, int64_t direction, int64_t time, int64_t sample) {
  int64_t length = length_of(e, sample);
  if (time >= length) return NULL;
  if (BEFORE) {
    int64_t step = time_of(e, direction, time, length); /* time and step change places */
    if (step == 0) return s->initial ? s->initial + state_at(e, direction, sample) : NULL;
    time = time_of(e, direction, step - 1, length);
  }
  return s->rows + time * s->time_stride + sample * s->sample_stride;
}

/* rows: the row of (time, sample) begins at time * time_stride + sample * sample_stride; `columns` numbers each.
 * target: [panels][T * B][UNIT_VECTORS][LANES]. */
static void pack_steps(const Team *team, const float *rows, const float *initial, const Length *lengths, float *target,
                       int64_t steps, int64_t batch, int64_t hidden, int64_t columns, int64_t time_stride,
                       int64_t sample_stride, int64_t directions, int64_t direction, int64_t reverse,
                       int64_t batch_first) {
  Extents e = {steps, batch, hidden, directions, lengths, reverse, batch_first};
  Source source = {rows, initial, time_stride, sample_stride};
  int64_t count = steps * batch, vectors = round_up(ceil_div(columns, LANES), UNIT_VECTORS), row, end;
  team_share(team, count, &row, &end);
  for (; row < end; row++) {
    int64_t time = batch_first ? row % steps : row / batch, sample = batch_first ? row / steps : row % batch;
    const float *from = row_from(&e, &source, direction, time, sample);
    for (int64_t v = 0; v < vectors; v++) {
      float *to = target + ((v / UNIT_VECTORS * count + row) * UNIT_VECTORS + v % UNIT_VECTORS) * LANES;
      vstore(to, from ? panel_load(from + v * LANES, columns - v * LANES) : vzero());
    }
  }
}
