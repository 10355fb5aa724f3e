/* SPDX-License-Identifier: MIT */
/* The folder of --emit=c. What goes into it is listed first, so that it is checked before anything is written. */
#ifndef RNNCC_SOURCE_FOLDER_H
#define RNNCC_SOURCE_FOLDER_H

#include "support/files.h"
#include "support/folder.h"

/* How all texts of the folder begin, and by chance no other file. */
#define SOURCE_BEGINS "/* Generated: rnncc "
#define SCRIPT_BEGINS "# Generated: rnncc "

typedef struct SourceFile {
  const char *path;
  const FileBytes *parts;
  int n_parts;
  const char *begins; /* one of these; NULL: of bytes */
} SourceFile;

typedef struct SourceFolder {
  Arena *arena;
  const char *path;
  SourceFile *files;
  int n_files, files_capacity;
  FileNames folders; /* within it, which files are in: "simd" */
} SourceFolder;

/* A text that begins so. */
void source_folder_add(SourceFolder *folder, const char *name, FileBytes bytes, const char *begins);
/* A source of rnncc's own, behind a line that begins so. */
void source_folder_add_copy(SourceFolder *folder, const char *name, FileBytes bytes);
/* Bytes. In a folder where no text begins so, they are not rnncc's. */
void source_folder_add_parts(SourceFolder *folder, const char *name, const FileBytes *parts, int count);
void source_folder_add_folder(SourceFolder *folder, const char *name);

/* Ends with EXIT_INVALID if a file would replace another output, what was read, or what rnncc did not write. */
void source_folder_check(const SourceFolder *folder);
/* In the order in which they were added. */
void source_folder_write(const SourceFolder *folder);

#endif
