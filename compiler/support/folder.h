/* SPDX-License-Identifier: MIT */
/* What is in a folder. */
#ifndef RNNCC_FOLDER_H
#define RNNCC_FOLDER_H

#include "support/arena.h"

typedef struct FileNames {
  int count, capacity;
  const char **names;
} FileNames;

/* Makes it, if there is none. */
void folder_make(const char *path);

/* The files whose names end in one of `endings`: ".c.h". Sorted, for the same bytes on every machine. fatal_at(folder)
 * if it cannot be listed. */
FileNames folder_list(Arena *arena, const char *folder, const char *endings);

#endif
