/* SPDX-License-Identifier: MIT */
/*
 * Dot products of 8-bit integers into CHAINS sums of 32 bits, for speed.c: of four in one instruction, or of two as
 * 16 bits, whose products another instruction adds. They are written as instructions, because what clang makes of C is
 * not certain to be these.
 */
#ifndef RNNCC_DOT_LOOPS_H
#define RNNCC_DOT_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu.h"

typedef struct DotLoop {
  int vector_bytes;
  bool (*present)(void); /* beside vectors of that size */
  void (*run)(long steps);
  int products; /* of an instruction, or of a pair of them */
} DotLoop;

/* What registers hold does not matter: integers take the same time whatever they are. */
#define TWELVE(sum) sum(1) sum(2) sum(3) sum(4) sum(5) sum(6) sum(7) sum(8) sum(9) sum(10) sum(11) sum(12)
#define DOT_LOOP(name, features, sum, ...)                                                                             \
  __attribute__((target(features))) static void name(long steps) {                                                     \
    for (long step = 0; step < steps; step++) __asm__ volatile(TWELVE(sum)::: __VA_ARGS__);                            \
  }

#if defined __x86_64__
#define FOUR_ZMM(n) "vpdpbusd %%zmm0, %%zmm0, %%zmm" #n "\n\t"
#define PAIR_ZMM(n) "vpmaddwd %%zmm0, %%zmm0, %%zmm15\n\tvpaddd %%zmm15, %%zmm" #n ", %%zmm" #n "\n\t"
#define PAIR_YMM(n) "vpmaddwd %%ymm0, %%ymm0, %%ymm15\n\tvpaddd %%ymm15, %%ymm" #n ", %%ymm" #n "\n\t"
#define PAIR_XMM(n) "movdqa %%xmm0, %%xmm15\n\tpmaddwd %%xmm0, %%xmm15\n\tpaddd %%xmm15, %%xmm" #n "\n\t"
#define XMM_1_TO_12 "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12"

DOT_LOOP(four_zmm, "avx512f,avx512vnni", FOUR_ZMM, XMM_1_TO_12)
DOT_LOOP(pair_zmm, "avx512f,avx512bw", PAIR_ZMM, XMM_1_TO_12, "xmm15")
DOT_LOOP(pair_ymm, "arch=haswell", PAIR_YMM, XMM_1_TO_12, "xmm15")
DOT_LOOP(pair_xmm, "sse2", PAIR_XMM, XMM_1_TO_12, "xmm15")

static bool has_vnni(void) { return (cpu_features() & CPU_AVX512VNNI) != 0; }
static bool always(void) { return true; }

/* The best of a size comes first. */
static const DotLoop dot_loops[] = {
    {64, has_vnni, four_zmm, 64}, {64, always, pair_zmm, 32}, {32, always, pair_ymm, 16}, {16, always, pair_xmm, 8}};

#elif defined __aarch64__
#define FOUR_V(n) "sdot v" #n ".4s, v0.16b, v0.16b\n\t"

DOT_LOOP(four_v, "dotprod", FOUR_V, "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12")

static bool has_dotprod(void) { return (cpu_features() & CPU_DOTPROD) != 0; }
static const DotLoop dot_loops[] = {{16, has_dotprod, four_v, 16}};

#else
static const DotLoop dot_loops[] = {{0, NULL, NULL, 0}};
#endif

/* NULL if none is known. */
static const DotLoop *dot_loop_of(int vector_bytes) {
  for (size_t i = 0; i < sizeof dot_loops / sizeof *dot_loops; i++)
    if (dot_loops[i].vector_bytes == vector_bytes && dot_loops[i].present()) return &dot_loops[i];
  return NULL;
}

#endif
