/* SPDX-License-Identifier: MIT */
#include "template/edits.h"

#include <stdlib.h>

#include "support/list.h"
#include "support/text.h"

void add_edit(Edits *edits, Range range, const char *replacement) {
  *LIST_ADD(edits->arena, edits->list, edits->count, edits->capacity) = (Edit){range, replacement};
}

/* Of edits at one place, what is inserted comes first, then the longest. */
static int by_place(const void *left, const void *right) {
  const Edit *a = left, *b = right;
  if (a->range.begin != b->range.begin) return a->range.begin < b->range.begin ? -1 : 1;
  bool a_inserts = a->range.end == a->range.begin, b_inserts = b->range.end == b->range.begin;
  if (a_inserts != b_inserts) return a_inserts ? -1 : 1;
  return a->range.end > b->range.end ? -1 : a->range.end < b->range.end;
}

char *apply_edits(Edits *edits, const char *text, size_t length) {
  if (edits->count) qsort(edits->list, (size_t)edits->count, sizeof *edits->list, by_place);
  Text out = text_new(edits->arena);
  unsigned position = 0;
  for (int i = 0; i < edits->count; i++) {
    Edit *edit = &edits->list[i];
    if (edit->range.begin < position) continue;
    text_bytes(&out, text + position, edit->range.begin - position);
    text_add(&out, "%s", edit->replacement);
    position = edit->range.end;
  }
  text_bytes(&out, text + position, length - position);
  return out.data;
}

bool in_edits(const Edits *edits, unsigned offset) {
  for (int i = 0; i < edits->count; i++)
    if (edits->list[i].range.begin <= offset && offset < edits->list[i].range.end) return true;
  return false;
}
