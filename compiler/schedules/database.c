/* SPDX-License-Identifier: MIT */
#include "schedules/database.h"

#include <string.h>
#include <unistd.h>

#include "sha256.h"
#include "support/data_directory.h"

const char *database_digest(Arena *arena, const ScheduleRecords *records) {
  enum { DIGITS = 16 };
  if (records && records->late) records = records->late->read;
  if (!records || !records->count) return NULL;
  Sha256 hash = sha256_new();
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  for (int i = 0; i < records->count; i++) {
    if (!record_is_best(&records->list[i])) continue;
    const char *text = record_text(arena, &records->list[i]);
    sha256_add(&hash, text, strlen(text));
  }
  sha256_end(&hash, digest);
  sha256_hex(digest, hex);
  return arena_format(arena, "%.*s", DIGITS, hex);
}

static LateRecords *late_records(Arena *arena, const char *path) {
  LateRecords *late = ARENA_NEW(arena, LateRecords);
  *late = (LateRecords){.arena = arena, .path = path};
  return late;
}

ScheduleRecords *database_open(Arena *arena, const Target *target, const char *given) {
  if (given && !strcmp(given, "none")) return NULL;
  const char *own = arena_format(arena, "%s/schedules/%s.jsonl", data_directory(arena), target->with_glibc);
  bool is_there = access(own, R_OK) == 0;
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  if (is_there && !given) records->late = late_records(arena, own);
  if (is_there && given) records_read_more(arena, records, own);
  if (given) records_read_more(arena, records, given);
  return records;
}
