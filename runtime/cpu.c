/* SPDX-License-Identifier: MIT */
/*
 * The CPU features that the operating system has enabled. The compiler's __builtin_cpu_supports would add a
 * constructor. A feature is reported only if everything that it needs is there.
 */
#include "cpu.h"

#if defined __x86_64__

#include <cpuid.h>

enum { OSXSAVE = 1u << 27 }; /* cpuid leaf 1, ecx */

typedef struct Needs {
  uint32_t basic, extended, saved, more, last, other; /* of cpu.def */
} Needs;

static const Needs needs[] = {
#define X86_FEATURE(name, title, flags, vector_bytes, basic, extended, saved) {basic, extended, saved, 0, 0, 0},
#define X86_OPTION(name, title, flags, option, widest, ...) {__VA_ARGS__},
#define AARCH64_FEATURE(...) {.basic = UINT32_MAX},
#define SVE_FEATURE(...) {.basic = UINT32_MAX},
#define RISCV_FEATURE(...) {.basic = UINT32_MAX},
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
  uint32_t eax, ebx, ecx, edx, basic, extended, more, last, other, leaves;
  if (!__get_cpuid(1, &eax, &ebx, &basic, &edx)) return 0;
  if (!__get_cpuid_count(7, 0, &leaves, &extended, &more, &other)) leaves = extended = more = other = 0;
  if (!leaves || !__get_cpuid_count(7, 1, &last, &ebx, &ecx, &edx)) last = 0;
  uint32_t saved = saved_registers(basic), features = 0;
  for (int i = 0; i < CPU_FEATURES; i++) {
    const Needs *need = &needs[i];
    bool of_cpu = has_all(basic, need->basic) && has_all(extended, need->extended) && has_all(more, need->more);
    bool of_rest = has_all(last, need->last) && has_all(other, need->other);
    if (of_cpu && of_rest && has_all(saved, need->saved)) features |= 1u << i;
  }
  return features;
}

/* By the instruction itself: a module without libc asks, too. */
static long ask_for_registers(long which) {
  enum { SYS_ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023 };
  long result = SYS_ARCH_PRCTL;
  __asm__ volatile("syscall" : "+a"(result) : "D"((long)ARCH_REQ_XCOMP_PERM), "S"(which) : "rcx", "r11", "memory");
  return result;
}

bool cpu_grants(uint32_t features) {
  enum { TILE_DATA = 18 }; /* the bit of XCR0 */
  return !(features & CPU_AMX) || ask_for_registers(TILE_DATA) == 0;
}

#elif defined __aarch64__

#ifdef RNNCC_EDGE /* no system to ask: what every AArch64 has */
enum { AT_HWCAP, AT_HWCAP2 };
static unsigned long getauxval(int type) { return (void)type, 0; }
#else
#include <sys/auxv.h>
#endif

enum { SVE = 1u << 22 }; /* of AT_HWCAP */

typedef struct Needs {
  uint32_t hwcap, hwcap2; /* of cpu.def */
  uint32_t vector_bytes;  /* of SVE; 0: any */
} Needs;

static const Needs needs[] = {
#define X86_FEATURE(...) {UINT32_MAX, UINT32_MAX, UINT32_MAX},
#define X86_OPTION(...) {UINT32_MAX, UINT32_MAX, UINT32_MAX},
#define AARCH64_FEATURE(name, title, flags, hwcap, hwcap2) {hwcap, hwcap2, 0},
#define SVE_FEATURE(name, title, flags, vector_bytes) {SVE, 0, vector_bytes},
#define RISCV_FEATURE(...) {UINT32_MAX, UINT32_MAX, UINT32_MAX},
#include "cpu.def"
};

/* Of this thread, which new ones inherit; 0: there is no SVE. The base architecture's assembler does not know
 * "rdvl x0, #1". */
static uint32_t vector_bytes_here(uint32_t hwcap) {
  register uint64_t bytes __asm__("x0") = 0;
  if (hwcap & SVE) __asm__ volatile(".inst 0x04bf5020" : "=r"(bytes));
  return (uint32_t)bytes;
}

uint32_t cpu_features(void) {
  uint32_t hwcap = (uint32_t)getauxval(AT_HWCAP), hwcap2 = (uint32_t)getauxval(AT_HWCAP2), features = 0;
  uint32_t vector_bytes = vector_bytes_here(hwcap);
  for (int i = 0; i < CPU_FEATURES; i++) {
    const Needs *need = &needs[i];
    bool fits = !need->vector_bytes || need->vector_bytes == vector_bytes;
    if (!(need->hwcap & ~hwcap) && !(need->hwcap2 & ~hwcap2) && fits) features |= 1u << i;
  }
  return features;
}

#elif defined __riscv && !defined RNNCC_EDGE

#include <sys/auxv.h>

enum { VECTORS = 1u << ('V' - 'A') }; /* of AT_HWCAP */

static const uint32_t vector_bytes[] = {
#define X86_FEATURE(...) UINT32_MAX,
#define X86_OPTION(...) UINT32_MAX,
#define AARCH64_FEATURE(...) UINT32_MAX,
#define SVE_FEATURE(...) UINT32_MAX,
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

#ifndef __x86_64__
bool cpu_grants(uint32_t features) { return (void)features, true; }
#endif
