/* SPDX-License-Identifier: MIT */
/* A folder that stands for / where the runtime reads /proc and /sys. Include it after cmocka.h. */
#ifndef TESTS_SYSTEM_FILES_H
#define TESTS_SYSTEM_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static inline int make_root(void **state) {
  (void)state;
  strcpy(root, "/tmp/rnncc_system_XXXXXX");
  return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", root);
  return system(command);
}

/* Writes a file below the root, with the folders to it. */
static inline void put(const char *path, const char *text) {
  char full[256];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(full, 0700);
    *slash = '/';
  }
  int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

#endif
