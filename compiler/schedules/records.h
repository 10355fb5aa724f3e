/* SPDX-License-Identifier: MIT */
/*
 * Schedules that were measured, as JSON, one record a line. A record is used where its whole key is what is being
 * compiled: the workload, the target, the machine's caches and number of cores; and where the kernels that its schedule
 * makes of the workload are still those that were measured, by their fingerprint (template/fingerprint.h). Files are
 * appended to under a lock, so that many may write one, and are merged by joining them: of two records of one key the
 * later counts.
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
  int64_t cores, l1_bytes, l2_bytes, l3_bytes;
} RecordKey;

/* A file of records; what was told of it is not told again. */
typedef struct RecordFile {
  const char *path;
  bool told_stale, told_refused;
} RecordFile;

typedef struct ScheduleRecord {
  RecordKey key;
  const char *kernels; /* kernels_fingerprint(); NULL: it was written by hand, for whatever version */
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
/* Is it of these kernels? */
bool record_has_kernels(const ScheduleRecord *record, const char *kernels);

/* The kernels that the record's schedule makes of the layer, by kernels_fingerprint(). NULL where the schedule is none
 * of the layer's: then *why says what is wrong with it. */
typedef const char *RecordKernels(void *layer, const ScheduleRecord *record, const char **why);

/* The last that is best of the key and still of the same kernels; NULL if there is none, or no records. */
const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                   void *layer);
/* The same; what would be used but for its kernels or its schedule is told, one warning of each a file. */
const ScheduleRecord *records_use(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                  void *layer);

/* fatal_at() if records_append() is sure to fail, or the file holds something else: to be told before hours of
 * measuring, not after. */
void records_check_output(Arena *arena, const char *path);
/* The file may be absent. fatal_at() if it cannot be written; then it holds what it held. */
void records_append(Arena *arena, const char *path, const ScheduleRecord *record);

/* A line of a file, without its end. */
const char *record_text(Arena *arena, const ScheduleRecord *record);
/* Hex digits by which a line shows that it is as it was written. */
const char *record_sum(Arena *arena, const ScheduleRecord *record);

#endif
