/* SPDX-License-Identifier: MIT */
/* The strict JSON reader: what it refuses, the place that it names, and the values that it returns. */
#include <float.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "outcome.h"
#include "support/files.h"
#include "json/json.h"

typedef struct Source {
  const char *text;
  size_t length;
} Source;

static Json parse(Arena *arena, const char *text) { return json_parse(arena, "f.json", text, strlen(text), 0); }

static void parse_source(void *argument) {
  Source *source = argument;
  Arena *arena = arena_new();
  json_parse(arena, "f.json", source->text, source->length, 0);
  arena_free(arena);
}

/* Texts that are not JSON, with the byte of the error and a part of the message. */
static const struct Refused {
  const char *property, *text;
  size_t length; /* 0: up to the NUL */
  const char *where, *message;
} REFUSED[] = {
    {"empty file", "", 0, "byte 0", "found the end of the text"},
    {"only space", " \n", 0, "byte 2", "found the end of the text"},
    {"byte order mark", "\xef\xbb\xbf{}", 0, "byte 0", "byte order mark"},
    {"embedded NUL between values", "[1,\0 2]", 7, "byte 3", "0x00"},
    {"embedded NUL in a string", "[\"a\0b\"]", 7, "byte 3", "0x00"},
    {"NUL after the value", "{}\0", 3, "byte 2", "found the byte 0x00"},
    {"escaped NUL", "[\"\\u0000\"]", 0, "byte 2", "NUL"},
    {"overlong UTF-8 of two bytes", "[\"\xc0\xaf\"]", 0, "byte 2", "UTF-8"},
    {"overlong UTF-8 of three bytes", "[\"\xe0\x80\xaf\"]", 0, "byte 2", "UTF-8"},
    {"overlong UTF-8 of four bytes", "[\"\xf0\x80\x80\xaf\"]", 0, "byte 2", "UTF-8"},
    {"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", 0, "byte 2", "UTF-8"},
    {"UTF-8 past U+10FFFF", "[\"\xf4\x90\x80\x80\"]", 0, "byte 2", "UTF-8"},
    {"UTF-8 cut short", "[\"\xe2\x82\"]", 0, "byte 2", "UTF-8"},
    {"lone continuation byte", "[\"\x80\"]", 0, "byte 2", "UTF-8"},
    {"byte FF", "[\"\xff\"]", 0, "byte 2", "UTF-8"},
    {"lone high surrogate", "[\"\\ud800\"]", 0, "byte 2", "surrogate"},
    {"lone low surrogate", "[\"\\udc00\"]", 0, "byte 2", "surrogate"},
    {"high surrogate before a letter", "[\"\\ud800\\u0041\"]", 0, "byte 2", "surrogate"},
    {"raw newline in a string", "[\"a\nb\"]", 0, "byte 3", "control characters"},
    {"raw tab in a string", "[\"a\tb\"]", 0, "byte 3", "control characters"},
    {"unknown escape", "[\"\\x41\"]", 0, "byte 3", "after a backslash"},
    {"short unicode escape", "[\"\\u12\"]", 0, "byte 6", "hexadecimal"},
    {"leading zero", "[007]", 0, "byte 1", "leading zeros"},
    {"negative leading zero", "[-01]", 0, "byte 1", "leading zeros"},
    {"nothing after the point", "[1.]", 0, "byte 3", "after the decimal point"},
    {"nothing before the point", "[.5]", 0, "byte 1", "expected a value"},
    {"nothing in the exponent", "[1e]", 0, "byte 3", "exponent"},
    {"plus sign", "[+1]", 0, "byte 1", "expected a value"},
    {"lone minus", "[-]", 0, "byte 2", "a digit"},
    {"hexadecimal", "[0x10]", 0, "byte 2", "','"},
    {"NaN", "[NaN]", 0, "byte 1", "expected a value"},
    {"Infinity", "[-Infinity]", 0, "byte 2", "a digit"},
    {"trailing garbage", "{} x", 0, "byte 3", "the end of the text"},
    {"two values", "{}{}", 0, "byte 2", "the end of the text"},
    {"trailing comma in an array", "[1,]", 0, "byte 3", "expected a value"},
    {"trailing comma in an object", "{\"a\":1,}", 0, "byte 7", "a key"},
    {"key without quotes", "{a:1}", 0, "byte 1", "a key"},
    {"missing colon", "{\"a\" 1}", 0, "byte 5", "':'"},
    {"missing comma", "[1 2]", 0, "byte 3", "','"},
    {"wrong closing bracket", "[1}", 0, "byte 2", "']'"},
    {"single quotes", "['a']", 0, "byte 1", "expected a value"},
    {"comment", "[/* */1]", 0, "byte 1", "expected a value"},
    {"capital True", "[True]", 0, "byte 1", "expected a value"},
    {"duplicate key", "{\"a\":1,\"b\":2,\"a\":3}", 0, "byte 17", "given twice"},
    {"duplicate key, one escaped", "{\"a\":{\"b\":1,\"\\u0062\":2}}", 0, "a.b", "given twice"},
};
enum { N_REFUSED = sizeof REFUSED / sizeof *REFUSED };

