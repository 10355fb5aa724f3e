/* SPDX-License-Identifier: MIT */
/* `rnncc schedules`: what people do with files of schedule records. */
#ifndef RNNCC_MANAGE_H
#define RNNCC_MANAGE_H

#include "support/arena.h"

typedef struct FileList {
  char *const *paths;
  int count;
} FileList;

/* Writes the best record of each work on each machine to `output`, in an order that depends on nothing else. Of several
 * the later one is taken: in a later file, in a later line. Trials are left out. */
void schedules_merge(Arena *arena, FileList files, const char *output);

/* error_at() for each line that is no record, or says a schedule, family or target that there is none of; and a line to
 * stdout of what each file holds. */
void schedules_check(Arena *arena, FileList files);

/* A table of the records, trials too. */
void schedules_show(Arena *arena, FileList files);

#endif
