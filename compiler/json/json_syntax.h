/* SPDX-License-Identifier: MIT */
/* Between json.c and json_syntax.c: the scan of the text. */
#ifndef RNNCC_JSON_SYNTAX_H
#define RNNCC_JSON_SYNTAX_H

#include "json/json.h"

/* One value, in the order of their first bytes: the tree's preorder. */
typedef struct JsonPlace {
  size_t offset;      /* of its first byte in the text */
  struct cJSON *item; /* set with the tree */
  int parent;         /* index of the container's place, -1 for the root */
  int position;       /* in the container */
} JsonPlace;

/* Checks that the text is one JSON value and returns the places of all values; fatal_at() else. */
JsonPlace *json_scan(Arena *arena, const char *file, const char *text, size_t length, size_t base, int *count);

/* Bytes of the number that starts at `text`. */
size_t json_number_length(const char *text, size_t left);

/* A number's own text, NUL-terminated. */
void json_copy_number(Json number, char text[JSON_MAX_NUMBER + 1]);

#endif
