/* SPDX-License-Identifier: MIT */
/* Temporaries: a list of paths that stop() removes, unless they were committed or removed before. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/files.h"

enum { MAX_TEMPORARIES = 16, OPEN_FOLDERS = 8 };

static char *temporaries[MAX_TEMPORARIES]; /* malloc'd, for an arena may be gone at stop(); NULL: free entry */
static bool removed_at_stop;

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS); }

static void remove_all(void *unused) {
  (void)unused;
  removed_at_stop = false;
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    if (!temporaries[i]) continue;
    remove_tree(temporaries[i]);
    free(temporaries[i]);
    temporaries[i] = NULL;
  }
}

static void remember(const char *path) {
  if (!removed_at_stop) at_stop(remove_all, NULL);
  removed_at_stop = true;
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    if (temporaries[i]) continue;
    temporaries[i] = strdup(path);
    if (temporaries[i]) return;
    remove_tree(path);
    out_of_memory();
  }
  bug("more than %d temporaries", MAX_TEMPORARIES);
}

static void forget(const char *path) {
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    if (!temporaries[i] || strcmp(temporaries[i], path) != 0) continue;
    free(temporaries[i]);
    temporaries[i] = NULL;
  }
}

char *temporary_beside(Arena *arena, const char *path) {
  struct stat status;
  /* A rename would put a file in the place of /dev/null. */
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    fatal_at(LOCATION_FILE(path), EXIT_INVALID, "cannot write: it exists and is no regular file");
  /* A short name of its own: the target's may be as long as names can be. */
  char *temporary = arena_format(arena, "%.*s.rnncc-XXXXXX", (int)(file_last_part(path) - path), path);
  int file = mkostemp(temporary, 0);
  if (file < 0) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write in its folder: %s", strerror(errno));
  close(file);
  remember(temporary);
  return temporary;
}

void temporary_commit(const char *temporary, const char *path) {
  mode_t mask = umask(0);
  umask(mask);
  struct stat status;
  mode_t executable = stat(temporary, &status) == 0 ? status.st_mode & 0111 : 0;
  mode_t mode = executable ? 0777 : 0666;
  if (chmod(temporary, mode & ~mask) != 0 || rename(temporary, path) != 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write: %s", strerror(errno));
  forget(temporary);
}

char *temporary_directory(Arena *arena) {
  const char *parent = getenv("TMPDIR");
  char *path = arena_format(arena, "%s/rnncc-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!mkdtemp(path)) fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "cannot create %s: %s", path, strerror(errno));
  remember(path);
  return path;
}

void temporaries_disown(void) {
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    free(temporaries[i]);
    temporaries[i] = NULL;
  }
}

void temporary_remove(const char *path) {
  remove_tree(path);
  forget(path);
}
