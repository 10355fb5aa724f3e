/* SPDX-License-Identifier: MIT */
/* The instruction sets of cpu.def, and those that this CPU has. */
#ifndef RNNCC_CPU_H
#define RNNCC_CPU_H

#include <stdbool.h>
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

/* Does the system let this process use these features, which the CPU has? Linux gives AMX's registers to processes that
 * ask for them, for good: from then on their signal frames have room for 8 KB more, and a thread whose alternate signal
 * stack is too small for that is a reason to refuse. So a module asks only if its kernels use AMX. */
RUNTIME_LOCAL bool cpu_grants(uint32_t features);

#endif
