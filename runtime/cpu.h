/* SPDX-License-Identifier: MIT */
/* The instruction sets of cpu.def, and those that this CPU has. */
#ifndef RNNCC_CPU_H
#define RNNCC_CPU_H

#include <stdint.h>

#include "names.h"

enum {
#define CPU_FEATURE(name, ...) CPU_FEATURE_##name,
#include "cpu.def"
  CPU_FEATURES
};

/* Bits of cpu_features. */
enum {
#define CPU_FEATURE(name, ...) CPU_##name = 1u << CPU_FEATURE_##name,
#include "cpu.def"
};

/* The features of the CPU that this runs on. The runtime itself must be compiled for the target's base architecture (no
 * -mavx...), because it tells the user if the CPU lacks them. */
RUNTIME_LOCAL uint32_t cpu_features(void);

#endif
