/* SPDX-License-Identifier: MIT */
#include "support/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

Text text_new(Arena *arena) {
  Text text = {.arena = arena, .capacity = 256};
  text.data = arena_alloc(arena, text.capacity);
  return text;
}

static void reserve(Text *text, size_t more) {
  size_t needed = text->length + more + 1;
  if (needed <= text->capacity) return;
  size_t capacity = text->capacity * 2 > needed ? text->capacity * 2 : needed;
  char *data = arena_alloc(text->arena, capacity);
  memcpy(data, text->data, text->length + 1);
  text->data = data;
  text->capacity = capacity;
}

void text_bytes(Text *text, const char *data, size_t length) {
  reserve(text, length);
  memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

void text_add_va(Text *text, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  reserve(text, (size_t)length);
  vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
  text->length += (size_t)length;
}

void text_add(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text_add_va(text, format, arguments);
  va_end(arguments);
}

/* Octal escapes end after three digits, so what follows cannot join them; `?` is escaped against trigraphs. */
void text_quoted(Text *text, const char *string) {
  text_bytes(text, "\"", 1);
  for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
    if (*c == '"' || *c == '\\')
      text_add(text, "\\%c", *c);
    else if (*c < 0x20 || *c >= 0x7f || *c == '?')
      text_add(text, "\\%03o", *c);
    else
      text_bytes(text, (const char *)c, 1);
  }
  text_bytes(text, "\"", 1);
}

void text_float(Text *text, float value) {
  if (isnan(value))
    text_add(text, "__builtin_nanf(\"\")");
  else if (isinf(value))
    text_add(text, "%s__builtin_inff()", value < 0 ? "-" : "");
  else
    text_add(text, "%af", (double)value);
}

const char *printable(Arena *arena, const char *name) {
  char *copy = arena_string(arena, name ? name : "");
  for (char *c = copy; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  return copy;
}
