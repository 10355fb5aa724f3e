/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded: folder number $FAIL_LISTING that the program itself lists, from 1 on, cannot be opened, as if no
 * file descriptor were left. With $FAIL_READING set it can be opened, but not read beyond its first entry. The folder
 * of temporary files is not counted.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "called_by.h"

typedef DIR *OpenFolder(const char *path);
typedef struct dirent64 *ReadEntry(DIR *folder);

static int opened, entries;
static DIR *failing;

static int fails(const char *path, const void *caller) {
  const char *wanted = getenv("FAIL_LISTING"), *temporaries = getenv("TMPDIR");
  if (!wanted || !called_by_program(caller) || (temporaries && strcmp(path, temporaries) == 0)) return 0;
  return ++opened == atoi(wanted);
}

DIR *opendir(const char *path) {
  OpenFolder *next = (OpenFolder *)dlsym(RTLD_NEXT, "opendir");
  if (!fails(path, __builtin_return_address(0))) return next(path);
  errno = EMFILE;
  return getenv("FAIL_READING") ? failing = next(path) : NULL;
}

struct dirent64 *readdir64(DIR *folder) {
  ReadEntry *next = (ReadEntry *)dlsym(RTLD_NEXT, "readdir64");
  if (!failing || folder != failing || ++entries == 1) return next(folder);
  errno = EIO;
  return NULL;
}
