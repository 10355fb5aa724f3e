/* SPDX-License-Identifier: MIT */
/* The gradients of an LSTM's peepholes: sums over all rows of a gate's gradient times the cell that it sees. */
#include "parts/trained_layer.h"

/* Gates that see the cell: input, output, forget. The output gate sees the new one. */
enum { PEEPING = 3, OUTPUT_GATE = 1 };

/* The gradients of one vector of units of one gate. */
static vec sum_of(const Extents *e, const float *gates, const float *initial_c, int64_t direction, int64_t gate,
                  int64_t unit) {
  vec total = vzero();
  int64_t row = e->directions * SAVED * e->hidden, own = direction * SAVED * e->hidden, count = e->hidden - unit;
  for (int64_t sample = 0; sample < e->batch; sample++) {
    int64_t length = length_of(e, sample);
    for (int64_t step = 0; step < length; step++) {
      int64_t time = time_of(e, direction, step, length);
      const float *dgate = gates + row_at(e, time, sample) * row + own + gate * e->hidden + unit;
      const float *cell = NULL;
      if (gate == OUTPUT_GATE || step > 0) {
        int64_t seen = gate == OUTPUT_GATE ? time : time_of(e, direction, step - 1, length);
        cell = gates + row_at(e, seen, sample) * row + own + GATES * e->hidden + unit;
      } else if (initial_c) {
        cell = initial_c + state_at(e, direction, sample) + unit;
      }
      if (cell) total = vfma(total, panel_load(dgate, count), panel_load(cell, count));
    }
  }
  return total;
}

/* gates: [T * B][D][SAVED][H], the gates' gradients and behind them the cell states; to: [D][3][H]. */
static void peephole_gradients(const Team *team, const float *gates, const float *initial_c, const Length *lengths,
                               float *to, int64_t steps, int64_t batch, int64_t hidden, int64_t directions,
                               int64_t reverse, int64_t batch_first) {
  Extents e = {steps, batch, hidden, directions, lengths, reverse, batch_first};
  int64_t vectors = ceil_div(hidden, LANES), item, end;
  team_share(team, directions * PEEPING * vectors, &item, &end);
  for (; item < end; item++) {
    int64_t direction = item / (PEEPING * vectors), gate = item / vectors % PEEPING, unit = item % vectors * LANES;
    vec total = sum_of(&e, gates, initial_c, direction, gate, unit);
    panel_store(to + (direction * PEEPING + gate) * hidden + unit, total, hidden - unit);
  }
}
