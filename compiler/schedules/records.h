/* SPDX-License-Identifier: MIT */
/*
 * Schedules that were measured, as JSON, one record a line. A record is used where its whole key is what is being
 * compiled: the workload, the target, the machine's caches and number of cores, and the kernels' sources, by their
 * hash. Files are appended to under a lock, so that many may write one, and are merged by joining them: of two records
 * of one key the later counts.
 *
 * A record says what was measured to be best, or how a trial ended: only the former is used.
 */
#ifndef RNNCC_RECORDS_H
#define RNNCC_RECORDS_H

#include "machine/machine.h"
#include "support/arena.h"
#include <stdbool.h>

typedef struct RecordKey {
  const char *family;   /* "recurrent": who reads `schedule` */
  const char *workload; /* in the family's words */
  const char *target;   /* "x86-64-v4" */
  const char *kernels;  /* kernels_hash() */
  int64_t cores, l1_bytes, l2_bytes, l3_bytes;
} RecordKey;

/* A file of records; what was told of it is not told again. */
typedef struct RecordFile {
  const char *path;
  bool told_stale, told_refused;
} RecordFile;

typedef struct ScheduleRecord {
  RecordKey key;
  const char *schedule;
  const char *status; /* "best", which NULL means too; else of a trial: "ok", "crashed", "hung" or "wrong" */
  double median_us;   /* of a run of the model that it was measured in, or of the kernel alone, as the family says */
  RecordFile *file;   /* NULL: made by the tuner itself */
} ScheduleRecord;

typedef struct ScheduleRecords {
  int count, capacity;
  ScheduleRecord *list;
  const char *digest; /* hex digits over the best of them; NULL: not made */
} ScheduleRecords;

/* fatal_at() if the file cannot be read. Lines that are no records are left out, with one warning. */
ScheduleRecords *records_read(Arena *arena, const char *path);
/* The same, after those that are there. */
void records_read_more(Arena *arena, ScheduleRecords *records, const char *path);
/* What each line of a file says: called with a record, or with NULL and why the line is none. Blank lines say nothing.
 */
void records_each_line(Arena *arena, const char *path,
                       void (*visit)(void *argument, int line, const ScheduleRecord *record, const char *wrong),
                       void *argument);
/* In front of nothing else: a record of the same key loses against it. */
void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record);

bool record_is_of(const ScheduleRecord *record, const RecordKey *key);
bool record_is_best(const ScheduleRecord *record);
/* Both keys are of the same work on the same machine, whatever the version of the kernels. */
bool same_work(const RecordKey *a, const RecordKey *b);

/* The best of the key; NULL if there is none, or no records. */
const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key);
/* The same, and a warning, one a file, if there would be one but for the version of the kernels. */
const ScheduleRecord *records_use(const ScheduleRecords *records, const RecordKey *key);
/* A warning, one a file, that the record is not used. */
void records_refuse(const ScheduleRecord *record, const char *why);

/* fatal_at() if records_append() is sure to fail, or the file holds something else: to be told before hours of
 * measuring, not after. */
void records_check_output(Arena *arena, const char *path);
/* The file may be absent. fatal_at() if it cannot be written; then it holds what it held. */
void records_append(Arena *arena, const char *path, const ScheduleRecord *record);

/* A line of a file, without its end. */
const char *record_text(Arena *arena, const ScheduleRecord *record);
/* Hex digits by which a line shows that it is as it was written. */
const char *record_sum(Arena *arena, const ScheduleRecord *record);

/* Hex digits over sources in templates/, whose names end with NULL. */
const char *kernels_hash(Arena *arena, const char *const *sources);

#endif
