/* SPDX-License-Identifier: MIT */
/* Whether two paths lead to one file, however they are spelled, and also where there is none yet. For rnncc and rnnrun,
 * which refuse an output that would replace what they read. */
#ifndef SAME_FILE_H
#define SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct FileId {
  dev_t device;
  ino_t inode; /* 0: there is no such file or folder yet, or something else is there */
} FileId;

/* Of a regular file. */
FileId file_id(const struct stat *status);
bool same_id(FileId a, FileId b);

typedef struct FilePlace {
  const char *path; /* must stay */
  FileId file, folder;
  const char *below; /* of the path, what is in `folder`, the nearest that is there: "m.so", or "new/m.so" */
} FilePlace;

FilePlace file_place(const char *path);
bool same_place(const FilePlace *a, const FilePlace *b);

#endif
