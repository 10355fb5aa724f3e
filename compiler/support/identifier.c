/* SPDX-License-Identifier: MIT */
#include "support/identifier.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whatever the locale. */
static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

bool is_identifier(const char *name) {
  if (!name || !*name || is_digit(*name)) return false;
  while (is_word(*name)) name++;
  return !*name;
}

const char *identifier_of(Arena *arena, const char *name) {
  bool whole = *name && !is_digit(*name);
  char *made = arena_format(arena, "%s%s", whole ? "" : *name ? "model_" : "model", name);
  for (char *c = made; *c; c++)
    if (!is_word(*c)) *c = '_';
  return made;
}
