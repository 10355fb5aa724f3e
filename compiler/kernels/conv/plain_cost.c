/* SPDX-License-Identifier: MIT */
/*
 * The time of the slowest core: its multiply-adds, or the loads that they need, and the traffic from L3 and memory;
 * before it the copy of conv_pad, and a barrier. In the terms of cost.h, so that it can be compared with direct_plan.c.
 * Constants are fitted to row-major runs of the networks on a two-core AVX-512 machine.
 */
#include "kernels/conv/plain_cost.h"

#include "kernels/conv/cost.h"
#include "machine/targets.h"
#include "support/numbers.h"

static const double tile_cycles = 25, sum_cycles = 2.5; /* overhead of a tile; to begin and end a vector of sums */
static const double flat_cycles = 10;                   /* the same where a line has several rows */
static const double efficiency = 0.9;                   /* relative to the count of a tile's instructions */
static const double exposed = 0.4;                      /* part of the shorter of computing and reading from L3 */
static const double usable = 0.5;                       /* of L2, for the input of a chunk */
/* Each core has its own output channels, and reads from other cores' caches: so many times slower than L3. */
static const double foreign = 3;
static const double pad_cycles = 40; /* overhead of a row that conv_pad copies */

static double input_bytes(const PlainLayer *l) {
  return 4 * (double)l->channels * (double)(l->padded_plane ? l->padded_plane : l->in_plane);
}
static double weight_bytes(const PlainLayer *l) { return 4 * (double)(l->channels * l->window * l->kernels); }
static int64_t tiles_of(const PlainLayer *l) { return l->lines * ceil_div(l->length, l->tile); }
static int64_t blocks_of(const PlainLayer *l) { return ceil_div(l->kernels, l->k_block); }

/* Data not much larger than L2 come from L3 fast enough. */
static bool comes_again(const Machine *m, const PlainLayer *l) {
  return input_bytes(l) > 2 * (double)m->l2_bytes && !l->chunk;
}

/* As many tiles as stay in L2, unless the weights would then be read more often than the input is without chunks. */
int plain_chunk(const Machine *m, const PlainLayer *l) {
  double tiles = (double)tiles_of(l), room = usable * (double)m->l2_bytes;
  double chunk = max_double(1, (double)(int64_t)(room * tiles / input_bytes(l)));
  if (!comes_again(m, l) || chunk >= tiles) return 0;
  double chunked = tiles / chunk * weight_bytes(l) + input_bytes(l);
  return chunked < weight_bytes(l) + (double)blocks_of(l) * input_bytes(l) ? (int)chunk : 0;
}

/* Cycles of one point of the window at one channel, for all sums of a tile. */
static double point_cycles(const Target *target, const Machine *m, const PlainLayer *l, double rows) {
  double sums = rows * l->w_vectors, rate = fma_per_cycle(m, target->lanes);
  double lines = target->lanes >= 16 ? 2 : 1; /* cache lines of an unaligned vector of columns */
  double loads = (lines * l->w_vectors + rows) / m->loads_per_cycle;
  return max_double(max_double(sums / rate, addition_cycles(target, m)), loads);
}

static double busy_seconds(const Target *target, const Machine *m, const PlainLayer *l) {
  int64_t blocks = blocks_of(l), tiles = l->images * l->groups * blocks * tiles_of(l);
  double rows = (double)l->kernels / (double)blocks, points = (double)(l->channels * l->window);
  double ends = tile_cycles + rows * l->w_vectors * (l->flat ? flat_cycles : sum_cycles) * (l->residual ? 1.5 : 1);
  double cycles = points * point_cycles(target, m, l, rows) / efficiency + ends;
  return (double)ceil_div(tiles, m->cores) * cycles / (m->ghz * 1e9);
}

/* Traffic of a core beyond its L2: the input of a group once for each block of its output channels. */
static double moved_seconds(const Machine *m, const PlainLayer *l) {
  double input = input_bytes(l), blocks = (double)blocks_of(l);
  double chunks = l->chunk ? (double)ceil_div(tiles_of(l), l->chunk) : 1;
  double weights = weight_bytes(l) * (double)l->groups * chunks;
  double output = 4 * (double)(l->images * l->groups * l->kernels * l->lines * l->length) * (l->residual ? 3 : 2);
  double again = comes_again(m, l) ? max_double(blocks / m->cores, 1) - 1 : 0;
  double share = (double)l->groups > m->cores ? (double)l->groups / m->cores : 1; /* of the groups */
  double reads = input * ((m->cores > 1 ? foreign : 1) + again) * (double)l->images * share;
  double fetched = seconds_of_cycles(m, cycles_to_fetch(m, weight_bytes(l) * (double)l->groups, true));
  return fetched + (reads + (weights + output) / m->cores) / (m->l3_gbps * 1e9);
}

/* The copy of conv_pad is read and written, then maybe read by another core. */
static double pad_seconds(const Machine *m, const PlainLayer *l) {
  if (!l->padded_plane) return 0;
  double planes = (double)(l->images * l->groups * l->channels);
  double bytes = 4 * planes * (double)(l->in_plane + 2 * l->padded_plane);
  double rows = planes * (double)l->padded_rows * pad_cycles / (m->ghz * 1e9);
  double gbps = bytes > (double)m->l2_bytes * m->cores ? m->l3_gbps : m->l2_gbps;
  return (bytes / (gbps * 1e9) + rows) / m->cores + 1e-9 * m->barrier_ns;
}

double plain_seconds(const Target *target, const Machine *machine, const PlainLayer *layer) {
  double busy = busy_seconds(target, machine, layer), moved = moved_seconds(machine, layer);
  return overlapped(busy, moved, exposed) + pad_seconds(machine, layer);
}