static void is_refused(void **state) {
  const struct Refused *it = *state;
  Source source = {it->text, it->length ? it->length : strlen(it->text)};
  Outcome outcome = outcome_of(parse_source, &source);
  expect_outcome(&outcome, 2, it->where, it->message);
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  const char *whole = "{\"a\": [1.5e-3, -20, true, null], \"\\ud83d\\ude00\": {\"b\\n\": \"\xc3\xa9\"}}";
  for (size_t length = 0; length < strlen(whole); length++) {
    Source source = {whole, length};
    Outcome outcome = outcome_of(parse_source, &source);
    expect_outcome(&outcome, 2, "f.json: byte", NULL);
  }
}

static Outcome parse_nested(size_t depth) {
  char text[256];
  memset(text, '[', depth);
  memset(text + depth, ']', depth);
  Source source = {text, 2 * depth};
  return outcome_of(parse_source, &source);
}

static void nesting_of_64_is_read_and_of_65_refused(void **state) {
  (void)state;
  Outcome deepest = parse_nested(64), deeper = parse_nested(65);
  expect_outcome(&deepest, 0, NULL, NULL);
  expect_outcome(&deeper, 2, "byte 64", "nested deeper than 64");
}

static void a_number_of_ten_million_digits_is_refused(void **state) {
  (void)state;
  size_t length = 10000000;
  char *text = test_malloc(length);
  memset(text, '7', length);
  Source source = {text, length};
  Outcome outcome = outcome_of(parse_source, &source);
  expect_outcome(&outcome, 2, "byte 0", "a number of 10000000 characters");
  test_free(text);
}

static void a_string_of_ten_million_bytes_is_read(void **state) {
  (void)state;
  Arena *arena = arena_new();
  size_t length = 10000000;
  char *text = arena_alloc(arena, length + 1);
  memset(text, 'x', length);
  text[0] = text[length - 1] = '"';
  assert_int_equal(strlen(json_text(parse(arena, text))), length - 2);
  arena_free(arena);
}

/* With quadratic access tests would take 1e12 steps, or 1e10 slow ones with a sanitizer, and never end; linear access
 * takes milliseconds. */
enum { MANY = SANITIZED ? 100000 : 1000000 };

static void an_array_of_very_many_elements_takes_linear_time(void **state) {
  (void)state;
  enum { N = MANY };
  Arena *arena = arena_new();
  char *text = arena_alloc(arena, 2 * N + 2);
  text[0] = '[';
  for (int i = 1; i < 2 * N; i++) text[i] = i % 2 ? '1' : ',';
  text[2 * N] = ']';
  int64_t sum = 0, value;
  Json array = parse(arena, text);
  for (Json it = json_first(array); it.item; it = json_next(it)) sum += json_get_int(it, 0, 9, &value) ? value : 0;
  assert_int_equal(sum, N);
  arena_free(arena);
}

