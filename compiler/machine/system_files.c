/* SPDX-License-Identifier: MIT */
#include "machine/system_files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void system_word(const char *path, char word[SYSTEM_WORD]) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? 0 : read(file, word, SYSTEM_WORD - 1);
  if (file >= 0) close(file);
  word[got > 0 ? got : 0] = 0;
  word[strcspn(word, " \n")] = 0;
}
