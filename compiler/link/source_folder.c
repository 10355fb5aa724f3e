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

void source_folder_add(SourceFolder *folder, const char *name, FileBytes bytes, const char *begins) {
  SourceFile *file = add_file(folder, name);
  FileBytes *part = ARENA_NEW(folder->arena, FileBytes);
  *part = bytes;
  file->parts = part;
  file->n_parts = 1;
  file->begins = begins;
}

void source_folder_add_copy(SourceFolder *folder, const char *name, FileBytes bytes) {
  static const char line[] = SOURCE_BEGINS "--emit=c, whose next run replaces this file. */\n";
  SourceFile *file = add_file(folder, name);
  FileBytes *parts = ARENA_ARRAY(folder->arena, FileBytes, 2);
  parts[0] = (FileBytes){(const uint8_t *)line, sizeof line - 1};
  parts[1] = bytes;
  file->parts = parts;
  file->n_parts = 2;
  file->begins = SOURCE_BEGINS;
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
    if (folder->files[i].begins && begins_so(folder, &folder->files[i])) return true;
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
    if (!(file->begins ? begins_so(folder, file) : filled))
      fatal_at(LOCATION_FILE(file->path), EXIT_INVALID,
               "--emit=c would replace this file, which is not as rnncc writes it; remove it, or name another folder "
               "(what an older rnncc wrote: remove the whole folder)");
  }
}

void source_folder_write(const SourceFolder *folder) {
  folder_make(folder->path);
  for (int i = 0; i < folder->folders.count; i++) folder_make(folder->folders.names[i]);
  for (int i = 0; i < folder->n_files; i++)
    file_write_parts(folder->arena, folder->files[i].path, folder->files[i].parts, folder->files[i].n_parts);
}