static void an_object_of_very_many_members_takes_no_quadratic_time(void **state) {
  (void)state;
  enum { N = MANY, WIDTH = 12 };
  Arena *arena = arena_new();
  char *text = arena_alloc(arena, WIDTH * N + 2);
  for (int i = 0; i < N; i++) snprintf(text + 1 + (size_t)WIDTH * i, WIDTH + 1, "\"k%06d\":1,", i);
  text[0] = '{';
  for (int i = 0; i < N; i++) text[WIDTH * (i + 1)] = ',';
  text[(size_t)WIDTH * N] = '}';
  assert_int_equal(json_count(parse(arena, text)), N);
  arena_free(arena);
}

static void integers_of_64_bits_are_exact(void **state) {
  (void)state;
  Arena *arena = arena_new();
  static const int64_t VALUES[] = {INT64_MAX, INT64_MIN, 9007199254740993, 2147483648, -1, 0};
  Json it = json_first(parse(arena, "[9223372036854775807,-9223372036854775808,9007199254740993,2147483648,-1,-0]"));
  for (int i = 0; i < 6; i++, it = json_next(it)) {
    int64_t value;
    assert_true(json_get_int(it, INT64_MIN, INT64_MAX, &value));
    assert_true(value == VALUES[i]);
  }
  arena_free(arena);
}

/* In a child process, because locale and environment belong to the process. */
static void read_under_german_locale(void *unused) {
  (void)unused;
  Arena *arena = arena_new();
  char *folder = temporary_directory(arena);
  char *make = arena_format(arena, "localedef --quiet -c -i de_DE -f UTF-8 %s/de_DE.UTF-8", folder);
  if (system(make) != 0) fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "localedef fails: is `locales` installed?");
  setenv("LOCPATH", folder, 1);
  if (!setlocale(LC_ALL, "de_DE.UTF-8") || *localeconv()->decimal_point != ',') bug("the locale is not German");
  double value;
  json_get_double(json_first(parse(arena, "[1.5e-3]")), &value);
  fprintf(stderr, value == 1.5e-3 ? "same" : "other");
  stop(EXIT_OK);
}

static void numbers_are_the_same_under_a_german_locale(void **state) {
  (void)state;
  Outcome outcome = outcome_of(read_under_german_locale, NULL);
  expect_outcome(&outcome, 0, "same", NULL);
}

static void floats_are_rounded_once(void **state) {
  (void)state;
  Arena *arena = arena_new();
  float value;
  /* Just above the middle of 1 and the next float: via double it would round to the middle, then to even. */
  assert_true(json_get_float(parse(arena, "1.00000005960464477540"), &value));
  assert_true(value == 1 + FLT_EPSILON);
  arena_free(arena);
}

/* The accessors' messages about values of another kind. */
static void get_int(void *text) {
  Arena *arena = arena_new();
  int64_t value;
  json_get_int(json_first(json_first(parse(arena, text))), 0, INT32_MAX, &value);
  stop_on_errors();
  arena_free(arena);
}
static void get_double(void *text) {
  Arena *arena = arena_new();
  double value;
  json_get_double(json_first(parse(arena, text)), &value);
  stop_on_errors();
  arena_free(arena);
}
static void get_float(void *text) {
  Arena *arena = arena_new();
  float value;
  json_get_float(json_first(parse(arena, text)), &value);
  stop_on_errors();
  arena_free(arena);
}

