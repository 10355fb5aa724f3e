/* SPDX-License-Identifier: MIT */
#include "machine/tile.h"

#include "support/numbers.h"

double fma_per_cycle(const Machine *m, int lanes) { return m->gflops / (2 * lanes * m->ghz); }

/* Elements take half of a load's bandwidth: neighbours are in one cache line, which is in L1 by then. */
TileCycles tile_step(const Machine *m, int lanes, double rows, double vectors, int parts) {
  double bytes = (vectors + rows / 2) * 4 * lanes;
  return (TileCycles){.multiply = max_double(rows * vectors / fma_per_cycle(m, lanes), m->fma_latency / parts),
                      .load = max_double(bytes * m->ghz / m->l1_gbps, (vectors + rows) / m->loads_per_cycle)};
}
