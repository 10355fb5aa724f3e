/* SPDX-License-Identifier: MIT */
/*
 * The CPU features that the operating system has enabled. The compiler's __builtin_cpu_supports would add a
 * constructor. A feature is reported only if everything that it needs is there.
 */
#include "module.h"

#if defined __x86_64__

#include <cpuid.h>
#include <stdbool.h>

/* cpuid leaf 1, ecx */
enum { FMA = 1u << 12, OSXSAVE = 1u << 27, AVX = 1u << 28, F16C = 1u << 29 };
/* cpuid leaf 7, ebx */
enum { AVX2 = 1u << 5, AVX512F = 1u << 16, AVX512DQ = 1u << 17, AVX512CD = 1u << 28, AVX512BW = 1u << 30 };
#define AVX512VL (1u << 31) /* does not fit an enumerator */
/* XCR0: the registers the system saves: SSE and AVX; opmask, upper halves and the upper sixteen */
enum { SAVES_AVX = 0x06, SAVES_AVX512 = 0xe6 };

static bool has_all(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

static uint32_t saved_registers(void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

uint32_t cpu_features(void) {
  uint32_t eax, ebx, ecx, edx, basic;
  if (!__get_cpuid(1, &eax, &ebx, &basic, &edx) || !has_all(basic, OSXSAVE | AVX)) return 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return 0;
  uint32_t saved = saved_registers(), features = 0;
  if (!has_all(saved, SAVES_AVX) || !has_all(basic, FMA | F16C) || !has_all(ebx, AVX2)) return 0;
  features |= CPU_AVX2;
  if (has_all(saved, SAVES_AVX512) && has_all(ebx, AVX512F | AVX512CD | AVX512BW | AVX512DQ | AVX512VL))
    features |= CPU_AVX512;
  return features;
}

#elif defined __aarch64__

uint32_t cpu_features(void) { return CPU_NEON; } /* part of the base architecture */

#else

uint32_t cpu_features(void) { return 0; }

#endif
