/* SPDX-License-Identifier: MIT */
#include "driver/manage_schedules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/conv/recorded.h"
#include "kernels/recurrent/recorded.h"
#include "machine/portable_target.h"
#include "schedules/records.h"
#include "support/files.h"
#include "support/text.h"

/* ---- families and targets ---- */

static const struct FamilyRow {
  const char *name;
  const ScheduleKind *const *kinds;
  bool whole;       /* a schedule names every knob */
  const char *form; /* of a schedule */
} families[] = {
    {"conv", convolution_kinds, true, "an algorithm and its KEY=N"},
    {"recurrent", recurrent_kinds, false, "KEY=N of a recurrent layer"},
};

static const struct FamilyRow *family_of(const RecordKey *key) {
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (!strcmp(families[i].name, key->family)) return &families[i];
  return NULL;
}

/* `native` is whatever CPU reads it. */
static bool is_target(Arena *arena, const char *name) {
  return strcmp(name, "native") != 0 && (target_named(arena, name) || is_linux_triple(name));
}

/* ---- order ---- */

typedef struct Entry {
  ScheduleRecord *record;
  int order; /* of reading */
} Entry;

typedef struct Entries {
  int count;
  Entry *list;
} Entries;

static int compare_numbers(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int compare_machines(const RecordKey *a, const RecordKey *b) {
  int by = strcmp(a->family, b->family);
  if (!by) by = strcmp(a->target, b->target);
  if (!by) by = compare_numbers(a->cores, b->cores);
  if (!by) by = compare_numbers(a->l1_bytes, b->l1_bytes);
  if (!by) by = compare_numbers(a->l2_bytes, b->l2_bytes);
  return by ? by : compare_numbers(a->l3_bytes, b->l3_bytes);
}

/* By work, then in the order of reading. */
static int by_work(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int by = compare_machines(&x->record->key, &y->record->key);
  if (!by) by = strcmp(x->record->key.workload, y->record->key.workload);
  return by ? by : x->order - y->order;
}

static Entries sorted(Arena *arena, FileList files) {
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  for (int i = 0; i < files.count; i++) records_read_more(arena, records, files.paths[i]);
  Entries all = {.count = records->count, .list = ARENA_ARRAY(arena, Entry, records->count)};
  for (int i = 0; i < all.count; i++) all.list[i] = (Entry){&records->list[i], i};
  qsort(all.list, (size_t)all.count, sizeof *all.list, by_work);
  return all;
}

/* ---- merge ---- */

/* The output may be one of the files, to which others append. */
void schedules_merge(Arena *arena, FileList files, const char *output) {
  records_check_output(arena, output);
  int lock = records_lock(output);
  Entries all = sorted(arena, files);
  Text text = text_new(arena);
  const ScheduleRecord *best = NULL;
  for (int i = 0; i < all.count; i++) {
    const ScheduleRecord *record = all.list[i].record;
    if (best && !record_is_of(record, &best->key)) {
      text_add(&text, "%s\n", record_text(arena, best));
      best = NULL;
    }
    if (record_is_best(record)) best = record;
  }
  if (best) text_add(&text, "%s\n", record_text(arena, best));
  file_write(arena, output, text.data, text.length);
  if (lock >= 0) close(lock);
}

/* ---- check ---- */

typedef struct Check {
  Arena *arena;
  const char *path;
  int best, trials;
} Check;

/* NULL: the schedule is one of the family's. */
static const char *wrong_schedule(Arena *arena, const struct FamilyRow *family, const char *schedule) {
  ParsedSchedule parsed;
  const char *wrong = schedule_parse(family->kinds, schedule, &parsed);
  if (wrong) return arena_format(arena, "expected %s, found `%s`", family->form, wrong);
  return family->whole && !schedule_is_whole(&parsed) ? "a knob is missing" : NULL;
}

/* NULL: nothing. */
static const char *wrong_with(Arena *arena, const ScheduleRecord *record) {
  const struct FamilyRow *family = family_of(&record->key);
  if (!family) return arena_format(arena, "the family \"%s\" is not known", record->key.family);
  if (!is_target(arena, record->key.target))
    return arena_format(arena, "the target \"%s\" is not known", record->key.target);
  const char *wrong = wrong_schedule(arena, family, record->schedule);
  return wrong ? arena_format(arena, "the schedule \"%s\" is none: %s", record->schedule, wrong) : NULL;
}

static void check_line(void *argument, int line, const ScheduleRecord *record, const char *wrong) {
  Check *check = argument;
  if (record) wrong = wrong_with(check->arena, record);
  if (wrong) {
    Location where = {.file = check->path, .path = arena_format(check->arena, "line %d", line), .byte = -1};
    error_at(where, EXIT_INVALID, "%s", wrong);
    return;
  }
  check->best += record_is_best(record);
  check->trials += !record_is_best(record);
}

void schedules_check(Arena *arena, FileList files) {
  for (int i = 0; i < files.count; i++) {
    Check check = {.arena = arena, .path = files.paths[i]};
    records_each_line(arena, files.paths[i], check_line, &check);
    printf("%s: %d best, %d of trials\n", check.path, check.best, check.trials);
  }
}

/* ---- show ---- */

static void show_machine(const RecordKey *key) {
  printf("%s, %s, %" PRId64 " %s, caches of %" PRId64 ", %" PRId64 " and %" PRId64 " KiB\n", key->family, key->target,
         key->cores, key->cores == 1 ? "core" : "cores", key->l1_bytes >> 10, key->l2_bytes >> 10, key->l3_bytes >> 10);
}

void schedules_show(Arena *arena, FileList files) {
  Entries all = sorted(arena, files);
  const RecordKey *last = NULL;
  for (int i = 0; i < all.count; i++) {
    const ScheduleRecord *record = all.list[i].record;
    if (!last || compare_machines(last, &record->key) != 0) show_machine(&record->key);
    last = &record->key;
    printf("%12.1f us  %-56s  %s%s%s\n", record->median_us, record->key.workload, record->schedule,
           record_is_best(record) ? "" : "  ", record_is_best(record) ? "" : record->status);
  }
}
