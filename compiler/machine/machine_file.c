/* SPDX-License-Identifier: MIT */
#include "machine/machine_file.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/microarchitecture.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/text.h"
#include "json/json.h"

enum { MAX_FILE = 1 << 16, MAX_CORES = 1 << 16 };

static const int64_t MAX_BYTES = INT64_C(1) << 40;

static const JsonField FIELDS[] = {
    {"format", JSON_STRING, true}, {"version", JSON_NUMBER, true}, {"cpu", JSON_STRING, true},
    {"cores", JSON_NUMBER, true},  {"l1", JSON_NUMBER, true},      {"l2", JSON_NUMBER, true},
    {"l3", JSON_NUMBER, true},     {"targets", JSON_OBJECT, true}, {NULL, JSON_ABSENT, false}};

/* The measured values, each with the bounds that any real machine keeps. */
static const struct Speed {
  const char *key;
  size_t member; /* of Machine, a double */
  double least, most;
  bool may_lack; /* then the file's machine has what its target usually has */
} speeds[] = {
    {"ghz", offsetof(Machine, ghz), 0.05, 20, false},
    {"gflops", offsetof(Machine, gflops), 0.01, 1e5, false},
    {"l1_gbps", offsetof(Machine, l1_gbps), 0.01, 1e5, false},
    {"l2_gbps", offsetof(Machine, l2_gbps), 0.01, 1e5, false},
    {"l3_gbps", offsetof(Machine, l3_gbps), 0.01, 1e5, false},
    {"dram_gbps", offsetof(Machine, dram_gbps), 0.001, 1e5, false},
    {"barrier_ns", offsetof(Machine, barrier_ns), 1, 1e6, false},
    {"int8_gflops", offsetof(Machine, int8_gflops), 0.01, 1e6, true},
    {"fma_latency", offsetof(Machine, fma_latency), 1, 100, true},
    {"loads_per_cycle", offsetof(Machine, loads_per_cycle), 0.1, 100, true},
};
enum { SPEEDS = sizeof speeds / sizeof *speeds };

static double get_speed(const Machine *machine, const struct Speed *speed) {
  double value;
  memcpy(&value, (const char *)machine + speed->member, sizeof value);
  return value;
}
static void set_speed(Machine *machine, const struct Speed *speed, double value) {
  memcpy((char *)machine + speed->member, &value, sizeof value);
}

static bool is_within(const struct Speed *speed, double value) { return value >= speed->least && value <= speed->most; }

bool machine_may_have(const char *speed, double value) {
  for (int i = 0; i < SPEEDS; i++)
    if (!strcmp(speeds[i].key, speed)) return is_within(&speeds[i], value);
  return false;
}

/* ---- reading ---- */

typedef struct Reading {
  Arena *arena;
  const char *path;
  const Target *target;
  const char *cpu; /* set */
  Machine machine; /* given: what a file may lack; set */
} Reading;

static void read_speeds(Json object, Machine *machine) {
  JsonField fields[SPEEDS + 1] = {{NULL, JSON_ABSENT, false}}; /* the last stays absent */
  for (int i = 0; i < SPEEDS; i++) fields[i] = (JsonField){speeds[i].key, JSON_NUMBER, !speeds[i].may_lack};
  if (!json_check(object, fields)) return;
  for (int i = 0; i < SPEEDS; i++) {
    Json number = json_member(object, speeds[i].key);
    if (json_kind(number) == JSON_ABSENT) continue;
    double value = 0;
    if (json_get_double(number, &value) && !is_within(&speeds[i], value))
      error_at(json_where(number), EXIT_INVALID, "no machine has a %s of %g", speeds[i].key, value);
    set_speed(machine, &speeds[i], value);
  }
}

static void read_keys(Json json, Reading *reading) {
  Machine *machine = &reading->machine;
  int64_t version = 0, cores = 0;
  json_get_int(json_member(json, "version"), 1, 1, &version);
  json_get_int(json_member(json, "cores"), 1, MAX_CORES, &cores);
  json_get_int(json_member(json, "l1"), 1, MAX_BYTES, &machine->l1_bytes);
  json_get_int(json_member(json, "l2"), 1, MAX_BYTES, &machine->l2_bytes);
  json_get_int(json_member(json, "l3"), 1, MAX_BYTES, &machine->l3_bytes);
  reading->cpu = json_text(json_member(json, "cpu"));
  machine->cores = (int)cores;
}

