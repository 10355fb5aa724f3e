/* SPDX-License-Identifier: MIT */
/*
 * The floating-point mode of a run, the same whatever the host's is: round to nearest, no exceptions trapped,
 * denormals taken and written as zero (one denormal costs some hundred cycles, and decaying states are full of them).
 */
#ifndef RNNCC_FLOAT_MODE_H
#define RNNCC_FLOAT_MODE_H

#include <stdint.h>

#if defined __x86_64__

typedef uint32_t FloatMode; /* MXCSR: its sticky flags are restored with the rest */

static inline FloatMode float_mode_enter(void) {
  FloatMode saved = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x9fc0); /* flush to zero 0x8000, all traps masked 0x1f80, denormals are zero 0x0040 */
  return saved;
}

static inline void float_mode_leave(FloatMode saved) { __builtin_ia32_ldmxcsr(saved); }

#elif defined __aarch64__

typedef uint64_t FloatMode; /* FPCR */

static inline FloatMode float_mode_enter(void) {
  FloatMode saved, flush = 1u << 24; /* FZ, both ways */
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved)::"memory");
  __asm__ volatile("msr fpcr, %0" ::"r"(flush) : "memory");
  return saved;
}

static inline void float_mode_leave(FloatMode saved) { __asm__ volatile("msr fpcr, %0" ::"r"(saved) : "memory"); }

#elif defined __riscv_flen

typedef unsigned long FloatMode; /* the rounding mode; RISC-V traps nothing, and has denormals always */

static inline FloatMode float_mode_enter(void) {
  FloatMode saved;
  __asm__ volatile("fsrmi %0, 0" : "=r"(saved)::"memory");
  return saved;
}

static inline void float_mode_leave(FloatMode saved) { __asm__ volatile("fsrm %0" ::"r"(saved) : "memory"); }

#else

typedef int FloatMode;

static inline FloatMode float_mode_enter(void) { return 0; }
static inline void float_mode_leave(FloatMode saved) { (void)saved; }

#endif
#endif
