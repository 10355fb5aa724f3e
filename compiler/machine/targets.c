/* SPDX-License-Identifier: MIT */
#include "machine/targets.h"

#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "support/diagnostics.h"

/* Features are named one by one or by level, never `-march=native`: clang misreads some CPUs' names. */
static const char *const args_v4[] = {"-march=x86-64-v4", "-mprefer-vector-width=512", NULL};
static const char *const args_v3[] = {"-march=x86-64-v3", NULL};
static const char *const args_v1[] = {"-march=x86-64", NULL};
static const char *const args_aarch64[] = {"-march=armv8-a", NULL};

static const Target targets[] = {
    {
        .name = "x86-64-v4",
        .isa = "avx512",
        .triple = "x86_64-linux-gnu",
        .clang_args = args_v4,
        .lanes = 16,
        .vector_registers = 32,
        .cpu_features = CPU_AVX512 | CPU_AVX2,
        .l1_bytes = 32 << 10,
        .l2_bytes = 1 << 20,
        .l3_bytes = 32 << 20,
        .cores = 8,
        .ghz = 3.4,
        .fma_per_cycle = 2,
        .l1_gbps = 290,
        .l2_gbps = 185,
        .l3_gbps = 30,
        .dram_gbps = 13,
        .barrier_ns = 240,
    },
    {
        .name = "x86-64-v3",
        .isa = "avx2",
        .triple = "x86_64-linux-gnu",
        .clang_args = args_v3,
        .lanes = 8,
        .vector_registers = 16,
        .cpu_features = CPU_AVX2,
        .l1_bytes = 32 << 10,
        .l2_bytes = 512 << 10,
        .l3_bytes = 16 << 20,
        .cores = 4,
        .ghz = 3.0,
        .fma_per_cycle = 2,
        .l1_gbps = 180,
        .l2_gbps = 90,
        .l3_gbps = 25,
        .dram_gbps = 12,
        .barrier_ns = 240,
    },
    {
        .name = "x86-64",
        .isa = "plain",
        .triple = "x86_64-linux-gnu",
        .clang_args = args_v1,
        .lanes = 4,
        .vector_registers = 16,
        .cpu_features = 0,
        .l1_bytes = 32 << 10,
        .l2_bytes = 256 << 10,
        .l3_bytes = 8 << 20,
        .cores = 4,
        .ghz = 3.0,
        .fma_per_cycle = 1,
        .l1_gbps = 90,
        .l2_gbps = 50,
        .l3_gbps = 20,
        .dram_gbps = 10,
        .barrier_ns = 240,
    },
    {
        .name = "aarch64-linux-gnu",
        .isa = "neon",
        .triple = "aarch64-linux-gnu",
        .clang_args = args_aarch64,
        .lanes = 4,
        .vector_registers = 32,
        .cpu_features = CPU_NEON,
        .l1_bytes = 32 << 10,
        .l2_bytes = 512 << 10,
        .l3_bytes = 2 << 20,
        .cores = 4,
        .ghz = 2.4,
        .fma_per_cycle = 2,
        .l1_gbps = 70,
        .l2_gbps = 40,
        .l3_gbps = 15,
        .dram_gbps = 8,
        .barrier_ns = 300,
    },
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_at(int index) { return index >= 0 && index < TARGET_COUNT ? &targets[index] : NULL; }

/* $RNNCC_CPU_WITHOUT takes this CPU for a lesser one, for tests. */
static uint32_t features_here(void) {
  const char *without = getenv("RNNCC_CPU_WITHOUT");
  uint32_t features = cpu_features();
  if (!without || !*without) return features;
  if (!strcmp(without, "avx512")) return features & ~(uint32_t)CPU_AVX512;
  if (!strcmp(without, "avx2")) return features & ~(uint32_t)(CPU_AVX512 | CPU_AVX2);
  fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "RNNCC_CPU_WITHOUT=%s: expected avx512 or avx2", without);
}

bool target_runs_here(const Target *target) {
  uint32_t features = features_here();
  bool arm = !strcmp(target->isa, "neon");
  return arm == ((features & CPU_NEON) != 0) && (target->cpu_features & ~features) == 0;
}

/* The table stands in order of preference: the first whose features this CPU has. */
static const Target *native_target(void) {
  for (int i = 0; i < TARGET_COUNT; i++)
    if (target_runs_here(&targets[i])) return &targets[i];
  return NULL;
}

const Target *target_find(const char *name) {
  if (!strcmp(name, "native")) return native_target();
  for (int i = 0; i < TARGET_COUNT; i++)
    if (!strcmp(targets[i].name, name)) return &targets[i];
  return NULL;
}
