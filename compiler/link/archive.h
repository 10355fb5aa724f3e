/* SPDX-License-Identifier: MIT */
/* A static library of one object. */
#ifndef RNNCC_ARCHIVE_H
#define RNNCC_ARCHIVE_H

#include "support/files.h"

/* Writes the library. Linkers take `object` out of it for whoever needs `symbol`, which it defines. */
void archive_write(Arena *arena, const char *path, FileBytes object, const char *symbol);

#endif
