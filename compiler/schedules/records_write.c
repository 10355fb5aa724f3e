/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schedules/records.h"
#include "sha256.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/interrupt.h"

static const char *members(Arena *arena, const ScheduleRecord *record) {
  const RecordKey *key = &record->key;
  const char *kernels = record->kernels ? arena_format(arena, ",\"kernels\":\"%s\"", record->kernels) : "";
  return arena_format(arena,
                      "\"format\":\"rnncc-schedule\",\"version\":1,\"family\":\"%s\",\"workload\":\"%s\","
                      "\"target\":\"%s\",\"cores\":%" PRId64 ",\"l1\":%" PRId64 ",\"l2\":%" PRId64 ",\"l3\":%" PRId64
                      "%s,\"schedule\":\"%s\",\"median_us\":%.3f,\"status\":\"%s\"",
                      key->family, key->workload, key->target, key->cores, key->l1_bytes, key->l2_bytes, key->l3_bytes,
                      kernels, record->schedule, record->median_us, record->status ? record->status : "best");
}

const char *record_sum(Arena *arena, const ScheduleRecord *record) {
  enum { SUM_DIGITS = 8 };
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  const char *text = members(arena, record);
  sha256(text, strlen(text), digest);
  sha256_hex(digest, hex);
  return arena_format(arena, "%.*s", SUM_DIGITS, hex);
}

const char *record_text(Arena *arena, const ScheduleRecord *record) {
  return arena_format(arena, "{%s,\"sum\":\"%s\"}", members(arena, record), record_sum(arena, record));
}

static const char BEGINNING[] = "{\"format\":\"rnncc-schedule\"";
enum { BEGINNING_LENGTH = sizeof BEGINNING - 1 };

bool record_begins(const char *text, size_t length) {
  return memcmp(text, BEGINNING, length < BEGINNING_LENGTH ? length : BEGINNING_LENGTH) == 0;
}

/* Did a writer end within a line? Then the next record starts on a new line. */
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

/* The caller holds the lock. A line that was written in part is removed. */
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

/* ---- before anything is measured ---- */

typedef struct Contents {
  int records, others; /* lines */
} Contents;

static void count_line(void *argument, int line, const ScheduleRecord *record, const char *wrong) {
  Contents *contents = argument;
  (void)line, (void)wrong;
  if (record)
    contents->records++;
  else
    contents->others++;
}

/* Or with the beginning of one, which a writer that was killed may have left. */
static bool begins_as_a_record(const char *path) {
  char start[BEGINNING_LENGTH];
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t length = file >= 0 ? read(file, start, sizeof start) : -1;
  if (file >= 0) close(file);
  return length >= 0 && record_begins(start, (size_t)length);
}

/* Another kind of file, such as a model, would be damaged. */
static void check_contents(Arena *arena, const char *path) {
  Contents contents = {0};
  records_each_line(arena, path, count_line, &contents);
  if (contents.others > 0 && contents.records == 0 && !begins_as_a_record(path))
    fatal_at(LOCATION_FILE(path), EXIT_INVALID, "cannot append records: it holds something else");
}

void records_check_output(Arena *arena, const char *path) {
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    fatal_at(LOCATION_FILE(path), EXIT_INVALID, "cannot append records: expected a regular file");
  int folder_length = (int)(file_last_part(path) - path);
  const char *folder = folder_length ? arena_format(arena, "%.*s", folder_length, path) : ".";
  bool exists = access(path, F_OK) == 0;
  bool never = !exists && errno != ENOENT; /* such as a name that is too long */
  if (never || access(exists ? path : folder, W_OK) != 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot append records: %s", strerror(errno));
  if (exists) check_contents(arena, path);
}

/* ---- a record ---- */

/* Others hold the lock while they write a record, or merge. A longer wait can be interrupted. */
static bool lock(int file) {
  while (flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) return false;
    interrupt_check();
  }
  return true;
}

/* Whether the path still leads to that file, which another may have replaced. */
static bool is_at(int file, const char *path) {
  struct stat one, other;
  return fstat(file, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Open for writing: on NFS an exclusive lock needs that. */
int records_lock(const char *path) {
  int file;
  while ((file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)) >= 0 && lock(file) && !is_at(file, path)) close(file);
  return file;
}

/* -1, with errno: it cannot be. */
static int open_to_append(const char *path) {
  while (true) {
    int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0) return file;
    bool locked = lock(file);
    if (locked && is_at(file, path)) return file;
    int error = errno;
    close(file);
    errno = error;
    if (!locked) return -1;
  }
}

void records_append(Arena *arena, const char *path, const ScheduleRecord *record) {
  int file = open_to_append(path);
  bool good = file >= 0 && append_line(arena, file, arena_format(arena, "%s\n", record_text(arena, record)));
  int error = errno;
  if (file >= 0 && close(file) != 0 && good) good = false, error = errno;
  if (!good) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot append a record: %s", strerror(error));
}
