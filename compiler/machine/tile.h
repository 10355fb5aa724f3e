/* SPDX-License-Identifier: MIT */
/* The speed of a register tile, by the machine's ports. */
#ifndef RNNCC_TILE_H
#define RNNCC_TILE_H

#include "machine/machine.h"

typedef struct TileCycles {
  double multiply; /* the ports' multiply-adds, or their latency */
  double load;     /* the ports' loads, or the bytes from L1 */
} TileCycles;

/* Cycles of one step of the depth of a tile of `rows` broadcast elements times `vectors`, each product added to a sum
 * of its own; parts: steps in turn add to so many sets of sums. Loads hide behind multiply-adds, or these behind loads.
 */
TileCycles tile_step(const Machine *machine, int lanes, double rows, double vectors, int parts);

/* The time of two that overlap; `exposed` is the part of the shorter that is not hidden. */
static inline double overlapped(double a, double b, double exposed) {
  return a > b ? a + exposed * b : b + exposed * a;
}

/* Of vectors. */
double fma_per_cycle(const Machine *machine, int lanes);

#endif
