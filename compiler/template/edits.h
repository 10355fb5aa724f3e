/* SPDX-License-Identifier: MIT */
/* Replacements of ranges of a text, applied at once. */
#ifndef RNNCC_TEMPLATE_EDITS_H
#define RNNCC_TEMPLATE_EDITS_H

#include <stdbool.h>
#include <stddef.h>

#include "template/template_ast.h"

typedef struct Edit {
  Range range;
  const char *replacement;
} Edit;

typedef struct Edits {
  Arena *arena;
  int count, capacity;
  Edit *list;
} Edits;

void add_edit(Edits *edits, Range range, const char *replacement);
/* The text with the edits. Skips edits inside an earlier edit's range. */
char *apply_edits(Edits *edits, const char *text, size_t length);
/* Is the place in the range of an edit? */
bool in_edits(const Edits *edits, unsigned offset);

#endif
