/* SPDX-License-Identifier: MIT */
#include "machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_limit.h"
#include "machine/microarchitecture.h"
#include "machine/system_files.h"
#include "support/numbers.h"

static void read_attribute(int index, const char *attribute, char word[SYSTEM_WORD]) {
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, attribute);
  system_word(path, word);
}

/* "2048K" or "32M"; 0 if it is no size. */
static int64_t parse_size(const char *word) {
  char *unit;
  long long size = strtoll(word, &unit, 10);
  if (size <= 0 || size > INT32_MAX) return 0;
  return *unit == 'M' ? size << 20 : *unit == 'K' ? size << 10 : size;
}

/* A value that sysfs does not have keeps its default. */
static void find_caches(Machine *machine) {
  enum { MAX_CACHES = 8 };
  int64_t *const levels[] = {&machine->l1_bytes, &machine->l2_bytes, &machine->l3_bytes};
  for (int index = 0; index < MAX_CACHES; index++) {
    char type[SYSTEM_WORD], level[SYSTEM_WORD], size[SYSTEM_WORD];
    read_attribute(index, "type", type);
    read_attribute(index, "level", level);
    read_attribute(index, "size", size);
    int at = level[0] - '0';
    if (!strcmp(type, "Instruction") || at < 1 || at > 3 || parse_size(size) == 0) continue;
    *levels[at - 1] = parse_size(size);
  }
}

/* 0, 1 and 2 for vectors of 16, 32 and 64 bytes. */
static int width_of(const Target *target) { return target->lanes <= 4 ? 0 : target->lanes <= 8 ? 1 : 2; }

/* Short vectors read less in a cycle, measured on Zen 4 with SSE: 0.95 of what the ports load, and from L2 0.87 of
 * that. */
static void find_bandwidths(Machine *machine, const Microarchitecture *m, int lanes) {
  double l1 = min_double(m->l1_bytes, 0.95 * m->loads * 4 * lanes), l2 = min_double(m->l2_bytes, 0.87 * l1);
  machine->l1_gbps = l1 * machine->ghz;
  machine->l2_gbps = l2 * machine->ghz;
  machine->l3_gbps = min_double(m->l3_bytes, l2) * machine->ghz;
  machine->dram_gbps = m->dram_gbps;
}

/* Of a CPU that the table does not have they stay the target's. */
static void find_speeds(Machine *machine, const Target *target) {
  const Microarchitecture *m = microarchitecture_here();
  if (!m) return;
  double most_ghz = cpu_most_ghz();
  machine->ghz = most_ghz > 0 ? most_ghz * m->all_cores : m->ghz;
  double fma = m->fma[width_of(target)] > 0 ? m->fma[width_of(target)] : target->fma_per_cycle;
  machine->gflops = 2 * fma * target->lanes * machine->ghz;
  machine->fma_latency = m->fma_latency;
  machine->loads_per_cycle = m->loads;
  machine->barrier_ns = m->barrier_ns;
  find_bandwidths(machine, m, target->lanes);
}

Machine machine_of(const Target *target, bool native, int threads) {
  Machine machine = {
      .cores = target->cores,
      .l1_bytes = target->l1_bytes,
      .l2_bytes = target->l2_bytes,
      .l3_bytes = target->l3_bytes,
      .gflops = 2 * target->fma_per_cycle * target->lanes * target->ghz,
      .l1_gbps = target->l1_gbps,
      .l2_gbps = target->l2_gbps,
      .l3_gbps = target->l3_gbps,
      .dram_gbps = target->dram_gbps,
      .ghz = target->ghz,
      .barrier_ns = target->barrier_ns,
      .fma_latency = target->fma_latency,
      .loads_per_cycle = target->loads_per_cycle,
  };
  if (native) {
    find_caches(&machine);
    find_speeds(&machine, target);
    machine.cores = cpu_limit_threads();
  }
  machine.int8_gflops = (target->has_dot ? 4 : 1) * machine.gflops;
  if (threads > 0) machine.cores = threads;
  return machine;
}
