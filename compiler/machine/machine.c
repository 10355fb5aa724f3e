/* SPDX-License-Identifier: MIT */
#include "machine/machine.h"

#if defined __x86_64__
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_limit.h"

/* One word of a file of sysfs; empty if there is none. */
static void read_word(const char *path, char *word, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? 0 : read(file, word, size - 1);
  if (file >= 0) close(file);
  word[got > 0 ? got : 0] = 0;
  word[strcspn(word, " \n")] = 0;
}

static void read_attribute(int index, const char *attribute, char *word, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, attribute);
  read_word(path, word, size);
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
    char type[32], level[32], size[32];
    read_attribute(index, "type", type, sizeof type);
    read_attribute(index, "level", level, sizeof level);
    read_attribute(index, "size", size, sizeof size);
    int at = level[0] - '0';
    if (!strcmp(type, "Instruction") || at < 1 || at > 3 || parse_size(size) == 0) continue;
    *levels[at - 1] = parse_size(size);
  }
}

/* CPUs whose numbers are far from their target's typical ones. Measured on all of its cores at once: an FMA of 512 bits
 * a cycle, 32 bytes a cycle from L2, and nearly as many from an L3 that four to eight cores share. */
static const struct CpuRow {
  const char *vendor, *isa;
  double ghz, fma_per_cycle, l1_gbps, l2_gbps, l3_gbps, dram_gbps, barrier_ns;
} cpu_rows[] = {
    {"AuthenticAMD", "avx512", 3.65, 1, 205, 117, 95, 24, 100},
};

/* "AuthenticAMD"; empty where there is no cpuid. */
static void read_vendor(char vendor[13]) {
  unsigned words[4] = {0};
#if defined __x86_64__
  __get_cpuid(0, &words[0], &words[1], &words[3], &words[2]);
#endif
  memcpy(vendor, &words[1], 12);
  vendor[12] = 0;
}

/* Three leaves of cpuid hold 16 characters each. */
static void read_brand(char brand[49]) {
  unsigned words[12] = {0};
#if defined __x86_64__
  for (unsigned i = 0; i < 3; i++)
    __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
#endif
  memcpy(brand, words, 48);
  brand[48] = 0;
}

/* Family, model and stepping in one number; of an ARM core its MIDR. */
static uint64_t cpu_signature(void) {
#if defined __x86_64__
  unsigned signature = 0, b, c, d;
  __get_cpuid(1, &signature, &b, &c, &d);
  return signature;
#else
  char word[32];
  read_word("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", word, sizeof word);
  return strtoull(word, NULL, 16);
#endif
}

const char *machine_cpu_name(Arena *arena) {
  char vendor[13], brand[49];
  read_vendor(vendor);
  read_brand(brand);
  char *name = arena_format(arena, "%s (%s %llx)", brand, vendor, (unsigned long long)cpu_signature());
  for (char *c = name; *c; c++)
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = ' ';
  return name;
}

static void find_speeds(Machine *machine, const Target *target) {
  char vendor[13];
  read_vendor(vendor);
  for (size_t i = 0; i < sizeof cpu_rows / sizeof *cpu_rows; i++) {
    const struct CpuRow *row = &cpu_rows[i];
    if (strcmp(row->vendor, vendor) != 0 || strcmp(row->isa, target->isa) != 0) continue;
    machine->ghz = row->ghz;
    machine->gflops = 2 * row->fma_per_cycle * target->lanes * row->ghz;
    machine->l1_gbps = row->l1_gbps;
    machine->l2_gbps = row->l2_gbps;
    machine->l3_gbps = row->l3_gbps;
    machine->dram_gbps = row->dram_gbps;
    machine->barrier_ns = row->barrier_ns;
  }
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
  };
  if (native) {
    find_caches(&machine);
    find_speeds(&machine, target);
    machine.cores = cpu_limit_threads();
  }
  if (threads > 0) machine.cores = threads;
  return machine;
}