static void a_wrong_number_is_reported_with_path_and_range(void **state) {
  (void)state;
  static const char *const CASES[][2] = {
      {"{\"n\": [1.0]}", "expected an integer (no fraction, no exponent), found 1.0"},
      {"{\"n\": [1e3]}", "expected an integer (no fraction, no exponent), found 1e3"},
      {"{\"n\": [2147483648]}", "expected 0 to 2147483647, found 2147483648"},
      {"{\"n\": [-1]}", "expected 0 to 2147483647, found -1"},
      {"{\"n\": [9223372036854775808]}", "found 9223372036854775808"},
      {"{\"n\": [99999999999999999999999999]}", "found 99999999999999999999999999"},
      {"{\"n\": [\"1\"]}", "expected a number, found a string"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    Outcome outcome = outcome_of(get_int, (void *)CASES[i][0]);
    expect_outcome(&outcome, 2, "f.json: n[0]: byte 7: error: ", CASES[i][1]);
  }
}

static void a_number_past_the_range_of_its_type_is_refused(void **state) {
  (void)state;
  Outcome wide = outcome_of(get_double, "[1e400]"), narrow = outcome_of(get_float, "[1e39]");
  expect_outcome(&wide, 2, "f.json: [0]: byte 1", "1e400 is past the range of a double");
  expect_outcome(&narrow, 2, "f.json: [0]: byte 1", "1e39 is past the range of f32");
}

static const JsonField FIELDS[] = {
    {"axis", JSON_NUMBER, true}, {"name", JSON_STRING, false}, {NULL, JSON_ABSENT, false}};

static void check_fields(void *text) {
  Arena *arena = arena_new();
  json_check(parse(arena, text), FIELDS);
  stop_on_errors();
  arena_free(arena);
}

static void fields_are_checked_and_suggested(void **state) {
  (void)state;
  Outcome good = outcome_of(check_fields, "{\"axis\": 1, \"x-note\": [null]}");
  expect_outcome(&good, 0, NULL, NULL);
  Outcome slip = outcome_of(check_fields, "{\"axsi\": 1}");
  expect_outcome(&slip, 2, "axsi: byte 9: error: unknown key \"axsi\"; did you mean \"axis\"?", "\"axis\" is missing");
  Outcome foreign = outcome_of(check_fields, "{\"axis\": 1, \"comment\": 2}");
  expect_outcome(&foreign, 2, "unknown key \"comment\"; a key of your own starts with x-", NULL);
  Outcome kind = outcome_of(check_fields, "{\"axis\": 1, \"name\": {}}");
  expect_outcome(&kind, 2, "name: byte 20: error: expected a string, found an object", NULL);
  Outcome array = outcome_of(check_fields, "[]");
  expect_outcome(&array, 2, "expected an object, found an array", NULL);
}

static void odd_keys_are_quoted_and_escaped_in_paths(void **state) {
  (void)state;
  Outcome outcome = outcome_of(get_int, "{\"a b\\u001b[31m\": [true]}");
  expect_outcome(&outcome, 2, "f.json: [\"a b\\x1b[31m\"][0]: ", "expected a number, found true or false");
}

static void a_key_of_a_megabyte_is_shortened_in_messages(void **state) {
  (void)state;
  Arena *arena = arena_new();
  size_t length = 1000000;
  char *text = arena_alloc(arena, length + 16);
  memset(text, 'k', length);
  text[0] = '{';
  text[1] = '"';
  memcpy(text + length, "\":[true]}", 10);
  Outcome outcome = outcome_of(get_int, text);
  expect_outcome(&outcome, 2, "... (999998 bytes)", "expected a number, found true or false");
  assert_true(strlen(outcome.messages) < 300);
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest others[] = {
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(nesting_of_64_is_read_and_of_65_refused),
      cmocka_unit_test(a_number_of_ten_million_digits_is_refused),
      cmocka_unit_test(a_string_of_ten_million_bytes_is_read),
      cmocka_unit_test(an_array_of_very_many_elements_takes_linear_time),
      cmocka_unit_test(an_object_of_very_many_members_takes_no_quadratic_time),
      cmocka_unit_test(integers_of_64_bits_are_exact),
      cmocka_unit_test(numbers_are_the_same_under_a_german_locale),
      cmocka_unit_test(floats_are_rounded_once),
      cmocka_unit_test(a_wrong_number_is_reported_with_path_and_range),
      cmocka_unit_test(a_number_past_the_range_of_its_type_is_refused),
      cmocka_unit_test(fields_are_checked_and_suggested),
      cmocka_unit_test(odd_keys_are_quoted_and_escaped_in_paths),
      cmocka_unit_test(a_key_of_a_megabyte_is_shortened_in_messages),
  };
  enum { N_OTHERS = sizeof others / sizeof *others };
  struct CMUnitTest tests[N_REFUSED + N_OTHERS];
  for (int i = 0; i < N_REFUSED; i++)
    tests[i] = (struct CMUnitTest){REFUSED[i].property, is_refused, NULL, NULL, (void *)&REFUSED[i]};
  memcpy(tests + N_REFUSED, others, sizeof others);
  return cmocka_run_group_tests_name("json_reader", tests, NULL, NULL);
}
