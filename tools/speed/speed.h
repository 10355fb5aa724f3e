/* SPDX-License-Identifier: MIT */
/*
 * What the cores of this machine do at best, all of them at once: multiply-adds, reading, meeting. Of many short tries
 * the best counts: whatever else runs can only take away; of meetings, which are as late as the later, the lower
 * quartile. Each function takes some 50 ms, and returns 0 if it cannot tell: an isa that is unknown or that this CPU
 * lacks, no memory, no more threads.
 *
 * isa: a target's vectors, such as "avx512". Nothing but libc is needed.
 */
#ifndef RNNCC_SPEED_H
#define RNNCC_SPEED_H

#include <stdbool.h>
#include <stddef.h>

/* GFLOP/s of one of `threads`, a multiply-add in registers being two. */
double speed_multiply_add(const char *isa, int threads);

/* GB/s that one of `threads` reads `bytes` of its own at, over and over: forward, or to and fro. In huge pages where
 * there are. */
double speed_read(const char *isa, int threads, size_t bytes, bool alternate);

/* GB/s that one of `threads` reads from memory at, in `bytes` of its own, more than caches hold: the median of the
 * tries, as memory may be others' as well, whose share runs do without. */
double speed_memory(const char *isa, int threads, size_t bytes);

/* GHz of one of `threads` between such multiply-adds, as it adds integers, each of which takes a cycle. */
double speed_clock(const char *isa, int threads);

/* Nanoseconds for two threads to meet, each reading a cache line that the other wrote before. */
double speed_meeting(void);

/* The best isa this CPU has. */
const char *speed_best_isa(void);

#endif
