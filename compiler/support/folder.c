/* SPDX-License-Identifier: MIT */
#include "support/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/diagnostics.h"
#include "support/list.h"

void folder_make(const char *path) {
  struct stat status;
  if (mkdir(path, 0777) == 0) return;
  if (errno != EEXIST || stat(path, &status) != 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot create the folder: %s", strerror(errno));
  if (!S_ISDIR(status.st_mode)) fatal_at(LOCATION_FILE(path), EXIT_INVALID, "expected a folder, or none");
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* NULL at the end of the listing. */
static const struct dirent *next_entry(DIR *listing, const char *folder) {
  errno = 0;
  const struct dirent *entry = readdir(listing);
  if (!entry && errno) fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "cannot list: %s", strerror(errno));
  return entry;
}

/* Does the name end in one of these: ".c.h"? */
static bool ends_in(const char *name, const char *endings) {
  const char *dot = strrchr(name, '.'), *found = dot ? strstr(endings, dot) : NULL;
  return found && (found[strlen(dot)] == '.' || !found[strlen(dot)]);
}

FileNames folder_list(Arena *arena, const char *folder, const char *endings) {
  FileNames found = {0};
  DIR *listing = opendir(folder);
  if (!listing)
    fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "cannot list: %s%s", strerror(errno),
             errno == ENOENT ? " (is rnncc installed whole?)" : "");
  for (const struct dirent *entry; (entry = next_entry(listing, folder));)
    if (ends_in(entry->d_name, endings))
      *LIST_ADD(arena, found.names, found.count, found.capacity) = arena_string(arena, entry->d_name);
  closedir(listing);
  if (found.count) qsort(found.names, (size_t)found.count, sizeof *found.names, compare_names);
  return found;
}
