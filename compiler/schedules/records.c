/* SPDX-License-Identifier: MIT */
#include "schedules/records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/json.h"
#include "support/data_directory.h"
#include "support/files.h"
#include "support/sha256.h"
#include "support/text.h"

enum { LARGEST_FILE = 1 << 26, LARGEST_SOURCE = 1 << 22, HASH_DIGITS = 16 };

static const int64_t MOST = INT64_C(1) << 50; /* cores, and bytes of a cache */

/* ---- reading ---- */

static const JsonField FIELDS[] = {
    {"format", JSON_STRING, true},   {"version", JSON_NUMBER, true},  {"family", JSON_STRING, true},
    {"workload", JSON_STRING, true}, {"target", JSON_STRING, true},   {"kernels", JSON_STRING, true},
    {"cores", JSON_NUMBER, true},    {"l1", JSON_NUMBER, true},       {"l2", JSON_NUMBER, true},
    {"l3", JSON_NUMBER, true},       {"schedule", JSON_STRING, true}, {"median_us", JSON_NUMBER, true},
    {NULL, JSON_ABSENT, false}};

typedef struct Line {
  Arena *arena;
  const char *file, *text;
  size_t length, base;
  ScheduleRecord record;
} Line;

static const char *text_member(Json object, const char *key) { return json_text(json_member(object, key)); }

/* Ends at the first error: it runs in first_error_of(). */
static void read_line(void *argument) {
  Line *line = argument;
  Json json = json_parse(line->arena, line->file, line->text, line->length, line->base);
  ScheduleRecord *record = &line->record;
  int64_t version;
  json_check(json, FIELDS);
  json_get_int(json_member(json, "version"), 1, 1, &version);
  if (strcmp(text_member(json, "format"), "rnncc-schedule") != 0)
    error_at(json_where(json), EXIT_INVALID, "the format is not rnncc-schedule");
  record->key = (RecordKey){.family = text_member(json, "family"),
                            .workload = text_member(json, "workload"),
                            .target = text_member(json, "target"),
                            .kernels = text_member(json, "kernels")};
  record->schedule = text_member(json, "schedule");
  json_get_int(json_member(json, "cores"), 1, MOST, &record->key.cores);
  json_get_int(json_member(json, "l1"), 0, MOST, &record->key.l1_bytes);
  json_get_int(json_member(json, "l2"), 0, MOST, &record->key.l2_bytes);
  json_get_int(json_member(json, "l3"), 0, MOST, &record->key.l3_bytes);
  json_get_double(json_member(json, "median_us"), &record->median_us);
}

void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record) {
  if (records->count == records->capacity) {
    records->capacity = records->capacity ? 2 * records->capacity : 16;
    ScheduleRecord *longer = ARENA_ARRAY(arena, ScheduleRecord, records->capacity);
    if (records->count) memcpy(longer, records->list, (size_t)records->count * sizeof *longer);
    records->list = longer;
  }
  records->list[records->count++] = record;
}

typedef struct Skipped {
  int lines, first;
  char *message; /* of the first */
} Skipped;

static void read_record(ScheduleRecords *records, Line *line, int number, Skipped *skipped) {
  if (strspn(line->text, " \t\r") >= line->length) return;
  const char *wrong = first_error_of(read_line, line);
  if (!wrong) {
    records_add(line->arena, records, line->record);
    return;
  }
  if (skipped->lines++ > 0) return;
  skipped->first = number;
  skipped->message = arena_string(line->arena, wrong);
}

ScheduleRecords *records_read(Arena *arena, const char *path) {
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  records->file = path;
  FileBytes bytes = file_read(arena, path, LARGEST_FILE, LOCATION_FILE(path));
  Skipped skipped = {0};
  const char *text = (const char *)bytes.data;
  int number = 1;
  for (size_t at = 0; at < bytes.size; number++) {
    const char *end = memchr(text + at, '\n', bytes.size - at);
    size_t length = end ? (size_t)(end - text) - at : bytes.size - at;
    Line line = {.arena = arena, .file = path, .text = text + at, .length = length, .base = at};
    read_record(records, &line, number, &skipped);
    at += length + 1;
  }
  if (skipped.lines)
    warn_at(LOCATION_FILE(path), "%d %s skipped; line %d: %s", skipped.lines,
            skipped.lines == 1 ? "line is no record and" : "lines are no records and", skipped.first, skipped.message);
  return records;
}

