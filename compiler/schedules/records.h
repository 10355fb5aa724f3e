/* SPDX-License-Identifier: MIT */
/*
 * Schedules that were measured, as JSON, one record a line. A record is used where its whole key is what is being
 * compiled: the workload, the target, the machine's caches and number of cores, and the kernels' sources, by their
 * hash. Files are appended to under a lock, so that many may write one, and are merged by joining them: of two records
 * of one key the later counts.
 */
#ifndef RNNCC_RECORDS_H
#define RNNCC_RECORDS_H

#include "machine.h"
#include "support/arena.h"

typedef struct RecordKey {
  const char *family;   /* "recurrent": who reads `schedule` */
  const char *workload; /* in the family's words */
  const char *target;   /* "x86-64-v4" */
  const char *kernels;  /* kernels_hash() */
  int64_t cores, l1_bytes, l2_bytes, l3_bytes;
} RecordKey;

typedef struct ScheduleRecord {
  RecordKey key;
  const char *schedule;
  double median_us; /* of a run of the model that it was measured in */
} ScheduleRecord;

typedef struct ScheduleRecords {
  const char *file; /* as given; NULL: made by the tuner itself */
  int count, capacity;
  ScheduleRecord *list;
} ScheduleRecords;

/* fatal_at() if the file cannot be read. Lines that are no records are left out, with one warning. */
ScheduleRecords *records_read(Arena *arena, const char *path);
/* In front of nothing else: a record of the same key loses against it. */
void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record);
/* NULL if there is none, or no records. */
const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key);
/* fatal_at() if records_append() is sure to fail: to be told before hours of measuring, not after. */
void records_check_output(Arena *arena, const char *path);
/* The file may be absent. fatal_at() if it cannot be written; then it holds what it held. */
void records_append(Arena *arena, const char *path, const ScheduleRecord *record);

/* Hex digits over sources in templates/, whose names end with NULL. */
const char *kernels_hash(Arena *arena, const char *const *sources);

#endif
