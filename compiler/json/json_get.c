/* SPDX-License-Identifier: MIT */
/* Typed access to values, with a message for each that is not what it should be. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/closest.h"
#include "support/utf8.h"
#include "json/json_syntax.h"

enum { SHORT_NAME = 80 };

static const char *kind_name(JsonKind kind) {
  static const char *const NAMES[] = {"nothing",  "null",     "true or false", "a number",
                                      "a string", "an array", "an object"};
  return NAMES[kind];
}

bool json_expect(Json value, JsonKind kind) {
  JsonKind is = json_kind(value);
  if (is != kind) error_at(json_where(value), EXIT_INVALID, "expected %s, found %s", kind_name(kind), kind_name(is));
  return is == kind;
}

bool json_get_string(Json value, const char **out) {
  if (!json_expect(value, JSON_STRING)) return false;
  *out = json_text(value);
  return true;
}

bool json_get_bool(Json value, bool *out) {
  if (!json_expect(value, JSON_BOOL)) return false;
  *out = cJSON_IsTrue(value.item);
  return true;
}

bool json_get_int(Json value, int64_t min, int64_t max, int64_t *out) {
  char text[JSON_MAX_NUMBER + 1];
  if (!json_expect(value, JSON_NUMBER)) return false;
  json_copy_number(value, text);
  if (!json_is_integer(value)) {
    error_at(json_where(value), EXIT_INVALID, "expected an integer (no fraction, no exponent), found %s", text);
    return false;
  }
  errno = 0;
  *out = strtoll(text, NULL, 10);
  if (errno == 0 && *out >= min && *out <= max) return true;
  error_at(json_where(value), EXIT_INVALID, "expected %" PRId64 " to %" PRId64 ", found %s", min, max, text);
  return false;
}

bool json_get_uint(Json value, uint64_t *out) {
  char text[JSON_MAX_NUMBER + 1];
  int64_t negative;
  if (!json_is_integer(value)) return json_get_int(value, 0, INT64_MAX, &negative);
  json_copy_number(value, text);
  if (text[0] == '-') {
    *out = 0;
    return json_get_int(value, 0, INT64_MAX, &negative);
  }
  errno = 0;
  *out = strtoull(text, NULL, 10);
  if (errno == 0) return true;
  error_at(json_where(value), EXIT_INVALID, "expected 0 to %" PRIu64 ", found %s", UINT64_MAX, text);
  return false;
}

/* A number is written with a point, whatever the user's language. Kept for the life of the process. */
static locale_t plain_locale(void) {
  static locale_t plain;
  if (!plain) plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return plain;
}

static bool finite_or_error(Json value, const char *text, bool finite, const char *type) {
  if (!finite) error_at(json_where(value), EXIT_INVALID, "%s is past the range of %s", text, type);
  return finite;
}

bool json_get_double(Json value, double *out) {
  char text[JSON_MAX_NUMBER + 1];
  if (!json_expect(value, JSON_NUMBER)) return false;
  json_copy_number(value, text);
  *out = strtod_l(text, NULL, plain_locale());
  return finite_or_error(value, text, isfinite(*out), "a double");
}

bool json_get_float(Json value, float *out) {
  char text[JSON_MAX_NUMBER + 1];
  if (!json_expect(value, JSON_NUMBER)) return false;
  json_copy_number(value, text);
  *out = strtof_l(text, NULL, plain_locale());
  return finite_or_error(value, text, isfinite(*out), "f32");
}

static const JsonField *find_field(const JsonField *fields, const char *key) {
  for (; fields->key; fields++)
    if (strcmp(fields->key, key) == 0) return fields;
  return NULL;
}

static void tell_unknown_key(Json member, const JsonField *fields) {
  Arena *arena = json_arena(member);
  Closest closest = closest_to(json_key(member));
  for (; fields->key; fields++) closest_try(&closest, fields->key);
  error_at(json_where(member), EXIT_INVALID, "unknown key \"%s\"%s", short_name(arena, json_key(member)),
           closest.best ? closest_hint(arena, &closest) : "; a key of your own starts with x-");
}

bool json_check(Json object, const JsonField *fields) {
  if (!json_expect(object, JSON_OBJECT)) return false;
  bool good = true;
  for (Json member = json_first(object); member.item; member = json_next(member)) {
    const JsonField *field = find_field(fields, json_key(member));
    if (field) {
      good &= field->kind == JSON_ABSENT || json_expect(member, field->kind);
    } else if (strncmp(json_key(member), "x-", 2) != 0) {
      tell_unknown_key(member, fields);
      good = false;
    }
  }
  for (; fields->key; fields++) {
    if (!fields->required || json_member(object, fields->key).item) continue;
    error_at(json_where(object), EXIT_INVALID, "the key \"%s\" is missing", fields->key);
    good = false;
  }
  return good;
}

const char *short_name(Arena *arena, const char *name) {
  size_t length = strlen(name);
  if (length <= SHORT_NAME) return name;
  return arena_format(arena, "%.*s... (%zu bytes)", (int)utf8_prefix(name, SHORT_NAME), name, length);
}
