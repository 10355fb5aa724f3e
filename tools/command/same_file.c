/* SPDX-License-Identifier: MIT */
#include "same_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

FileId file_id(const struct stat *status) {
  return S_ISREG(status->st_mode) ? (FileId){status->st_dev, status->st_ino} : (FileId){0};
}

bool same_id(FileId a, FileId b) { return a.inode && a.inode == b.inode && a.device == b.device; }

static bool find_folder(const char *path, const char *end, FileId *id) {
  char folder[PATH_MAX];
  struct stat status;
  int length = snprintf(folder, sizeof folder, "%.*s.", (int)(end - path), path);
  if (length >= (int)sizeof folder || stat(folder, &status) != 0) return false;
  *id = (FileId){status.st_dev, status.st_ino};
  return true;
}

/* Where the last part of path[0..end) begins. */
static const char *last_part(const char *path, const char *end) {
  while (end > path && end[-1] == '/') end--;
  while (end > path && end[-1] != '/') end--;
  return end;
}

FilePlace file_place(const char *path) {
  struct stat status;
  FilePlace place = {.path = path, .below = path + strlen(path)};
  do place.below = last_part(path, place.below);
  while (!find_folder(path, place.below, &place.folder) && place.below > path);
  if (stat(path, &status) == 0) place.file = file_id(&status);
  return place;
}

/* The next part of the path, and its length: not "", not ".". */
static const char *next_part(const char *path, size_t *length) {
  for (;; path += *length) {
    path += strspn(path, "/");
    *length = strcspn(path, "/");
    if (*length != 1 || *path != '.') return path;
  }
}

static bool same_parts(const char *a, const char *b) {
  size_t length, other;
  do {
    a = next_part(a, &length);
    b = next_part(b, &other);
    if (length != other || memcmp(a, b, length) != 0) return false;
    a += length;
    b += length;
  } while (length);
  return true;
}

bool same_place(const FilePlace *a, const FilePlace *b) {
  if (!strcmp(a->path, b->path) || same_id(a->file, b->file)) return true;
  return same_id(a->folder, b->folder) && same_parts(a->below, b->below);
}
