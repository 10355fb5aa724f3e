/* SPDX-License-Identifier: MIT */
#include "schedules/records.h"

#include <string.h>

#include "machine/targets.h"
#include "support/diagnostics.h"
#include "support/list.h"

void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record) {
  *LIST_ADD(arena, records->list, records->count, records->capacity) = record;
}

RecordKey record_key(const Config *config, const char *family, const char *workload) {
  const Machine *m = config->machine;
  return (RecordKey){family, workload, config->target->with_glibc, m->cores, m->l1_bytes, m->l2_bytes, m->l3_bytes};
}

bool record_is_of(const ScheduleRecord *record, const RecordKey *b) {
  const RecordKey *a = &record->key;
  return a->cores == b->cores && a->l1_bytes == b->l1_bytes && a->l2_bytes == b->l2_bytes &&
         a->l3_bytes == b->l3_bytes && !strcmp(a->family, b->family) && !strcmp(a->workload, b->workload) &&
         !strcmp(a->target, b->target);
}

bool record_is_best(const ScheduleRecord *record) { return !record->status || !strcmp(record->status, "best"); }

bool record_has_kernels(const ScheduleRecord *record, const char *kernels) {
  return !record->kernels || !strcmp(record->kernels, kernels);
}

/* ---- the one to use ---- */

static void tell_stale(const ScheduleRecord *record) {
  if (!record->file || record->file->told_stale) return;
  record->file->told_stale = true;
  warn_at(LOCATION_FILE(record->file->path),
          "the record of %s is of another version of its kernels and is not used, like others of this kind; "
          "`rnncc tune` measures again",
          record->key.workload);
}

static void tell_refused(const ScheduleRecord *record, const char *why) {
  if (!record->file || record->file->told_refused) return;
  record->file->told_refused = true;
  warn_at(LOCATION_FILE(record->file->path), "the schedule \"%s\" of %s is not used: %s", record->schedule,
          record->key.workload, why);
}

typedef struct Search {
  const RecordKey *key;
  RecordKernels *kernels;
  void *layer;
  const ScheduleRecord *passed; /* the last one with the key, which is not used */
  const char *why;              /* NULL: because of its kernels */
} Search;

static const ScheduleRecords *read_late(LateRecords *late) {
  if (!late->read) late->read = records_read(late->arena, late->path);
  return late->read;
}

static const ScheduleRecord *search(const ScheduleRecords *records, Search *s) {
  if (records && records->late) records = read_late(records->late);
  for (int i = records ? records->count - 1 : -1; i >= 0; i--) {
    const ScheduleRecord *record = &records->list[i];
    if (!record_is_best(record) || !record_is_of(record, s->key)) continue;
    const char *why = NULL, *kernels = s->kernels(s->layer, record, &why);
    if (kernels && record_has_kernels(record, kernels)) return record;
    if (!s->passed) s->passed = record, s->why = kernels ? NULL : why;
  }
  return NULL;
}

const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                   void *layer) {
  return search(records, &(Search){.key = key, .kernels = kernels, .layer = layer});
}

const ScheduleRecord *records_use(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                  void *layer) {
  Search s = {.key = key, .kernels = kernels, .layer = layer};
  const ScheduleRecord *found = search(records, &s);
  if (found || !s.passed) return found;
  if (s.why)
    tell_refused(s.passed, s.why);
  else
    tell_stale(s.passed);
  return NULL;
}
