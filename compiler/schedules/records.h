/* SPDX-License-Identifier: MIT */
/*
 * Measured schedules as JSON, one record a line. A record is used if its whole key matches (the workload, the target,
 * the machine's caches and number of cores), and if the kernels of its schedule have not changed, by their fingerprint
 * (template/fingerprint.h). Files are appended to under a lock, so many may write one. To merge files, join them: of
 * equal keys the later record wins.
 *
 * A record is the best schedule, or the result of a trial: only the former is used.
 */
#ifndef RNNCC_RECORDS_H
#define RNNCC_RECORDS_H

#include "ir/config.h"
#include "machine/machine.h"
#include "support/arena.h"
#include <stdbool.h>

typedef struct RecordKey {
  const char *family;   /* "recurrent": the family of `schedule` */
  const char *workload; /* in the family's words */
  const char *target;   /* "x86-64-v4" */
  int64_t cores, l1_bytes, l2_bytes, l3_bytes;
} RecordKey;

/* For the target and machine of the config. */
RecordKey record_key(const Config *config, const char *family, const char *workload);

/* A file of records, and the warnings already given for it. */
typedef struct RecordFile {
  const char *path;
  bool told_stale, told_refused;
} RecordFile;

typedef struct ScheduleRecord {
  RecordKey key;
  const char *kernels; /* kernels_fingerprint(); NULL: any, in records written by hand */
  const char *schedule;
  const char *status; /* "best" or NULL; of a trial: "ok", "crashed", "hung" or "wrong" */
  double median_us;   /* of a run of the model, or of the kernel, depending on the family */
  RecordFile *file;   /* NULL: made by the tuner */
} ScheduleRecord;

/* A file that is read when a record is first looked for: few models need one. */
typedef struct LateRecords {
  Arena *arena;
  const char *path;
  const struct ScheduleRecords *read; /* NULL: not yet */
} LateRecords;

typedef struct ScheduleRecords {
  int count, capacity;
  ScheduleRecord *list;
  LateRecords *late; /* in place of the list; NULL: the list is all */
} ScheduleRecords;

/* fatal_at() if the file cannot be read. Skips lines that are not records, with one warning; not of a last one that
 * someone may be writing. */
ScheduleRecords *records_read(Arena *arena, const char *path);
/* Appends the records of another file. */
void records_read_more(Arena *arena, ScheduleRecords *records, const char *path);
/* Calls `visit` for each line that is not blank, with its record, or with NULL and the reason why it is not one.
 * Returns the number of a last line that begins as a record does and has no closing brace; 0: there is none. */
int records_each_line(Arena *arena, const char *path,
                      void (*visit)(void *argument, int line, const ScheduleRecord *record, const char *wrong),
                      void *argument);
/* Appends the record; of equal keys the later one wins. */
void records_add(Arena *arena, ScheduleRecords *records, ScheduleRecord record);

bool record_is_of(const ScheduleRecord *record, const RecordKey *key);
bool record_is_best(const ScheduleRecord *record);
/* Is it of these kernels? */
bool record_has_kernels(const ScheduleRecord *record, const char *kernels);

/* kernels_fingerprint() of the layer's kernels with the record's schedule. NULL, with the reason in *why, if the
 * schedule does not fit the layer. */
typedef const char *RecordKernels(void *layer, const ScheduleRecord *record, const char **why);

/* The last best record of the key with current kernels; NULL: none. */
const ScheduleRecord *records_find(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                   void *layer);
/* The same; warns of a record whose kernels or schedule do not fit, once a file for each reason. */
const ScheduleRecord *records_use(const ScheduleRecords *records, const RecordKey *key, RecordKernels *kernels,
                                  void *layer);

/* fatal_at() if records_append() would fail, or the file has something else than records: before hours of measuring. */
void records_check_output(Arena *arena, const char *path);
/* The file may be absent. fatal_at() if it cannot be written; then it is unchanged. */
void records_append(Arena *arena, const char *path, const ScheduleRecord *record);
/* Makes records_append() wait until this descriptor is closed: who replaces the file until then loses no record. -1:
 * there is no such file. Where the file system has no locks nobody waits. */
int records_lock(const char *path);

/* A line of a file, without its end. */
const char *record_text(Arena *arena, const ScheduleRecord *record);
/* Whether it is a line of a record, or as much of its beginning as there is. */
bool record_begins(const char *text, size_t length);
/* Hex digits by which a line shows that it is as it was written. */
const char *record_sum(Arena *arena, const ScheduleRecord *record);

#endif
