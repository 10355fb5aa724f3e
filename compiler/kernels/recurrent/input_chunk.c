/* SPDX-License-Identifier: MIT */
/*
 * The product with W of all steps at once is the most efficient, but its result may not stay in the caches. Measured on
 * two cores with 1 MB of L2 each and 32 MB of L3, relative to all steps at once: chunks of 200 rows take 0.95-0.97 of
 * the time for results of 4 or 8 MB (LSTM and GRU of 256 units, LSTM of 512, ten samples); no less for 2 MB, and for
 * one sample, whose chunks have too few rows; 1.05 if the weights fill L3 and are read again for each chunk. Both
 * directions of 256 units, 400 steps and 8 samples, 26 MB, take 0.85-0.94 in chunks of 200 rows of each. A result of
 * 77 MB (800 units, 300 steps, 20 samples) costs 4% of the time, and memory that a chunk of 5 MB does not need.
 */
#include "kernels/recurrent/input_chunk.h"

#include "support/numbers.h"

enum { CHUNK_ROWS = 200, PART_OF_L3 = 6 };

/* The least size of the result, in L2 caches, for chunks. */
static const double SPILLS = 1.5;

/* The most weights, in L3 caches, that are read for every 200 rows: of a result that L3 holds, and of a larger one, for
 * which there are larger chunks, too. Those of a GRU of 800 units, 0.48, take 1.1 of their time in 200 rows. */
static const double MOST_WEIGHTS = 0.5, FEW_WEIGHTS = 0.25;

static int64_t steps_of_rows(int64_t batch) { return ceil_div(CHUNK_ROWS, batch); }

int input_chunk(const Machine *m, const LayerCase *l) {
  if (!l->takes_chunks) return 0;
  double step = 4.0 * (double)l->most_batch * l->directions * l->gates * (double)(l->panels * l->panel_units);
  double result = step * (double)l->most_steps, chunk = 0;
  bool spills = l->most_batch > 1 && result > SPILLS * m->cores * (double)m->l2_bytes;
  bool beyond = result > (double)m->l3_bytes;
  if (spills && weight_bytes(l) <= (double)m->l3_bytes * (beyond ? FEW_WEIGHTS : MOST_WEIGHTS))
    chunk = (double)steps_of_rows(l->most_batch);
  else if (beyond)
    chunk = (double)m->l3_bytes / PART_OF_L3 / step;
  if (chunk >= (double)l->most_steps) return 0;
  return chunk > 0 && chunk < 1 ? 1 : (int)chunk;
}
