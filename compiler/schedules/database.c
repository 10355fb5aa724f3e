/* SPDX-License-Identifier: MIT */
#include "schedules/database.h"

#include <string.h>
#include <unistd.h>

#include "support/data_directory.h"
#include "support/sha256.h"

static const char *digest_of(Arena *arena, const ScheduleRecords *records) {
  enum { DIGITS = 16 };
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

ScheduleRecords *database_open(Arena *arena, const Target *target, const char *given) {
  if (given && !strcmp(given, "none")) return NULL;
  const char *own = arena_format(arena, "%s/schedules/%s.jsonl", data_directory(arena), target->name);
  ScheduleRecords *records = ARENA_NEW(arena, ScheduleRecords);
  if (access(own, R_OK) == 0) records_read_more(arena, records, own);
  if (given) records_read_more(arena, records, given);
  if (records->count) records->digest = digest_of(arena, records);
  return records;
}
