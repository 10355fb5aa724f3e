/* SPDX-License-Identifier: MIT */
/* Zip files, as wheels of Python are: what is in them is stored as it is, as weights hardly become smaller. */
#ifndef RNNCC_ZIP_H
#define RNNCC_ZIP_H

#include "support/files.h"
#include "support/text.h"

typedef struct Zip {
  Arena *arena;
  int count, n_parts, capacity;
  FileBytes *parts; /* of each file, its header and its bytes */
  Text directory;
  size_t offset; /* of the next file */
} Zip;

Zip zip_new(Arena *arena);
/* `data` must last until the file is written. The same files give the same bytes: times are left out. */
void zip_add(Zip *zip, const char *name, FileBytes data);
/* fatal_at(path) if it would have 4 GiB, which is as much as this form of zip can have. */
void zip_write(Zip *zip, const char *path);

#endif
