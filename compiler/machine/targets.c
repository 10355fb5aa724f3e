/* SPDX-License-Identifier: MIT */
#include "machine/targets.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cpu.h"
#include "support/diagnostics.h"

static const Target targets[] = {
#define TARGET(given, ...) {.name = (given), __VA_ARGS__},
#include "machine/targets.def"
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_at(int index) { return index >= 0 && index < TARGET_COUNT ? &targets[index] : NULL; }

/* $RNNCC_CPU_WITHOUT takes this CPU for one without an instruction set and those that need it, for tests. */
static uint32_t features_here(void) {
  static const char *const names[] = {
#define CPU_FEATURE(name, ...) #name,
#include "cpu.def"
  };
  const char *without = getenv("RNNCC_CPU_WITHOUT");
  uint32_t features = cpu_features();
  if (!without || !*without) return features;
  for (int i = 0; i < CPU_FEATURES; i++)
    if (!strcasecmp(without, names[i])) return features & ((1u << i) - 1);
  fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "RNNCC_CPU_WITHOUT=%s: expected an instruction set, such as avx512",
           without);
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
