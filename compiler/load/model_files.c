/* SPDX-License-Identifier: MIT */
#include "load/model_files.h"

#include <string.h>

#include "support/list.h"

static bool same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

const ModelFile *model_file_find(const ModelFiles *files, const char *base, const char *name) {
  for (int i = 0; files && i < files->count; i++)
    if (same(files->list[i]->base, base) && same(files->list[i]->name, name)) return files->list[i];
  return NULL;
}

void model_file_add(ModelFiles *files, const ModelFile *file) {
  ModelFile *kept = ARENA_NEW(files->arena, ModelFile);
  *kept = *file;
  *LIST_APPEND(files->arena, files->list, files->count) = kept;
}

static FileBytes keep(ModelFiles *files, const char *base, const char *name, FileBytes bytes) {
  if (files) model_file_add(files, &(ModelFile){.base = base, .name = name, .bytes = bytes});
  return bytes;
}

FileBytes model_file_read(ModelFiles *files, Arena *arena, const char *path, size_t limit) {
  const ModelFile *found = model_file_find(files, NULL, path);
  return found ? found->bytes : keep(files, NULL, path, file_read(arena, path, limit, LOCATION_FILE(path)));
}

FileBytes model_file_read_beside(ModelFiles *files, Arena *arena, const char *base, const char *name, size_t limit,
                                 Location where) {
  const ModelFile *found = model_file_find(files, base, name);
  return found ? found->bytes : keep(files, base, name, file_read_beside(arena, base, name, limit, where));
}