/* Errors end the program, or first_error_of(). */
static void read_file(void *argument) {
  Reading *reading = argument;
  FileBytes bytes = file_read(reading->arena, reading->path, MAX_FILE, LOCATION_FILE(reading->path));
  Json json = json_parse(reading->arena, reading->path, (const char *)bytes.data, bytes.size, 0);
  if (!json_check(json, FIELDS)) stop_on_errors();
  Json format = json_member(json, "format");
  if (strcmp(json_text(format), "rnncc-machine") != 0)
    fatal_at(json_where(format), EXIT_INVALID, "expected the format \"rnncc-machine\", found \"%s\"",
             short_name(reading->arena, json_text(format)));
  read_keys(json, reading);
  Json target = json_member(json_member(json, "targets"), reading->target->base);
  if (json_kind(target) == JSON_ABSENT)
    fatal_at(json_where(json), EXIT_INVALID, "it has nothing on %s", reading->target->name);
  read_speeds(target, &reading->machine);
  stop_on_errors();
}

/* ---- which to use ---- */

/* NULL, or in what the machine that was measured is another than this. */
static const char *difference(Arena *arena, const Reading *reading, const Machine *here) {
  const Machine *there = &reading->machine;
  const char *cpu = machine_cpu_name(arena);
  if (strcmp(reading->cpu, cpu) != 0)
    return arena_format(arena, "it is of \"%s\", and this is \"%s\"", reading->cpu, cpu);
  if (there->l1_bytes != here->l1_bytes || there->l2_bytes != here->l2_bytes || there->l3_bytes != here->l3_bytes)
    return "it is of other caches";
  if (there->cores != here->cores)
    return arena_format(arena, "it is of %d cores, and this process has %d", there->cores, here->cores);
  return NULL;
}

/* Takes the speeds of the user's machine file, if there is one and it describes this machine. Its path, or NULL. */
static const char *use_default_file(Arena *arena, const Target *target, Machine *here) {
  Reading reading = {.arena = arena, .path = machine_file_default(arena), .target = target, .machine = *here};
  if (!reading.path || access(reading.path, F_OK) != 0) return NULL;
  const char *wrong = first_error_of(read_file, &reading);
  if (!wrong) wrong = difference(arena, &reading, here);
  if (wrong)
    warn_at(LOCATION_FILE(reading.path), "not used: %s; `rnncc targets --calibrate` writes it anew", wrong);
  else
    *here = reading.machine;
  return wrong ? NULL : reading.path;
}

const char *machine_here(Arena *arena, const Target *target, Machine *machine) {
  *machine = machine_of(target, true, 0);
  return use_default_file(arena, target, machine);
}

Machine machine_choose(Arena *arena, const char *given, const Target *target, bool native, int threads) {
  bool is_native = given ? !strcmp(given, "native") : native;
  Machine machine = machine_of(target, is_native, 0);
  if (is_native) {
    use_default_file(arena, target, &machine);
  } else if (given && strcmp(given, "typical") != 0) {
    Reading reading = {.arena = arena, .path = given, .target = target, .machine = machine};
    read_file(&reading);
    machine = reading.machine;
  }
  if (threads > 0) machine.cores = threads;
  return machine;
}

/* ---- writing ---- */

static void add_speeds(Text *text, const Machine *machine) {
  for (int i = 0; i < SPEEDS; i++)
    text_add(text, "%s\"%s\": %.2f", i ? ", " : "", speeds[i].key, get_speed(machine, &speeds[i]));
}

void machine_file_write(Arena *arena, const char *path, const MachineFile *file) {
  Text text = text_new(arena);
  const Machine *any = &file->machines[0];
  text_add(&text, "{\"format\": \"rnncc-machine\", \"version\": 1, \"cpu\": \"%s\",\n", file->cpu);
  text_add(&text, " \"cores\": %d, \"l1\": %" PRId64 ", \"l2\": %" PRId64 ", \"l3\": %" PRId64 ",\n \"targets\": {",
           any->cores, any->l1_bytes, any->l2_bytes, any->l3_bytes);
  for (int i = 0; i < file->count; i++) {
    text_add(&text, "%s\n  \"%s\": {", i ? "," : "", file->targets[i]->name);
    add_speeds(&text, &file->machines[i]);
    text_add(&text, "}");
  }
  text_add(&text, "}}\n");
  file_write(arena, path, text.data, text.length);
}

/* ---- where ---- */

const char *machine_file_default(Arena *arena) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && *cache == '/') return arena_format(arena, "%s/rnncc/machine.json", cache);
  if (home && *home == '/') return arena_format(arena, "%s/.cache/rnncc/machine.json", home);
  return NULL;
}
