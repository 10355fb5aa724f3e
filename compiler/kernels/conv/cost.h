/* SPDX-License-Identifier: MIT */
/*
 * The terms of the cost of convolutions, in cycles of the busiest core: multiply-adds, or the loads that they need;
 * bytes over the bandwidth of L1, L2, L3 or memory; overhead of tiles and rows; and the exposed part of the shorter of
 * two that overlap. Each weight comes from memory once a run, because a network's weights evict each other between
 * runs; all other data were written by the layer before, and come from caches: those of the core itself, or another's.
 */
#ifndef RNNCC_CONVOLUTION_COST_H
#define RNNCC_CONVOLUTION_COST_H

#include <stdbool.h>

#include "machine/machine.h"
#include "machine/targets.h"
#include "machine/tile.h"
#include "support/numbers.h"

/* Cycles between two additions to the same sum; more where the target has CPUs of more pipes than the usual one's, so
 * that they are busy, too. */
static inline double addition_cycles(const Target *target, const Machine *m) {
  double usual = target->fma_latency * target->fma_per_cycle;
  return m->fma_latency * max_double(1, target->sums / usual);
}

/* A core's bandwidth when all cores read the same memory, relative to each its own: measured on the AVX-512 machine of
 * winograd_plan.c. */
static const double SAME_DATA = 1.25;

/* gbps: of one core while all cores read. */
static inline double cycles_to_read(const Machine *m, double bytes, double gbps) { return bytes * m->ghz / gbps; }

/* Cycles for the busiest core to read its share of `bytes` of weights from memory; split: each core has its own part.
 */
static inline double cycles_to_fetch(const Machine *m, double bytes, bool split) {
  if (split) return cycles_to_read(m, bytes / m->cores, m->dram_gbps);
  return cycles_to_read(m, bytes, m->cores > 1 ? m->dram_gbps * SAME_DATA : m->dram_gbps);
}

/* Cache lines that come from another core in the time of a barrier, which is two messages between cores: of a stream,
 * which is fetched ahead; and of others, be they read, or become a core's own to write after several have read them.
 * Measured on two cores of Zen 3 with one L3 and with two, where a barrier takes 140 ns and 560: streams of 29 and 13
 * GB/s, writing at 10 and 2.5, and 1x1 convolutions that share their input. */
static const double STREAM_A_BARRIER = 130, LINES_A_BARRIER = 24;
enum { CACHE_LINE = 64 };

/* To read what another core wrote; lines: so many in the time of a barrier. */
static inline double cycles_from_others(const Machine *m, double bytes, double lines) {
  return cycles_to_read(m, bytes, m->l3_gbps) + bytes / CACHE_LINE * m->barrier_ns / lines * m->ghz;
}

/* Do all cores read a tensor of so many channels in planes of so many pixels? A convolution of fewer pixels than
 * weights splits its output channels among cores, so that each weight is read once. */
static inline bool all_cores_read(const Machine *m, int64_t channels, int64_t pixels) {
  return m->cores > 1 && 2 * channels > pixels;
}

/* To write such a tensor. Those that had its memory before are of much the same kind, but about half of them were read
 * by what splits pixels: depthwise convolutions, pools and sums. */
static inline double cycles_to_retake(const Machine *m, double bytes, int64_t channels, int64_t pixels) {
  double lines = bytes / 2 / CACHE_LINE;
  return all_cores_read(m, channels, pixels) ? lines * m->barrier_ns / LINES_A_BARRIER * m->ghz : 0;
}

/* The part of `bytes` that L2 has, if they were written once and are read once. */
static inline double part_in_l2(const Machine *m, double bytes) {
  return bytes > (double)m->l2_bytes ? (double)m->l2_bytes / bytes : 1;
}

static inline double seconds_of_cycles(const Machine *m, double cycles) { return cycles / (m->ghz * 1e9); }

#endif
