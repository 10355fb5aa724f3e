/* SPDX-License-Identifier: MIT */
/*
 * The product with W for all steps at once is the most efficient one, but its result waits for its step in a cache, or
 * beyond. Measured on two cores with 1 MB of L2 each and 32 MB of L3, against all steps at once: chunks of 200 rows
 * take 0.95-0.97 of the time where the result is 4 or 8 MB (LSTM and GRU of 256 units, LSTM of 512, ten samples), as
 * long or longer where it is 2 MB, and with one sample, whose chunks are too few rows; where the weights fill L3 and
 * are read again for each chunk, 1.05. A result of 77 MB (800 units, 300 steps, 20 samples) costs 4% of the time, and
 * memory that a chunk of 5 MB does not need.
 */
#include "kernels/recurrent/input_chunk.h"

#include "support/numbers.h"

enum { CHUNK_ROWS = 200, PART_OF_L3 = 6 };

/* How many caches of L2 the result must fill to be worth cutting. */
static const double SPILLS = 1.5;

static int64_t steps_of_rows(int64_t batch) { return ceil_div(CHUNK_ROWS, batch); }

int input_chunk(const Machine *m, const LayerCase *l) {
  if (!l->takes_chunks) return 0;
  double step = 4.0 * (double)l->most_batch * l->gates * (double)(l->panels * l->panel_units);
  double result = step * (double)l->most_steps, chunk = 0;
  if (result > (double)m->l3_bytes)
    chunk = (double)m->l3_bytes / PART_OF_L3 / step;
  else if (l->most_batch > 1 && result > SPILLS * m->cores * (double)m->l2_bytes &&
           weight_bytes(l) <= (double)m->l3_bytes / 2)
    chunk = (double)steps_of_rows(l->most_batch);
  if (chunk >= (double)l->most_steps) return 0;
  return chunk > 0 && chunk < 1 ? 1 : (int)chunk;
}
