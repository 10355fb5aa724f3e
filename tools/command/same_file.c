/* SPDX-License-Identifier: MIT */
#include "same_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

FileId file_id(const struct stat *status) {
  return S_ISREG(status->st_mode) ? (FileId){status->st_dev, status->st_ino} : (FileId){0};
}

bool same_id(FileId a, FileId b) { return a.inode && a.inode == b.inode && a.device == b.device; }

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static FileId folder_of(const char *path) {
  char folder[PATH_MAX];
  struct stat status;
  int length = snprintf(folder, sizeof folder, "%.*s.", (int)(last_part(path) - path), path);
  if (length >= (int)sizeof folder || stat(folder, &status) != 0) return (FileId){0};
  return (FileId){status.st_dev, status.st_ino};
}

FilePlace file_place(const char *path) {
  struct stat status;
  FilePlace place = {.path = path, .folder = folder_of(path)};
  if (stat(path, &status) == 0) place.file = file_id(&status);
  return place;
}

bool same_place(const FilePlace *a, const FilePlace *b) {
  if (!strcmp(a->path, b->path) || same_id(a->file, b->file)) return true;
  return same_id(a->folder, b->folder) && !strcmp(last_part(a->path), last_part(b->path));
}
