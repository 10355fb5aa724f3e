/* SPDX-License-Identifier: MIT */
#include "machine/microarchitecture.h"

#if defined __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "machine/system_files.h"

/* ---- the table ---- */

enum {
#define MICROARCHITECTURE(id, ...) id,
#define X86_MODELS(...)
#define ARM_PART(...)
#include "machine/microarchitectures.def"
};

static const Microarchitecture table[] = {
#define MICROARCHITECTURE(id, given, ...) [id] = {.name = (given), __VA_ARGS__},
#define X86_MODELS(...)
#define ARM_PART(...)
#include "machine/microarchitectures.def"
};

static const struct X86Models {
  int id;
  const char *vendor;
  unsigned family, first, last;
} x86_models[] = {
#define MICROARCHITECTURE(...)
#define X86_MODELS(...) {__VA_ARGS__},
#define ARM_PART(...)
#include "machine/microarchitectures.def"
};

static const struct ArmPart {
  int id;
  unsigned implementer, part;
} arm_parts[] = {
#define MICROARCHITECTURE(...)
#define X86_MODELS(...)
#define ARM_PART(...) {__VA_ARGS__},
#include "machine/microarchitectures.def"
};

const Microarchitecture *microarchitecture_at(int index) {
  return index >= 0 && (size_t)index < sizeof table / sizeof *table ? &table[index] : NULL;
}

/* The extended fields count for families 6 and 15 alone. */
const Microarchitecture *microarchitecture_of_x86(const char *vendor, uint32_t signature) {
  unsigned family = signature >> 8 & 0xf, model = signature >> 4 & 0xf;
  if (family == 6 || family == 15) model |= signature >> 12 & 0xf0;
  if (family == 15) family += signature >> 20 & 0xff;
  for (size_t i = 0; i < sizeof x86_models / sizeof *x86_models; i++) {
    const struct X86Models *m = &x86_models[i];
    if (!strcmp(m->vendor, vendor) && m->family == family && m->first <= model && model <= m->last)
      return &table[m->id];
  }
  return NULL;
}

const Microarchitecture *microarchitecture_of_arm(uint64_t midr) {
  unsigned implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
  for (size_t i = 0; i < sizeof arm_parts / sizeof *arm_parts; i++)
    if (arm_parts[i].implementer == implementer && arm_parts[i].part == part) return &table[arm_parts[i].id];
  return NULL;
}

/* ---- this CPU ---- */

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
  char word[SYSTEM_WORD];
  system_word("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", word);
  return strtoull(word, NULL, 16);
#endif
}

const Microarchitecture *microarchitecture_here(void) {
#if defined __x86_64__
  char vendor[13];
  read_vendor(vendor);
  return microarchitecture_of_x86(vendor, (uint32_t)cpu_signature());
#elif defined __aarch64__
  return microarchitecture_of_arm(cpu_signature());
#else
  return NULL;
#endif
}

double cpu_most_ghz(void) {
  char word[SYSTEM_WORD];
  system_word("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", word);
  double khz = strtod(word, NULL);
#if defined __x86_64__
  unsigned a, b = 0, c, d; /* leaf 0x16: b is the maximum in MHz */
  if (!(khz > 0) && __get_cpuid(0x16, &a, &b, &c, &d)) khz = 1e3 * (b & 0xffff);
#endif
  return khz > 0 ? khz * 1e-6 : 0;
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
