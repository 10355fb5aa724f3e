/* SPDX-License-Identifier: MIT */
/* The files of models, each read once: several targets, or networks of a bundle, make their graphs of one file. */
#ifndef RNNCC_MODEL_FILES_H
#define RNNCC_MODEL_FILES_H

#include "sha256.h"
#include "support/files.h"

typedef struct ModelFile {
  const char *base, *name; /* as file_read_beside() has them; base NULL: the path itself */
  FileBytes bytes;         /* empty, where `message` is what is left of it */
  const void *message;     /* of an ONNX file; NULL: of another one */
  Sha256 hash;             /* of an ONNX file's bytes, not ended */
} ModelFile;

typedef struct ModelFiles {
  Arena *arena; /* that all are read into; outlives the graphs */
  int count;
  ModelFile **list;
} ModelFiles;

/* The one that was read before; NULL: none was. `files` may be NULL, and is then empty. */
const ModelFile *model_file_find(const ModelFiles *files, const char *base, const char *name);
void model_file_add(ModelFiles *files, const ModelFile *file);

/* file_read() and file_read_beside() of a file that no other call has read; else what that one read. `files` NULL: it
 * is read into `arena`, and not kept. */
FileBytes model_file_read(ModelFiles *files, Arena *arena, const char *path, size_t limit);
FileBytes model_file_read_beside(ModelFiles *files, Arena *arena, const char *base, const char *name, size_t limit,
                                 Location where);

#endif
