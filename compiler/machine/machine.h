/* SPDX-License-Identifier: MIT */
/*
 * The numbers of the machine that schedules are chosen for. With --target=native, or --machine=native, caches, cores
 * and, if the system tells it, the clock are this machine's; speeds are those of its microarchitecture, if the table of
 * microarchitectures.def has it. All others are typical ones of the target. Nothing is measured here, so that schedules
 * do not depend on the load; `rnncc targets --calibrate` writes measured speeds to a file
 * (machine_file.h).
 */
#ifndef RNNCC_MACHINE_H
#define RNNCC_MACHINE_H

#include "machine/targets.h"
#include "rnncc.h"
#include "support/arena.h"

typedef struct Machine {
  int cores;                                   /* maximum of threads */
  int64_t l1_bytes, l2_bytes, l3_bytes;        /* of a core, of a core, of all cores */
  double gflops;                               /* f32 of one core, a fused multiply-add being two */
  double int8_gflops;                          /* of exact products of 8-bit integers, by all that the CPU has */
  double l1_gbps, l2_gbps, l3_gbps, dram_gbps; /* read by one core while all cores read */
  double ghz;
  double barrier_ns;                   /* a barrier of two cores, and one cache line from the other */
  double fma_latency, loads_per_cycle; /* cycles between two additions to the same sum; vectors of any length */
} Machine;

/* What the second level of a core's TLB covers: 1,024 pages of 4 KiB, which recent CPUs have at least. Neither does the
 * system tell it, nor is it measured. */
enum { TLB_BYTES = 1024 * 4096 };

/* Of exact products of 8-bit integers, by what the target has: without dot products as many as of floats. */
static inline double machine_int8_gflops(const Machine *machine, const Target *target) {
  return target->has_dot ? machine->int8_gflops : machine->gflops;
}

/* The most of products of bf16, in tiles: an instruction takes no longer than one of a vector of f32. Intel's
 * AVX512-BF16 takes four times as long on Emerald Rapids. */
static inline double machine_bf16_gflops(const Machine *machine, const Target *target) {
  return target->bf16_depth * machine->gflops;
}

/* By AMX's matrices in registers: all CPUs that have them do 1,024 products of bytes a cycle, or half as many of bf16.
 */
static inline double machine_matrix_gflops(const Machine *machine, rnncc_dtype products) {
  return (products == RNNCC_I8 ? 2048 : 1024) * machine->ghz;
}

/* native: with this machine's caches and cores. threads: maximum; 0: all. */
Machine machine_of(const Target *target, bool native, int threads);

#endif
