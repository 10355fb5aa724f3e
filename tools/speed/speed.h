/* SPDX-License-Identifier: MIT */
/*
 * The peak speeds of this machine's cores, with all of them at work: multiply-adds, reading, barriers. The best of many
 * short tries counts, because other programs can only slow them down. Of barriers, which wait for the later thread, the
 * lower quartile counts. Each function takes some 50 ms, and returns 0 if it cannot measure: an isa that is unknown or
 * that this CPU lacks, no memory, not enough threads.
 *
 * isa: a target's vectors, such as "avx512"; case does not matter. Nothing but libc and runtime/cpu.c is needed.
 */
#ifndef RNNCC_SPEED_H
#define RNNCC_SPEED_H

#include <stdbool.h>
#include <stddef.h>

/* GFLOP/s of one of `threads`, a multiply-add in registers being two. */
double speed_multiply_add(const char *isa, int threads);

/* The same of exact multiply-adds of 8-bit integers into 32 bits: dot products of four where the CPU has them
 * (AVX512-VNNI, NEON's dotprod), else of two as 16 bits. 0 for vectors of which that is not known. */
double speed_dot_products(const char *isa, int threads);

/* The same by matrices in registers, AMX's; 0 where the CPU has none, or the system refuses them. */
double speed_matrix_products(int threads);

/* GB/s at which one of `threads` reads `bytes` of its own, over and over: forward, or forward and backward in turns. In
 * huge pages if there are any. */
double speed_read(const char *isa, int threads, size_t bytes, bool alternate);

/* GB/s at which one of `threads` reads from memory, in `bytes` of its own, more than caches hold: the median of the
 * tries, because memory may be shared with others, during runs as well. */
double speed_memory(const char *isa, int threads, size_t bytes);

/* GHz of one of `threads` between such multiply-adds, by integer additions that take a cycle each. */
double speed_clock(const char *isa, int threads);

/* Nanoseconds of a barrier of two threads, each reading a cache line that the other has written. */
double speed_meeting(void);

/* The best isa this CPU has. */
const char *speed_best_isa(void);

#endif
