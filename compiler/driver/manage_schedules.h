/* SPDX-License-Identifier: MIT */
/* `rnncc schedules`: merges, checks and shows files of schedule records. */
#ifndef RNNCC_MANAGE_H
#define RNNCC_MANAGE_H

#include "support/arena.h"

typedef struct FileList {
  char *const *paths;
  int count;
} FileList;

/* Writes the record of each work on each machine to `output`, sorted. Of several the last one in the files is taken.
 * Trials are left out. */
void schedules_merge(Arena *arena, FileList files, const char *output);

/* error_at() for each line that is not a record, or has an unknown schedule, family or target. Prints a summary of each
 * file to stdout. */
void schedules_check(Arena *arena, FileList files);

/* A table of the records, trials too. */
void schedules_show(Arena *arena, FileList files);

#endif
