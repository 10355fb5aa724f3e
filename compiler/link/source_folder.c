/* SPDX-License-Identifier: MIT */
#include "link/source_folder.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/list.h"

static SourceFile *add_file(SourceFolder *folder, const char *name) {
  SourceFile *file = LIST_ADD(folder->arena, folder->files, folder->n_files, folder->files_capacity);
  *file = (SourceFile){.path = arena_format(folder->arena, "%s/%s", folder->path, name)};
  return file;
}

static SourceFile *add_text(SourceFolder *folder, const char *name, FileBytes bytes) {
  SourceFile *file = add_file(folder, name);
  FileBytes *part = ARENA_NEW(folder->arena, FileBytes);
  *part = bytes;
  file->parts = part;
  file->n_parts = 1;
  return file;
}

void source_folder_add(SourceFolder *folder, const char *name, FileBytes bytes, const char *begins) {
  SourceFile *file = add_text(folder, name, bytes);
  file->begins = begins;
  file->tells = true;
}

void source_folder_add_copy(SourceFolder *folder, const char *name, FileBytes bytes) {
  const char *text = (const char *)bytes.data;
  SourceFile *file = add_text(folder, name, bytes);
  file->begins = arena_format(folder->arena, "%.*s", (int)strcspn(text, "\n"), text);
}

void source_folder_add_parts(SourceFolder *folder, const char *name, const FileBytes *parts, int count) {
  SourceFile *file = add_file(folder, name);
  file->parts = parts;
  file->n_parts = count;
}

void source_folder_add_folder(SourceFolder *folder, const char *name) {
  FileNames *folders = &folder->folders;
  *LIST_ADD(folder->arena, folders->names, folders->count, folders->capacity) =
      arena_format(folder->arena, "%s/%s", folder->path, name);
}

/* ---- whose files are there ---- */

/* False, too, if it cannot be read, or is no file. */
static bool begins_so(const SourceFolder *folder, const SourceFile *file) {
  size_t length = strlen(file->begins);
  char *start = arena_alloc(folder->arena, length);
  int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return false;
  ssize_t got = read(descriptor, start, length);
  close(descriptor);
  return got == (ssize_t)length && !memcmp(start, file->begins, length);
}

/* Did rnncc fill it before? */
static bool was_filled(const SourceFolder *folder) {
  for (int i = 0; i < folder->n_files; i++)
    if (folder->files[i].tells && begins_so(folder, &folder->files[i])) return true;
  return false;
}

void source_folder_check(const SourceFolder *folder) {
  bool filled = was_filled(folder);
  for (int i = 0; i < folder->folders.count; i++) file_is_output(folder->arena, folder->folders.names[i]);
  for (int i = 0; i < folder->n_files; i++) {
    const SourceFile *file = &folder->files[i];
    struct stat status;
    file_is_output(folder->arena, file->path);
    if (lstat(file->path, &status) != 0) continue;
    if (!(file->begins ? begins_so(folder, file) : true) || !(file->tells || filled))
      fatal_at(LOCATION_FILE(file->path), EXIT_INVALID,
               "--emit=c would replace this file, which is not as rnncc writes it; expected a folder without it, or "
               "one that "
               "--emit=c filled before");
  }
}

void source_folder_write(const SourceFolder *folder) {
  folder_make(folder->path);
  for (int i = 0; i < folder->folders.count; i++) folder_make(folder->folders.names[i]);
  for (int i = 0; i < folder->n_files; i++)
    file_write_parts(folder->arena, folder->files[i].path, folder->files[i].parts, folder->files[i].n_parts);
}
