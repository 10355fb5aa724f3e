/* SPDX-License-Identifier: MIT */
#include "machine/targets.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cpu.h"
#include "support/diagnostics.h"
#include "support/list.h"
#include "support/text.h"

static const Target targets[] = {
#define TARGET(given, ...) {.name = (given), .base = (given), .with_glibc = (given), __VA_ARGS__},
#include "machine/targets.def"
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_at(int index) { return index >= 0 && index < TARGET_COUNT ? &targets[index] : NULL; }

enum {
  OPTIONS_OF_X86 = 0
#define X86_OPTION(name, ...) | CPU_##name
#include "cpu.def"
};

/* $RNNCC_CPU_WITHOUT takes this CPU for one without an instruction set, those that need it, and all options beside one,
 * for tests. */
static uint32_t features_here(void) {
  static const char *const names[] = {
#define CPU_FEATURE(name, ...) #name,
#include "cpu.def"
  };
  const char *without = getenv("RNNCC_CPU_WITHOUT");
  uint32_t features = cpu_features();
  if (!without || !*without) return features;
  for (int i = 0; i < CPU_FEATURES; i++)
    if (!strcasecmp(without, names[i])) return features & ((1u << i) - 1) & ~(uint32_t)OPTIONS_OF_X86;
  fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "RNNCC_CPU_WITHOUT=%s: expected an instruction set, such as avx512",
           without);
}

/* The first part of the triple of targets that this compiler was built for. */
static const char architecture_here[] =
#if defined __x86_64__
    "x86_64-";
#elif defined __aarch64__
    "aarch64-";
#elif defined __riscv
    "riscv64-";
#else
    "unknown-";
#endif

static bool has_musl(const Target *target) { return strstr(target->triple, "-musl"); }

/* Programs of musl load modules of both. */
#ifdef __GLIBC__
static const bool musl_here = false;
#else
static const bool musl_here = true;
#endif

bool target_runs_here(const Target *target) {
  bool same = !strncmp(target->triple, architecture_here, sizeof architecture_here - 1);
  return same && (musl_here || !has_musl(target)) && (target->cpu_features & ~features_here()) == 0;
}

bool target_multiplies_bf16(const Target *target) { return target->has_bf16_tiles || target->has_matrices; }

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

/* ---- features ---- */

typedef struct Feature {
  const char *name, *architecture, *flags; /* for clang, with ", " between; NULL: behind -march's, by its name */
  uint32_t cpu_feature, widest;            /* widest: the instruction set of targets that take it; 0: any */
} Feature;

static const Feature features[] = {
#define X86_OPTION(name, title, flag, option, widest, ...) {option, "x86_64", flag, CPU_##name, CPU_##widest},
#define AARCH64_OPTION(name, title, flag, ...) {flag, "aarch64", NULL, CPU_##name, 0},
#include "cpu.def"
};

enum { FEATURES = sizeof features / sizeof *features };

static bool takes(const Target *target, const Feature *feature) {
  bool same = !strncmp(target->triple, feature->architecture, strlen(feature->architecture));
  uint32_t sets = target->cpu_features & ~feature->cpu_feature; /* a later set has a higher bit */
  return same && (!feature->widest || (sets & feature->widest && sets < feature->widest << 1));
}

/* The row of the longest name that stands in front of "+FEATURE..." or is all. */
static const Target *row_before_features(const char *name) {
  const Target *row = NULL;
  for (int i = 0; i < TARGET_COUNT; i++) {
    size_t length = strlen(targets[i].name);
    bool stands_there = !strncmp(targets[i].name, name, length) && (name[length] == '+' || !name[length]);
    if (stands_there && (!row || length > strlen(row->name))) row = &targets[i];
  }
  return row;
}

/* CPU_* of "+dotprod+fp16"; 0 if one is unknown, or of another architecture. */
static uint32_t parse_features(const Target *target, const char *text) {
  uint32_t found = 0;
  while (*text == '+') {
    size_t length = strcspn(++text, "+");
    uint32_t known = 0;
    for (int i = 0; i < FEATURES; i++)
      if (takes(target, &features[i]) && strlen(features[i].name) == length && !strncmp(features[i].name, text, length))
        known = features[i].cpu_feature;
    if (!known) return 0;
    found |= known;
    text += length;
  }
  return found;
}

/* "+dotprod+fp16", always in the table's order, with `space` between two. */
static const char *name_features(Arena *arena, const Target *target, uint32_t wanted, const char *space) {
  Text text = text_new(arena);
  for (int i = 0; i < FEATURES; i++)
    if (takes(target, &features[i]) && wanted & features[i].cpu_feature)
      text_add(&text, "%s+%s", text.length ? space : "", features[i].name);
  return text.length ? text.data : "";
}

