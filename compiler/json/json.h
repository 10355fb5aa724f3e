/* SPDX-License-Identifier: MIT */
/*
 * The one strict JSON reader (RFC 8259) for everything that is JSON: models, safetensors headers, schedule records.
 *
 * cJSON builds the tree, but accepts much that is not JSON and forgets where values stood. So the text is checked first
 * (json_syntax.c), and that scan remembers each value's offset: messages name byte and path (`nodes[3].inputs`), and
 * numbers are read from their own text, so that integers are exact up to 64 bits and told from fractions.
 */
#ifndef RNNCC_JSON_H
#define RNNCC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/diagnostics.h"

typedef enum JsonKind {
  JSON_ABSENT,
  JSON_NULL,
  JSON_BOOL,
  JSON_NUMBER,
  JSON_STRING,
  JSON_ARRAY,
  JSON_OBJECT,
} JsonKind;

enum { JSON_MAX_DEPTH = 64, JSON_MAX_NUMBER = 63 }; /* open brackets; characters of a number: cJSON's buffer */

typedef struct JsonDocument JsonDocument;
struct cJSON;

/* A value of a document, as long as its arena lives. A zeroed one is absent. */
typedef struct Json {
  const JsonDocument *document;
  struct cJSON *item;
} Json;

/* fatal_at() for what is not JSON, and for a key given twice. `text` must outlive the document. `base` is its offset in
 * `file`, for messages. */
Json json_parse(Arena *arena, const char *file, const char *text, size_t length, size_t base);

JsonKind json_kind(Json value);
Arena *json_arena(Json value);
Location json_where(Json value); /* its path is made in the document's arena */

/* Walking an array or object is linear: json_first() and json_next(), absent past the end. */
Json json_first(Json container);
Json json_next(Json value);
int json_count(Json container);
const char *json_key(Json value);               /* of a member of an object */
Json json_member(Json object, const char *key); /* absent if there is none, or `object` is no object */
const char *json_text(Json string);             /* bug() if it is no string */
bool json_is_integer(Json value);               /* a number without fraction and exponent */

/* error_at() and false if the value is of another kind or out of range. */
bool json_expect(Json value, JsonKind kind);
bool json_get_string(Json value, const char **out);
bool json_get_bool(Json value, bool *out);
bool json_get_int(Json value, int64_t min, int64_t max, int64_t *out);
bool json_get_uint(Json value, uint64_t *out);
bool json_get_double(Json value, double *out);
bool json_get_float(Json value, float *out); /* rounded once, from the text */

/* What an object may hold. Keys that start with x- are free everywhere. */
typedef struct JsonField {
  const char *key; /* NULL ends a list */
  JsonKind kind;   /* JSON_ABSENT: any */
  bool required;
} JsonField;
/* error_at() for each unknown key, missing key and member of another kind. */
bool json_check(Json object, const JsonField *fields);

/* A name for a message: in full up to some 80 bytes, else its beginning and length. */
const char *short_name(Arena *arena, const char *name);

#endif
