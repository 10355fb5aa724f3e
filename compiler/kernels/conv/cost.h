/* SPDX-License-Identifier: MIT */
/*
 * The words that schedules of convolutions are priced in: cycles of the busiest core. Multiply-adds, or the loads that
 * they need; bytes over the bandwidth of where they come from, L1, L2, L3 or memory; what tiles and rows cost beside
 * that; and how much of the shorter of two that go on at once is waited for. What is divided among the cores is counted
 * as the largest share. Each weight comes from memory once a run, for between two runs of a network its weights
 * displace each other; all else was written by the layer before and is found in caches.
 */
#ifndef RNNCC_CONVOLUTION_COST_H
#define RNNCC_CONVOLUTION_COST_H

#include <stdbool.h>

#include "machine/machine.h"

enum { FMA_LATENCY = 4 }; /* cycles until a sum can be added to again */

/* Bandwidth of a core where all read the same from memory, against each its own: read on the AVX-512 machine of
 * winograd_plan.c. */
static const double SAME_DATA = 1.25;

static inline double fma_per_cycle(const Machine *m, int lanes) { return m->gflops / (2 * lanes * m->ghz); }

/* gbps: of one core while all read. */
static inline double cycles_to_read(const Machine *m, double bytes, double gbps) { return bytes * m->ghz / gbps; }

/* Until the busiest core has what it needs of `bytes` of weights, from memory. split: each core has its own part. */
static inline double cycles_to_fetch(const Machine *m, double bytes, bool split) {
  if (split) return cycles_to_read(m, bytes / m->cores, m->dram_gbps);
  return cycles_to_read(m, bytes, m->cores > 1 ? m->dram_gbps * SAME_DATA : m->dram_gbps);
}

static inline double seconds_of_cycles(const Machine *m, double cycles) { return cycles / (m->ghz * 1e9); }

/* Two that go on at once; `exposed` is the part of the shorter that is waited for. */
static inline double overlapped(double a, double b, double exposed) {
  return a > b ? a + exposed * b : b + exposed * a;
}

#endif
