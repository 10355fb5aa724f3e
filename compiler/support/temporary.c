/* SPDX-License-Identifier: MIT */
/*
 * Temporaries: a list of paths that stop() removes, unless they were committed or removed before.
 *
 * A killed process removes nothing. So a process keeps its temporaries locked while it lives, and the next process that
 * makes one in the same folder removes those that are not locked. The machine's name is part of their names: on a
 * shared file system one machine may not see the locks of another.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/files.h"

enum { MAX_TEMPORARIES = 16, OPEN_FOLDERS = 8 };

typedef struct Temporary {
  char *path; /* malloc'd, for an arena may be gone at stop(); NULL: free entry */
  int lock;   /* closed, it is given back; -1: none, on file systems that have no locks */
} Temporary;

static Temporary temporaries[MAX_TEMPORARIES];
static bool removed_at_stop;

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS); }

static void free_entry(Temporary *temporary) {
  free(temporary->path);
  if (temporary->lock >= 0) close(temporary->lock);
  *temporary = (Temporary){.path = NULL, .lock = -1};
}

static void remove_all(void *unused) {
  (void)unused;
  removed_at_stop = false;
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    if (!temporaries[i].path) continue;
    remove_tree(temporaries[i].path);
    free_entry(&temporaries[i]);
  }
}

static void remember(const char *path, int lock) {
  if (!removed_at_stop) at_stop(remove_all, NULL);
  removed_at_stop = true;
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    if (temporaries[i].path) continue;
    temporaries[i] = (Temporary){.path = strdup(path), .lock = lock};
    if (temporaries[i].path) return;
    remove_tree(path);
    out_of_memory();
  }
  bug("more than %d temporaries", MAX_TEMPORARIES);
}

static void forget(const char *path) {
  for (int i = 0; i < MAX_TEMPORARIES; i++)
    if (temporaries[i].path && strcmp(temporaries[i].path, path) == 0) free_entry(&temporaries[i]);
}

/* ---- those of killed processes ---- */

static char *temporary_prefix(Arena *arena, const char *begin) {
  char machine[64] = "";
  gethostname(machine, sizeof machine - 1);
  return arena_format(arena, "%s.%s.", begin, machine);
}

/* Neither waits for a pipe of that name nor follows a link. */
static int open_temporary(const char *path) { return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); }

static void remove_unless_locked(const char *path) {
  struct stat status;
  int lock = open_temporary(path);
  if (lock < 0) return;
  if (fstat(lock, &status) == 0 && status.st_uid == geteuid() && flock(lock, LOCK_EX | LOCK_NB) == 0) remove_tree(path);
  close(lock);
}

static bool is_left_over(const char *name, const char *prefix) {
  enum { RANDOM_PART = 6 };
  size_t length = strlen(prefix);
  return strncmp(name, prefix, length) == 0 && strlen(name) == length + RANDOM_PART;
}

/* Removes what killed processes left in a folder. */
static void remove_left_over(Arena *arena, const char *parent, const char *prefix) {
  DIR *folder = opendir(parent);
  if (!folder) return;
  for (const struct dirent *entry; (entry = readdir(folder));)
    if (is_left_over(entry->d_name, prefix)) remove_unless_locked(arena_format(arena, "%s/%s", parent, entry->d_name));
  closedir(folder);
}

/* False if another process took it for left over before it was locked. Some file systems have no locks. */
static bool lock_temporary(const char *path, int *lock) {
  *lock = open_temporary(path);
  while (*lock >= 0 && flock(*lock, LOCK_EX) != 0 && errno == EINTR) continue;
  if (access(path, F_OK) == 0) return true;
  if (*lock >= 0) close(*lock);
  return false;
}

/* ---- files ---- */

char *temporary_beside(Arena *arena, const char *path) {
  struct stat status;
  bool exists = stat(path, &status) == 0;
  /* A rename would put a file in the place of /dev/null. */
  if (exists && !S_ISREG(status.st_mode))
    fatal_at(LOCATION_FILE(path), EXIT_INVALID, "cannot write: expected a regular file, or none");
  /* The temporary's name is short. */
  if (!exists && errno == ENAMETOOLONG)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write: %s", strerror(errno));
  /* A link stays; its target is replaced. The link may be /dev/stdout. */
  char *real = realpath(path, NULL);
  const char *target = real ? real : path;
  char *parent = arena_format(arena, "%.*s", (int)(file_last_part(target) - target), target);
  free(real);
  /* A short name of its own: the target's may be as long as names can be. */
  const char *prefix = temporary_prefix(arena, ".rnncc");
  remove_left_over(arena, *parent ? parent : ".", prefix);
  char *temporary;
  int lock;
  do {
    temporary = arena_format(arena, "%s%sXXXXXX", parent, prefix);
    int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write in its folder: %s", strerror(errno));
    close(file);
  } while (!lock_temporary(temporary, &lock));
  remember(temporary, lock);
  return temporary;
}

void temporary_commit(const char *temporary, const char *path) {
  mode_t mask = umask(0);
  umask(mask);
  struct stat status;
  mode_t executable = stat(temporary, &status) == 0 ? status.st_mode & 0111 : 0;
  mode_t mode = executable ? 0777 : 0666;
  char *real = realpath(path, NULL);
  bool good = chmod(temporary, mode & ~mask) == 0 && rename(temporary, real ? real : path) == 0;
  int error = errno;
  free(real);
  if (!good) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write: %s", strerror(error));
  forget(temporary);
}

/* ---- folders ---- */

char *temporary_directory(Arena *arena) {
  const char *parent = getenv("TMPDIR"), *prefix = temporary_prefix(arena, "rnncc");
  if (!parent || !*parent) parent = "/tmp";
  remove_left_over(arena, parent, prefix);
  char *path;
  int lock;
  do {
    path = arena_format(arena, "%s/%sXXXXXX", parent, prefix);
    if (!mkdtemp(path)) fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "cannot create %s: %s", path, strerror(errno));
  } while (!lock_temporary(path, &lock));
  remember(path, lock);
  return path;
}

/* Locks stay until the child ends too: it may yet write there. */
void temporaries_disown(void) {
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    free(temporaries[i].path);
    temporaries[i].path = NULL;
  }
}

void temporary_remove(const char *path) {
  remove_tree(path);
  forget(path);
}

void file_try_output(Arena *arena, const char *path) { temporary_remove(temporary_beside(arena, path)); }
