/* SPDX-License-Identifier: MIT */
/* All notes of a kind, and which of them describe one network for several targets. A file may be made to have very
 * many: the time grows no faster than n log n of its size. */
#ifndef RNNRUN_NOTES_H
#define RNNRUN_NOTES_H

#include "elf_file.h"

typedef struct Notes {
  int count;
  const char **texts; /* in the file, in its order */
  int *first, *next;  /* of each note's network: its first note, and the one after this; -1: there is none */
} Notes;

Notes notes_of(const ElfFile *file, ElfNote kind);
void notes_free(Notes *notes);

typedef struct Line {
  const char *text;
  size_t length;
} Line;

/* The lines of a text, sorted. Each ends with a newline. */
typedef struct Lines {
  size_t count;
  Line *list;
} Lines;

Lines lines_of(const char *text);
void lines_free(Lines *lines);
bool lines_have(const Lines *lines, const char *text, size_t length);

#endif
