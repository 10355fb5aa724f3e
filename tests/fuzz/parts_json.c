/* SPDX-License-Identifier: MIT */
/* JSON models as parts. Numbers with a fraction or an exponent are floats; escapes in texts are left as they are. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum { MOST_DEPTH = 60, MOST_DIGITS = 40 };

typedef struct Reader {
  Arena *arena;
  const char *at, *end;
} Reader;

static void skip_space(Reader *reader) {
  while (reader->at < reader->end && isspace((unsigned char)*reader->at)) reader->at++;
}

static bool take(Reader *reader, char wanted) {
  skip_space(reader);
  if (reader->at == reader->end || *reader->at != wanted) return false;
  reader->at++;
  return true;
}

/* FNV-1a. */
static uint64_t role_of(const char *key, bool element) {
  uint64_t hash = element ? 1 : 0;
  for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
  return hash;
}

/* What is between quotes. */
static bool read_quoted(Reader *reader, FileBytes *bytes) {
  if (!take(reader, '"')) return false;
  const char *begin = reader->at;
  for (; reader->at < reader->end && *reader->at != '"'; reader->at++)
    if (*reader->at == '\\') reader->at++;
  if (reader->at >= reader->end) return false;
  *bytes = (FileBytes){(const uint8_t *)begin, (size_t)(reader->at - begin)};
  reader->at++;
  return true;
}

static Part *read_value(Reader *reader, const char *key, bool element, int depth);

static Part *read_list(Reader *reader, const char *key, uint64_t role, int depth) {
  Part *list = part_new(reader->arena, PART_LIST, role);
  if (take(reader, ']')) return list;
  do {
    Part *part = read_value(reader, key, true, depth + 1);
    if (!part) return NULL;
    part_insert(reader->arena, list, list->n_parts, part);
  } while (take(reader, ','));
  return take(reader, ']') ? list : NULL;
}

static Part *read_object(Reader *reader, uint64_t role, int depth) {
  Part *object = part_new(reader->arena, PART_GROUP, role);
  if (take(reader, '}')) return object;
  do {
    FileBytes name;
    skip_space(reader);
    if (!read_quoted(reader, &name) || !take(reader, ':')) return NULL;
    const char *key = arena_format(reader->arena, "%.*s", (int)name.size, (const char *)name.data);
    Part *part = read_value(reader, key, false, depth + 1);
    if (!part) return NULL;
    part->key = key;
    part_insert(reader->arena, object, object->n_parts, part);
  } while (take(reader, ','));
  return take(reader, '}') ? object : NULL;
}

static Part *read_word(Reader *reader, uint64_t role) {
  char word[MOST_DIGITS + 1];
  size_t length = 0;
  while (reader->at < reader->end && length < MOST_DIGITS &&
         (isalnum((unsigned char)*reader->at) || strchr("+-.", *reader->at)))
    word[length++] = *reader->at++;
  word[length] = 0;
  if (!length) return NULL;
  if (isalpha((unsigned char)word[0])) {
    Part *literal = part_new(reader->arena, PART_LITERAL, role);
    literal->bytes = (FileBytes){arena_copy(reader->arena, word, length), length};
    return literal;
  }
  bool whole = !strpbrk(word, ".eE");
  Part *number = part_new(reader->arena, whole ? PART_NUMBER : PART_FLOAT, role);
  number->number = strtoll(word, NULL, 10);
  number->real = strtod(word, NULL);
  return number;
}

static Part *read_value(Reader *reader, const char *key, bool element, int depth) {
  uint64_t role = role_of(key, element);
  if (depth > MOST_DEPTH) return NULL;
  if (take(reader, '{')) return read_object(reader, role, depth);
  if (take(reader, '[')) return read_list(reader, key, role, depth);
  skip_space(reader);
  if (reader->at == reader->end || *reader->at != '"') return read_word(reader, role);
  Part *text = part_new(reader->arena, PART_TEXT, role);
  return read_quoted(reader, &text->bytes) ? text : NULL;
}

Part *parts_of_json(Arena *arena, FileBytes file) {
  Reader reader = {arena, (const char *)file.data, (const char *)file.data + file.size};
  return read_value(&reader, "", false, 0);
}

void json_of_parts(Text *text, const Part *root) {
  char open = root->kind == PART_LIST ? '[' : '{', close = root->kind == PART_LIST ? ']' : '}';
  switch (root->kind) {
  case PART_NUMBER:
    text_add(text, "%lld", (long long)root->number);
    return;
  case PART_FLOAT:
    text_add(text, "%.17g", root->real);
    return;
  case PART_TEXT:
  case PART_BYTES:
    text_add(text, "\"");
    text_bytes(text, (const char *)root->bytes.data, root->bytes.size);
    text_add(text, "\"");
    return;
  case PART_LITERAL:
    text_bytes(text, (const char *)root->bytes.data, root->bytes.size);
    return;
  case PART_LIST:
  case PART_GROUP:
    text_bytes(text, &open, 1);
    for (int i = 0; i < root->n_parts; i++) {
      const char *key = root->parts[i]->key;
      text_add(text, i ? "," : "");
      if (root->kind == PART_GROUP) text_add(text, "\"%s\":", key ? key : "");
      json_of_parts(text, root->parts[i]);
    }
    text_bytes(text, &close, 1);
    return;
  }
}