const char *target_features(Arena *arena, const Target *target) {
  return name_features(arena, target, UINT32_MAX, " ");
}

/* -march takes features behind the architecture; those of x86 are arguments of their own. */
static const char *const *args_with(Arena *arena, const Target *row, uint32_t wanted, const char *added) {
  const char **list = NULL;
  int count = 0, capacity = 0;
  bool behind = strncmp(row->triple, "x86_64-", 7) != 0;
  for (const char *const *args = row->clang_args; *args; args++) {
    bool takes_them = behind && !strncmp(*args, "-march=", 7);
    const char *march = row->march_of_features ? row->march_of_features : *args;
    *LIST_ADD(arena, list, count, capacity) = takes_them ? arena_format(arena, "%s%s", march, added) : *args;
  }
  for (int i = 0; i < FEATURES; i++)
    if (features[i].flags && wanted & features[i].cpu_feature)
      for (const char *flag = features[i].flags; *flag; flag += strspn(flag, ", ")) {
        size_t length = strcspn(flag, ",");
        *LIST_ADD(arena, list, count, capacity) = arena_format(arena, "-m%.*s", (int)length, flag);
        flag += length;
      }
  *LIST_ADD(arena, list, count, capacity) = NULL;
  return list;
}

static const Target *row_with(Arena *arena, const Target *row, uint32_t wanted) {
  const char *added = name_features(arena, row, wanted, "");
  Target *target = ARENA_NEW(arena, Target);
  *target = *row;
  target->name = arena_format(arena, "%s%s", row->name, added);
  target->with_glibc = row->triple == strstr(row->triple, "x86_64-") ? row->name : target->name;
  target->clang_args = args_with(arena, row, wanted, added);
  target->cpu_features |= wanted;
  if (wanted & (CPU_AVXVNNI | CPU_AVX512VNNI | CPU_DOTPROD)) target->has_dot = true;
  if (wanted & (CPU_AVXVNNI | CPU_AVX512VNNI)) target->has_pair_dot = true;
  if (wanted & CPU_DOTPROD) target->dot_zero = 128;
  if (wanted & CPU_AMX) target->has_matrices = true;
  if (wanted & row->tile_feature) target->has_tiles = true;
  if (wanted & row->bf16_feature) target->has_bf16_tiles = true;
  return target;
}

/* The row of this CPU with its features of x86, which cpuid tells. */
static const Target *native_with_features(Arena *arena) {
  const Target *row = native_target();
  uint32_t found = 0, here = features_here();
  for (int i = 0; row && i < FEATURES; i++)
    if (features[i].flags && takes(row, &features[i])) found |= here & features[i].cpu_feature;
  return found ? row_with(arena, row, found) : row;
}

static const Target *with_glibc(Arena *arena, const char *name) {
  if (!strcmp(name, "native")) return native_with_features(arena);
  const Target *row = row_before_features(name);
  if (!row || !strcmp(row->name, name)) return target_find(name);
  uint32_t wanted = parse_features(row, name + strlen(row->name));
  return wanted ? row_with(arena, row, wanted) : NULL;
}

/* ---- libc ---- */

typedef struct Musl {
  const char *name, *base, *triple;
} Musl;

static const Musl with_musl[] = {
#define MUSL(name, base, triple) {name, base, triple},
#include "machine/targets.def"
};

enum { WITH_MUSL = sizeof with_musl / sizeof *with_musl };

const char *target_with_musl(const Target *target) {
  for (int i = 0; i < WITH_MUSL; i++)
    if (!strcmp(with_musl[i].base, target->base)) return with_musl[i].name;
  return NULL;
}

/* A row whose name stands in front of "+FEATURE..." or is all. */
static const Musl *musl_of(const char *name) {
  for (int i = 0; i < WITH_MUSL; i++) {
    size_t length = strlen(with_musl[i].name);
    if (!strncmp(with_musl[i].name, name, length) && (name[length] == '+' || !name[length])) return &with_musl[i];
  }
  return NULL;
}

const Target *target_named(Arena *arena, const char *name) {
  const Musl *musl = musl_of(name);
  if (!musl) return with_glibc(arena, name);
  const Target *same = with_glibc(arena, arena_format(arena, "%s%s", musl->base, name + strlen(musl->name)));
  if (!same) return NULL;
  Target *target = ARENA_NEW(arena, Target);
  *target = *same;
  target->name = arena_format(arena, "%s%s", musl->name, same->name + strlen(musl->base));
  target->triple = musl->triple;
  return target;
}
