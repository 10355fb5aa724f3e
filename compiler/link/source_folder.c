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
static bool begins_so(const SourceFile *file) {
  enum { MOST = 64 };
  char start[MOST];
  ssize_t length = (ssize_t)strlen(file->begins);
  int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return false;
  ssize_t got = read(descriptor, start, MOST);
  close(descriptor);
  return length <= got && !memcmp(start, file->begins, (size_t)length);
}

/* Did rnncc fill it before? */
static bool was_filled(const SourceFolder *folder) {
  for (int i = 0; i < folder->n_files; i++)
    if (folder->files[i].begins && begins_so(&folder->files[i])) return true;
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
    if (!(file->begins ? begins_so(file) : filled))
      fatal_at(
          LOCATION_FILE(file->path), EXIT_INVALID,
          "rnncc did not write this file, and --emit=c would replace it; expected a folder without it, or one that "
          "--emit=c filled before");
  }
}

void source_folder_write(const SourceFolder *folder) {
  folder_make(folder->path);
  for (int i = 0; i < folder->folders.count; i++) folder_make(folder->folders.names[i]);
  for (int i = 0; i < folder->n_files; i++)
    file_write_parts(folder->arena, folder->files[i].path, folder->files[i].parts, folder->files[i].n_parts);
}
