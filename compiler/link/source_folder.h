/* SPDX-License-Identifier: MIT */
/* The folder of --emit=c. What goes into it is listed first, so that it is checked before anything is written. */
#ifndef RNNCC_SOURCE_FOLDER_H
#define RNNCC_SOURCE_FOLDER_H

#include "support/files.h"
#include "support/folder.h"

typedef struct SourceFile {
  const char *path;
  const FileBytes *parts;
  int n_parts;
  const char *begins; /* how each such file begins that rnncc wrote; NULL: of bytes */
  bool tells;         /* nobody else's file begins so */
} SourceFile;

typedef struct SourceFolder {
  Arena *arena;
  const char *path;
  SourceFile *files;
  int n_files, files_capacity;
  FileNames folders; /* within it, which files are in: "simd" */
} SourceFolder;

void source_folder_add(SourceFolder *folder, const char *name, FileBytes bytes, const char *begins);
/* A source that other programs may have a copy of: it is replaced where it begins as this one, beside files that tell.
 */
void source_folder_add_copy(SourceFolder *folder, const char *name, FileBytes bytes);
void source_folder_add_parts(SourceFolder *folder, const char *name, const FileBytes *parts, int count);
void source_folder_add_folder(SourceFolder *folder, const char *name);

/* Ends with EXIT_INVALID if a file would replace another output, what was read, or what rnncc did not write. */
void source_folder_check(const SourceFolder *folder);
/* In the order in which they were added. */
void source_folder_write(const SourceFolder *folder);

#endif