/* ---- finding ---- */

static bool same_key(const RecordKey *a, const RecordKey *b) {
  return a->cores == b->cores && a->l1_bytes == b->l1_bytes && a->l2_bytes == b->l2_bytes &&
         a->l3_bytes == b->l3_bytes && !strcmp(a->family, b->family) && !strcmp(a->workload, b->workload) &&
         !strcmp(a->target, b->target) && !strcmp(a->kernels, b->kernels);
}

const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key) {
  for (int i = records ? records->count - 1 : -1; i >= 0; i--)
    if (same_key(&records->list[i].key, key)) return &records->list[i];
  return NULL;
}

/* ---- appending ---- */

static const char *record_text(Arena *arena, const ScheduleRecord *record) {
  const RecordKey *key = &record->key;
  return arena_format(arena,
                      "{\"format\":\"rnncc-schedule\",\"version\":1,\"family\":\"%s\",\"workload\":\"%s\","
                      "\"target\":\"%s\",\"cores\":%" PRId64 ",\"l1\":%" PRId64 ",\"l2\":%" PRId64 ",\"l3\":%" PRId64
                      ",\"kernels\":\"%s\",\"schedule\":\"%s\",\"median_us\":%.3f}\n",
                      key->family, key->workload, key->target, key->cores, key->l1_bytes, key->l2_bytes, key->l3_bytes,
                      key->kernels, record->schedule, record->median_us);
}

/* A line that a writer could not end is left to itself: the next one starts below. */
static bool ends_within_line(int file, off_t size) {
  char last = '\n';
  return size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

static bool write_all(int file, const char *text, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text += written, length -= (size_t)written;
  }
  return true;
}

/* Under the lock. What was written in part is taken back. */
static bool append_line(Arena *arena, int file, const char *line) {
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return false;
  }
  if (ends_within_line(file, status.st_size)) line = arena_format(arena, "\n%s", line);
  if (write_all(file, line, strlen(line)) && fsync(file) == 0) return true;
  int error = errno;
  if (ftruncate(file, status.st_size) != 0) return false;
  errno = error;
  return false;
}

void records_check_output(Arena *arena, const char *path) {
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    fatal_at(LOCATION_FILE(path), EXIT_INVALID, "cannot append records: it is no regular file");
  int folder_length = (int)(file_last_part(path) - path);
  const char *folder = folder_length ? arena_format(arena, "%.*s", folder_length, path) : ".";
  bool exists = access(path, F_OK) == 0;
  if (access(exists ? path : folder, W_OK) != 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot append records: %s", strerror(errno));
}

void records_append(Arena *arena, const char *path, const ScheduleRecord *record) {
  int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  bool good = file >= 0 && flock(file, LOCK_EX) == 0 && append_line(arena, file, record_text(arena, record));
  int error = errno;
  if (file >= 0 && close(file) != 0 && good) good = false, error = errno;
  if (!good) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot append a record: %s", strerror(error));
}

/* ---- the kernels' version ---- */

const char *kernels_hash(Arena *arena, const char *const *sources) {
  Sha256 hash = sha256_new();
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  for (; *sources; sources++) {
    const char *path = arena_format(arena, "%s/templates/%s", data_directory(arena), *sources);
    FileBytes bytes = file_read(arena, path, LARGEST_SOURCE, LOCATION_FILE(path));
    sha256_add(&hash, bytes.data, bytes.size);
  }
  sha256_end(&hash, digest);
  sha256_hex(digest, hex);
  return arena_format(arena, "%.*s", HASH_DIGITS, hex);
}
