/* SPDX-License-Identifier: MIT */
/* C as tokens and declarations: comments and spacing change nothing, and the names of each declaration are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "support/text.h"
#include "template/tokens.h"

static const char *spelled(const char *text) {
  Text out = text_new(arena);
  for (Token token; (token = next_token(&text)).kind != TOKEN_END;)
    text_add(&out, "%s%.*s", out.length ? " " : "", (int)token.length, token.text);
  return out.data;
}

static void comments_and_spacing_are_no_tokens(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"a=b+c;", "a = b + c ;"},
      {"a /* b\n */ = // c\n d", "a = d"},
      {"\"/* no comment */\" '\\'' \"\\\"//\"", "\"/* no comment */\" '\\'' \"\\\"//\""},
      {"a+++b", "a ++ + b"},
      {"a+ ++b", "a + ++ b"},
      {"x<<=1>>y->z", "x <<= 1 >> y -> z"},
      {"0x1.8p-3f-1e+5-.5", "0x1.8p-3f - 1e+5 - .5"},
      {"\x01_name(1)", "\x01_name ( 1 )"},
      {"a \\\n b", "a b"},
      {"/* not ended", ""},
      {"\"not ended\n;", "\"not ended ;"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_string_equal(spelled(rows[i][0]), rows[i][1]);
}

/* The names of each declaration: "f | g h". */
static const char *declared(const char *text) {
  Text out = text_new(arena);
  SourceFile file = read_declarations(arena, text);
  for (int i = 0; i < file.n_declarations; i++) {
    if (i) text_add(&out, " |");
    for (int n = 0; n < file.declarations[i].n_names; n++)
      text_add(&out, "%s%s", out.length ? " " : "", file.declarations[i].names[n]);
  }
  return out.data;
}

static void each_declaration_is_known_by_its_names(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"static int f(int a) { return a; } int g(void);", "f | g"},
      {"#define FUNCTION static inline\nFUNCTION vec vadd(vec a, vec b) { return a + b; }", "FUNCTION | vadd"},
      {"#define LONG(x) \\\n  f(x); \\\n  g(x)\nint h;", "LONG | h"},
      {"typedef struct S { int a, b; } T;", "S T"},
      {"struct S { int a; };\nenum { A, B = 2, C };", "S | A B C"},
      {"enum Kind { X = 1 };", "Kind X"},
      {"typedef unsigned char bits8 __attribute__((may_alias));", "bits8"},
      {"__attribute__((unused)) static int f(void) { return 1; }", "f"},
      {"typedef vec Row[4]; typedef int (*Call)(int);", "Row | Call"},
      {"static const int table[2] = {1, 2}; int a, b;", "table | a b"},
      {"MACRO(vsin, of_lane)\nMACRO(vcos, of_lane)\nint f(void) {}", "vsin of_lane | vcos of_lane | f"},
      {"#ifndef H\n#include \"a.h\"\nint f(void);\n#endif\n", "f"},
      {"static inline const vec *at(const float *p) { return (const vec *)p; }", "at"},
      {"struct S *f(struct S *s) { if (s) { return s; } return s; } int g;", "f | g"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_string_equal(declared(rows[i][0]), rows[i][1]);
}

static void includes_in_quotes_are_listed(void **state) {
  (void)state;
  SourceFile file =
      read_declarations(arena, "#include <stdint.h>\n#include \"simd/simd.h\"\n# include \"panel.h\" /* x */\n");
  assert_int_equal(file.n_includes, 2);
  assert_string_equal(file.includes[0], "simd/simd.h");
  assert_string_equal(file.includes[1], "panel.h");
}

static void text_that_is_not_c_is_read_to_its_end(void **state) {
  (void)state;
  static const char *const texts[] = {"",     "{",        "}",  ")(", "#",  "#define", "#include",
                                      "enum", "struct {", "f(", "/*", "\"", "a ["};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) read_declarations(arena, texts[i]);
  assert_string_equal(declared("}"), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(comments_and_spacing_are_no_tokens, setup, teardown),
      cmocka_unit_test_setup_teardown(each_declaration_is_known_by_its_names, setup, teardown),
      cmocka_unit_test_setup_teardown(includes_in_quotes_are_listed, setup, teardown),
      cmocka_unit_test_setup_teardown(text_that_is_not_c_is_read_to_its_end, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
