/* SPDX-License-Identifier: MIT */
#include "template/parts.h"

#include <string.h>

#include "support/data_directory.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/text.h"

enum { MAX_TEMPLATE = 1 << 20 };

static const char *read_text(Arena *arena, const char *path) {
  return (const char *)file_read(arena, path, MAX_TEMPLATE, LOCATION_FILE(path)).data;
}

/* Without its licence, which is its first line. */
static const char *part_text(Arena *arena, const char *name, size_t length) {
  const char *path = data_file(arena, arena_format(arena, "templates/parts/%.*s", (int)length, name));
  const char *text = read_text(arena, path), *line = strchr(text, '\n');
  return line ? line + 1 : text;
}

const char *template_text(Arena *arena, const char *path) {
  static const char include[] = "#include \"parts/";
  Text whole = text_new(arena);
  const char *at = read_text(arena, path);
  for (const char *line; (line = strstr(at, include)); at = line) {
    const char *name = line + sizeof include - 1;
    size_t length = strcspn(name, "\"\n");
    text_bytes(&whole, at, (size_t)(line - at));
    text_add(&whole, "%s", part_text(arena, name, length));
    line += strcspn(line, "\n");
  }
  text_add(&whole, "%s", at);
  return whole.data;
}
