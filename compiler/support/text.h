/* SPDX-License-Identifier: MIT */
/* A growing text in an arena; always NUL-terminated. Emitters and dumps write into one, never straight to a file. */
#ifndef RNNCC_TEXT_H
#define RNNCC_TEXT_H

#include "support/arena.h"
#include <stdarg.h>

typedef struct Text {
  Arena *arena;
  char *data;
  size_t length, capacity;
} Text;

Text text_new(Arena *arena);
void text_add(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_va(Text *text, const char *format, va_list arguments);
void text_bytes(Text *text, const char *data, size_t length);
/* The bytes as a C string literal with its quotes: trigraph-safe, everything but printable ASCII as octal escapes. */
void text_quoted(Text *text, const char *string);
/* A name from a model for the terminal, which control characters must not reach. NULL is "". */
const char *printable(Arena *arena, const char *name);
/* Shortest text that reads back as the same float: a C hex float literal with suffix f; infinities and NaN by name. */
void text_float(Text *text, float value);

#endif
