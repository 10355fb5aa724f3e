/* SPDX-License-Identifier: MIT */
/* The ISA that a test of the vocabulary was built for: whether this CPU has it, and its flush-to-zero mode. */
#ifndef TESTS_ISA_H
#define TESTS_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "simd/simd.h"

static inline bool isa_runs_here(void) {
#if defined SIMD_AVX512
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined SIMD_AVX2
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

/* Denormal inputs and results count as zero, as in a module's run. */
static inline void isa_flush_denormals(bool on) {
#if defined __x86_64__
  unsigned mode = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(on ? mode | 0x8040u : mode & ~0x8040u);
#elif defined __aarch64__
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  mode = on ? mode | (1u << 24) : mode & ~(uint64_t)(1u << 24);
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
  (void)on;
#endif
}

#endif
