/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "schedules/records.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "json/json.h"

enum { MAX_FILE = 1 << 26 };

static const int64_t MAX_FIELD = INT64_C(1) << 50; /* cores, and bytes of a cache */

/* ---- a line ---- */

static const JsonField FIELDS[] = {
    {"format", JSON_STRING, true},   {"version", JSON_NUMBER, true},  {"family", JSON_STRING, true},
    {"workload", JSON_STRING, true}, {"target", JSON_STRING, true},   {"kernels", JSON_STRING, false},
    {"cores", JSON_NUMBER, true},    {"l1", JSON_NUMBER, true},       {"l2", JSON_NUMBER, true},
    {"l3", JSON_NUMBER, true},       {"schedule", JSON_STRING, true}, {"median_us", JSON_NUMBER, true},
    {"status", JSON_STRING, false},  {"sum", JSON_STRING, false},     {NULL, JSON_ABSENT, false}};

static const char *const statuses[] = {"best", "ok", "crashed", "hung", "wrong", NULL};

typedef struct Line {
  Arena *arena;
  const char *file, *text;
  size_t length, base;
  ScheduleRecord record;
} Line;

/* Needs no escapes, neither in JSON nor on a terminal. */
static bool is_plain(const char *text) {
  for (; *text; text++)
    if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\') return false;
  return true;
}

static const char *found(Json member) { return short_name(json_arena(member), json_text(member)); }

static const char *text_member(Json object, const char *key) {
  Json member = json_member(object, key);
  const char *text = json_text(member);
  if (!is_plain(text))
    error_at(json_where(member), EXIT_INVALID, "expected printable ASCII without quotes and backslashes, found \"%s\"",
             found(member));
  return text;
}

static const char *read_status(Json json) {
  Json member = json_member(json, "status");
  if (json_kind(member) == JSON_ABSENT) return NULL;
  for (int i = 0; statuses[i]; i++)
    if (!strcmp(json_text(member), statuses[i])) return statuses[i];
  error_at(json_where(member), EXIT_INVALID, "expected a status of best, ok, crashed, hung or wrong, found \"%s\"",
           found(member));
  return NULL;
}

/* Lines written by hand may have no checksum. */
static void check_sum(Json json, const Line *line) {
  Json member = json_member(json, "sum");
  if (json_kind(member) == JSON_STRING && strcmp(json_text(member), record_sum(line->arena, &line->record)) != 0)
    error_at(json_where(member), EXIT_INVALID,
             "the line was changed after it was written: its checksum does not match");
}

/* Ends at the first error: it runs in first_error_of(). */
static void read_line(void *argument) {
  Line *line = argument;
  Json json = json_parse(line->arena, line->file, line->text, line->length, line->base);
  ScheduleRecord *record = &line->record;
  int64_t version;
  json_check(json, FIELDS);
  json_get_int(json_member(json, "version"), 1, 1, &version);
  Json format = json_member(json, "format");
  if (strcmp(json_text(format), "rnncc-schedule") != 0)
    error_at(json_where(format), EXIT_INVALID, "expected the format \"rnncc-schedule\", found \"%s\"", found(format));
  record->key = (RecordKey){.family = text_member(json, "family"),
                            .workload = text_member(json, "workload"),
                            .target = text_member(json, "target")};
  if (json_kind(json_member(json, "kernels")) != JSON_ABSENT) record->kernels = text_member(json, "kernels");
  record->schedule = text_member(json, "schedule");
  json_get_int(json_member(json, "cores"), 1, MAX_FIELD, &record->key.cores);
  json_get_int(json_member(json, "l1"), 0, MAX_FIELD, &record->key.l1_bytes);
  json_get_int(json_member(json, "l2"), 0, MAX_FIELD, &record->key.l2_bytes);
  json_get_int(json_member(json, "l3"), 0, MAX_FIELD, &record->key.l3_bytes);
  json_get_double(json_member(json, "median_us"), &record->median_us);
  if (record->median_us < 0)
    error_at(json_where(json), EXIT_INVALID, "expected a median_us of at least 0, found %g", record->median_us);
  record->status = read_status(json);
  check_sum(json, line);
}

int records_each_line(Arena *arena, const char *path,
                      void (*visit)(void *argument, int line, const ScheduleRecord *record, const char *wrong),
                      void *argument) {
  FileBytes bytes = file_read_beside_writers(arena, path, MAX_FILE, LOCATION_FILE(path));
  const char *text = (const char *)bytes.data;
  int number = 1, open = 0;
  for (size_t at = 0, length; at < bytes.size; number++, at += length + 1) {
    const char *end = memchr(text + at, '\n', bytes.size - at);
    length = end ? (size_t)(end - text) - at : bytes.size - at;
    if (!end && text[bytes.size - 1] != '}' && record_begins(text + at, length)) open = number;
    Line line = {.arena = arena, .file = path, .text = text + at, .length = length, .base = at};
    if (strspn(line.text, " \t\r") >= length) continue;
    const char *wrong = first_error_of(read_line, &line);
    visit(argument, number, wrong ? NULL : &line.record, wrong);
  }
  return open;
}

/* ---- whole files ---- */

typedef struct Reading {
  Arena *arena;
  ScheduleRecords *records;
  RecordFile *file;
  int skipped, first, last; /* lines; the first of them, and what is wrong with it, and the last */
  const char *wrong;
} Reading;

static void take_line(void *argument, int line, const ScheduleRecord *record, const char *wrong) {
  Reading *reading = argument;
  if (record) {
    ScheduleRecord of_file = *record;
    of_file.file = reading->file;
    records_add(reading->arena, reading->records, of_file);
    return;
  }
  if (reading->skipped++ == 0) {
    reading->first = line;
    reading->wrong = arena_string(reading->arena, wrong);
  }
  reading->last = line;
}

void records_read_more(Arena *arena, ScheduleRecords *records, const char *path) {
  Reading reading = {.arena = arena, .records = records, .file = ARENA_NEW(arena, RecordFile)};
  reading.file->path = path;
  int open = records_each_line(arena, path, take_line, &reading);
  if (open && reading.last == open) reading.skipped--;
  if (reading.skipped)
    warn_at(LOCATION_FILE(path), "%d %s skipped; line %d: %s", reading.skipped,
            reading.skipped == 1 ? "line is not a record and is" : "lines are not records and are", reading.first,
            reading.wrong);
}

ScheduleRecords *records_read(Arena *arena, const char *path) {
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  records_read_more(arena, records, path);
  return records;
}
