/* SPDX-License-Identifier: MIT */
/*
 * The format of ar(5), as linkers on Linux read it: a member for the index, named "/", then the object. The index is a
 * count, the place of each symbol's member, and the symbols' names; its numbers are big-endian. A member begins at an
 * even offset, and is so padded. Times, owners and paths are left out: the same object gives the same bytes.
 */
#include "link/archive.h"

#include <string.h>

#include "support/text.h"

static const char magic[] = "!<arch>\n";

enum { HEADER_BYTES = 60 };

static size_t padded(size_t bytes) { return bytes + bytes % 2; }

static void add_header(Text *text, const char *name, size_t bytes) {
  text_add(text, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644, bytes);
}

static void add_bytes(Text *text, const void *data, size_t bytes) {
  text_bytes(text, data, bytes);
  if (bytes % 2) text_bytes(text, "\n", 1);
}

static void put_number(char *at, size_t value) {
  for (int i = 0; i < 4; i++) at[i] = (char)(value >> (24 - 8 * i));
}

static void add_index(Text *text, const char *symbol) {
  enum { NUMBERS_BYTES = 8 };
  size_t bytes = NUMBERS_BYTES + strlen(symbol) + 1;
  char *index = arena_alloc(text->arena, bytes);
  put_number(index, 1);
  put_number(index + 4, strlen(magic) + HEADER_BYTES + padded(bytes));
  memcpy(index + NUMBERS_BYTES, symbol, strlen(symbol) + 1);
  add_header(text, "/", bytes);
  add_bytes(text, index, bytes);
}

void archive_write(Arena *arena, const char *path, FileBytes object, const char *symbol) {
  Text text = text_new(arena);
  text_add(&text, "%s", magic);
  add_index(&text, symbol);
  add_header(&text, "model.o/", object.size);
  add_bytes(&text, object.data, object.size);
  file_write(arena, path, text.data, text.length);
}
