/* SPDX-License-Identifier: MIT */
/*
 * The CPU features that the operating system has enabled. The compiler's __builtin_cpu_supports would add a
 * constructor. A feature is reported only if everything that it needs is there.
 */
#include "cpu.h"

#if defined __x86_64__

#include <cpuid.h>
#include <stdbool.h>

enum { OSXSAVE = 1u << 27 }; /* cpuid leaf 1, ecx */

typedef struct Needs {
  uint32_t basic, extended, saved; /* of cpu.def */
} Needs;

static const Needs needs[] = {
#define X86_FEATURE(name, title, flags, vector_bytes, ...) {__VA_ARGS__},
#define AARCH64_FEATURE(...) {UINT32_MAX, UINT32_MAX, UINT32_MAX},
#define RISCV_FEATURE(...) {UINT32_MAX, UINT32_MAX, UINT32_MAX},
#include "cpu.def"
};

static bool has_all(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

static uint32_t saved_registers(uint32_t basic) {
  uint32_t low, high;
  if (!has_all(basic, OSXSAVE)) return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

uint32_t cpu_features(void) {
  uint32_t eax, ebx, ecx, edx, basic, extended;
  if (!__get_cpuid(1, &eax, &ebx, &basic, &edx)) return 0;
  if (!__get_cpuid_count(7, 0, &eax, &extended, &ecx, &edx)) extended = 0;
  uint32_t saved = saved_registers(basic), features = 0;
  for (int i = 0; i < CPU_FEATURES; i++)
    if (has_all(basic, needs[i].basic) && has_all(extended, needs[i].extended) && has_all(saved, needs[i].saved))
      features |= 1u << i;
  return features;
}

#elif defined __aarch64__

#ifdef RNNCC_EDGE /* no system to ask: what every AArch64 has */
enum { AT_HWCAP, AT_HWCAP2 };
static unsigned long getauxval(int type) { return (void)type, 0; }
#else
#include <sys/auxv.h>
#endif

typedef struct Needs {
  uint32_t hwcap, hwcap2; /* of cpu.def */
} Needs;

static const Needs needs[] = {
#define X86_FEATURE(...) {UINT32_MAX, UINT32_MAX},
#define AARCH64_FEATURE(name, title, flags, ...) {__VA_ARGS__},
#define RISCV_FEATURE(...) {UINT32_MAX, UINT32_MAX},
#include "cpu.def"
};

uint32_t cpu_features(void) {
  uint32_t hwcap = (uint32_t)getauxval(AT_HWCAP), hwcap2 = (uint32_t)getauxval(AT_HWCAP2), features = 0;
  for (int i = 0; i < CPU_FEATURES; i++)
    if (!(needs[i].hwcap & ~hwcap) && !(needs[i].hwcap2 & ~hwcap2)) features |= 1u << i;
  return features;
}

#elif defined __riscv && !defined RNNCC_EDGE

#include <sys/auxv.h>

enum { VECTORS = 1u << ('V' - 'A') }; /* of AT_HWCAP */

static const uint32_t vector_bytes[] = {
#define X86_FEATURE(...) UINT32_MAX,
#define AARCH64_FEATURE(...) UINT32_MAX,
#define RISCV_FEATURE(name, title, flags, bytes) bytes,
#include "cpu.def"
};

/* The control register vlenb; 0: there are no vectors. The base architecture's assembler knows it by number only. */
static unsigned long vector_bytes_here(void) {
  unsigned long bytes = 0;
  if (getauxval(AT_HWCAP) & VECTORS) __asm__("csrr %0, 0xc22" : "=r"(bytes));
  return bytes;
}

uint32_t cpu_features(void) {
  unsigned long bytes = vector_bytes_here();
  uint32_t features = 0;
  for (int i = 0; i < CPU_FEATURES; i++)
    if (vector_bytes[i] == bytes) features |= 1u << i;
  return features;
}

#else

uint32_t cpu_features(void) { return 0; }

#endif
