/* SPDX-License-Identifier: MIT */
#include "notes.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

static int compare_lines(const Line *a, const Line *b) {
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  return memcmp(a->text, b->text, a->length);
}

/* ---- notes ---- */

/* A note by its network, whom the first line names, then by its place. */
typedef struct Entry {
  Line network;
  int index;
} Entry;

static int by_network(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int order = compare_lines(&x->network, &y->network);
  return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void add_note(Notes *notes, const char *text) {
  bool full = (notes->count & (notes->count - 1)) == 0; /* 0, or a power of 2 */
  size_t room = notes->count ? 2 * (size_t)notes->count : 1;
  if (full) notes->texts = reallocarray(notes->texts, room, sizeof *notes->texts);
  if (!notes->texts) fail(EXIT_RESOURCE, "out of memory");
  notes->texts[notes->count++] = text;
}

static void link_networks(Notes *notes) {
  size_t count = (size_t)notes->count;
  Entry *sorted = allocate(sizeof *sorted * count);
  notes->first = allocate(sizeof *notes->first * count);
  notes->next = allocate(sizeof *notes->next * count);
  for (int i = 0; i < notes->count; i++) sorted[i] = (Entry){{notes->texts[i], strcspn(notes->texts[i], "\n")}, i};
  qsort(sorted, count, sizeof *sorted, by_network);
  for (int i = 0; i < notes->count; i++) {
    bool begins = i == 0 || compare_lines(&sorted[i].network, &sorted[i - 1].network) != 0;
    notes->first[sorted[i].index] = begins ? sorted[i].index : notes->first[sorted[i - 1].index];
    notes->next[sorted[i].index] = -1;
    if (!begins) notes->next[sorted[i - 1].index] = sorted[i].index;
  }
  free(sorted);
}

Notes notes_of(const ElfFile *file, ElfNote kind) {
  Notes notes = {0};
  ElfPlace place = {0};
  for (const char *text; (text = elf_note(file, kind, &place));) add_note(&notes, text);
  link_networks(&notes);
  return notes;
}

void notes_free(Notes *notes) {
  free(notes->texts);
  free(notes->first);
  free(notes->next);
  *notes = (Notes){0};
}

/* ---- lines ---- */

static int by_text(const void *a, const void *b) { return compare_lines(a, b); }

Lines lines_of(const char *text) {
  Lines lines = {0};
  for (const char *end = text; (end = strchr(end, '\n')); end++) lines.count++;
  lines.list = allocate(sizeof *lines.list * lines.count);
  for (size_t i = 0; i < lines.count; i++) {
    size_t length = strcspn(text, "\n");
    lines.list[i] = (Line){text, length};
    text += length + 1;
  }
  qsort(lines.list, lines.count, sizeof *lines.list, by_text);
  return lines;
}

void lines_free(Lines *lines) {
  free(lines->list);
  *lines = (Lines){0};
}

bool lines_have(const Lines *lines, const char *text, size_t length) {
  Line wanted = {text, length};
  return lines->count && bsearch(&wanted, lines->list, lines->count, sizeof wanted, by_text) != NULL;
}
