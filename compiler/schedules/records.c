/* SPDX-License-Identifier: MIT */
#include "schedules/records.h"

#include <string.h>

#include "support/data_directory.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/sha256.h"

enum { MAX_SOURCE = 1 << 22, HASH_DIGITS = 16 };

void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record) {
  if (records->count == records->capacity) {
    records->capacity = records->capacity ? 2 * records->capacity : 16;
    ScheduleRecord *longer = ARENA_ARRAY(arena, ScheduleRecord, records->capacity);
    if (records->count) memcpy(longer, records->list, (size_t)records->count * sizeof *longer);
    records->list = longer;
  }
  records->list[records->count++] = record;
}

bool same_work(const RecordKey *a, const RecordKey *b) {
  return a->cores == b->cores && a->l1_bytes == b->l1_bytes && a->l2_bytes == b->l2_bytes &&
         a->l3_bytes == b->l3_bytes && !strcmp(a->family, b->family) && !strcmp(a->workload, b->workload) &&
         !strcmp(a->target, b->target);
}

bool record_is_of(const ScheduleRecord *record, const RecordKey *key) {
  return same_work(&record->key, key) && !strcmp(record->key.kernels, key->kernels);
}

bool record_is_best(const ScheduleRecord *record) { return !record->status || !strcmp(record->status, "best"); }

const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key) {
  for (int i = records ? records->count - 1 : -1; i >= 0; i--)
    if (record_is_best(&records->list[i]) && record_is_of(&records->list[i], key)) return &records->list[i];
  return NULL;
}

/* ---- warnings ---- */

/* Those of the family and target in the file that are of other kernels than the key. */
static int stale_in(const ScheduleRecords *records, const RecordFile *file, const RecordKey *key) {
  int count = 0;
  for (int i = 0; i < records->count; i++) {
    const RecordKey *other = &records->list[i].key;
    count += records->list[i].file == file && record_is_best(&records->list[i]) &&
             !strcmp(other->family, key->family) && !strcmp(other->target, key->target) &&
             strcmp(other->kernels, key->kernels) != 0;
  }
  return count;
}

static void tell_stale(const ScheduleRecords *records, const RecordKey *key) {
  for (int i = 0; i < records->count; i++) {
    RecordFile *file = records->list[i].file;
    if (!file || file->told_stale || !record_is_best(&records->list[i]) || !same_work(&records->list[i].key, key))
      continue;
    int count = stale_in(records, file, key);
    file->told_stale = true;
    warn_at(LOCATION_FILE(file->path),
            "%d %s of other versions of the kernels and not used, %s among them; `rnncc tune` measures anew", count,
            count == 1 ? "record is" : "records are", key->workload);
  }
}

const ScheduleRecord *records_use(const ScheduleRecords *records, const RecordKey *key) {
  const ScheduleRecord *found = records_find(records, key);
  if (!found && records) tell_stale(records, key);
  return found;
}

void records_refuse(const ScheduleRecord *record, const char *why) {
  if (!record->file || record->file->told_refused) return;
  record->file->told_refused = true;
  warn_at(LOCATION_FILE(record->file->path), "the schedule \"%s\" of %s is not used: %s", record->schedule,
          record->key.workload, why);
}

/* ---- the kernels' version ---- */

const char *kernels_hash(Arena *arena, const char *const *sources) {
  Sha256 hash = sha256_new();
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  for (; *sources; sources++) {
    const char *path = arena_format(arena, "%s/templates/%s", data_directory(arena), *sources);
    FileBytes bytes = file_read(arena, path, MAX_SOURCE, LOCATION_FILE(path));
    sha256_add(&hash, bytes.data, bytes.size);
  }
  sha256_end(&hash, digest);
  sha256_hex(digest, hex);
  return arena_format(arena, "%.*s", HASH_DIGITS, hex);
}
