/* SPDX-License-Identifier: MIT */
/*
 * Cache lines that one core has written and another reads or writes next. Each comes by a message from core to core,
 * and a barrier is two of them one after the other, so its time is the measure: of cores that have no L3 in common both
 * are longer. Measured on two cores of Zen 3 with one L3 and with two, where a barrier takes 140 ns and 560: streams of
 * 29 and 13 GB/s, writing at 10 and 2.5, and 1x1 convolutions that share their input.
 */
#ifndef RNNCC_SHARED_LINES_H
#define RNNCC_SHARED_LINES_H

#include "machine/machine.h"

enum { CACHE_LINE = 64 };

/* Lines in the time of a barrier: of a stream, which is fetched ahead; and of others, be they read, or become a core's
 * own to write after others have read them. */
static const double STREAM_A_BARRIER = 130, LINES_A_BARRIER = 24;

/* Nanoseconds of `bytes`; lines: so many in the time of a barrier. */
static inline double shared_bytes_ns(const Machine *machine, double bytes, double lines) {
  return bytes / CACHE_LINE * machine->barrier_ns / lines;
}

/* To read a stream that another core wrote: it comes by way of the shared cache. */
static inline double shared_stream_ns(const Machine *machine, double bytes) {
  return bytes / machine->l3_gbps + shared_bytes_ns(machine, bytes, STREAM_A_BARRIER);
}

static inline double shared_lines_ns(const Machine *machine, double bytes) {
  return shared_bytes_ns(machine, bytes, LINES_A_BARRIER);
}

#endif
