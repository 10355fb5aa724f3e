/* SPDX-License-Identifier: MIT */
/* The ISA that a test of the vocabulary was built for: whether this CPU has it, and its flush-to-zero mode. */
#ifndef TESTS_ISA_H
#define TESTS_ISA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "simd/simd.h"

/* $RNNCC_CPU_WITHOUT says that this CPU counts as one without an instruction set and those that need it. */
__attribute__((unused)) static bool cpu_is_without(const char *isa) {
  static const char *const each_needs_the_next[] = {"avx512", "avx2", "sse42"};
  const char *without = getenv("RNNCC_CPU_WITHOUT");
  bool found = false;
  for (int i = 0; without && i < 3; i++) {
    found = found || !strcmp(each_needs_the_next[i], isa);
    if (found && !strcmp(each_needs_the_next[i], without)) return true;
  }
  return false;
}

#if defined __x86_64__
/* Bit 4 of eax of cpuid's leaf 7.1, which __builtin_cpu_supports knows of only in newer compilers. */
static inline bool cpu_has_avxvnni(void) {
  unsigned eax, ebx, ecx, edx;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax & 1u << 4;
}

/* Whether this CPU has all parts of AVX-512 that x86-64-v4 means. */
static inline bool cpu_has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && !cpu_is_without("avx512");
}

/* Whether this CPU has AMX for bytes and bf16, and the system lets this process use it: from now on. */
static inline bool cpu_gives_amx(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
  unsigned eax, ebx, ecx, edx, needed = bit_AMXTILE | bit_AMXINT8 | bit_AMXBF16;
  bool has = cpu_has_avx512() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & needed) == needed;
  return has && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}
#endif

/* NULL if this CPU runs the program, else what it lacks. */
static inline const char *isa_lacking(void) {
#if defined __AMX_INT8__
  return cpu_gives_amx() ? NULL : "AMX";
#elif defined __AVX512BF16__
  return cpu_has_avx512() && __builtin_cpu_supports("avx512bf16") ? NULL : "AVX512-BF16";
#elif defined __AVX512VNNI__
  return cpu_has_avx512() && __builtin_cpu_supports("avx512vnni") ? NULL : "AVX512-VNNI";
#elif defined SIMD_AVX512
  return cpu_has_avx512() ? NULL : "AVX-512";
#elif defined __AVXVNNI__
  return cpu_has_avxvnni() && !cpu_is_without("avx2") ? NULL : "AVX-VNNI";
#elif defined SIMD_AVX2
  unsigned eax, ebx, ecx, edx;
  bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & bit_F16C;
  bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c;
  return runs && !cpu_is_without("avx2") ? NULL : "AVX2";
#elif defined SIMD_SSE42
  return __builtin_cpu_supports("sse4.2") && !cpu_is_without("sse42") ? NULL : "SSE4.2";
#else
  return NULL;
#endif
}

/* Call this first: the rest of the program may contain instructions that this CPU lacks. */
static inline void skip_unless_isa_runs(void) {
  if (!isa_lacking()) return;
  printf("1..0 # SKIP this CPU has no %s\n", isa_lacking());
  exit(0);
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
