/* SPDX-License-Identifier: MIT */
/* The grammar of RFC 8259, checked without recursion: the open containers stand in an array of JSON_MAX_DEPTH. */
#include "json/json_syntax.h"

#include <limits.h>
#include <string.h>

#include "support/utf8.h"

typedef struct Scan {
  Arena *arena;
  const char *file, *text;
  size_t length, at, base;
  JsonPlace *places;
  int count, depth;
  char closer[JSON_MAX_DEPTH]; /* of each open container: '}' or ']' */
} Scan;

static _Noreturn void fail_at(const Scan *scan, size_t at, const char *message) {
  Location where = {.file = scan->file, .byte = (long long)(scan->base + at)};
  fatal_at(where, EXIT_INVALID, "%s", message);
}

static char peek(const Scan *scan) { return scan->at < scan->length ? scan->text[scan->at] : 0; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Says what was expected here, and what was found. */
static _Noreturn void fail_expected(const Scan *scan, const char *expected) {
  char c = peek(scan);
  if (scan->at >= scan->length)
    fail_at(scan, scan->at, arena_format(scan->arena, "expected %s, found the end of the text", expected));
  if (c >= 0x20 && c < 0x7f) fail_at(scan, scan->at, arena_format(scan->arena, "expected %s, found '%c'", expected, c));
  fail_at(scan, scan->at, arena_format(scan->arena, "expected %s, found the byte 0x%02x", expected, (unsigned char)c));
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static void skip_space(Scan *scan) {
  while (is_space(peek(scan))) scan->at++;
}

static unsigned scan_hex4(Scan *scan) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++, scan->at++) {
    char c = peek(scan);
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) fail_expected(scan, "a hexadecimal digit of \\uXXXX");
    value = value * 16 + (unsigned)digit;
  }
  return value;
}

/* After the `u` of \uXXXX. */
static void scan_unicode_escape(Scan *scan) {
  size_t start = scan->at - 2;
  unsigned code = scan_hex4(scan);
  if (code == 0) fail_at(scan, start, "\\u0000: names and texts hold no NUL");
  if (code < 0xd800 || code > 0xdfff) return;
  bool paired = code < 0xdc00 && scan->length - scan->at >= 6 && memcmp(scan->text + scan->at, "\\u", 2) == 0;
  if (paired) {
    scan->at += 2;
    unsigned low = scan_hex4(scan);
    paired = low >= 0xdc00 && low <= 0xdfff;
  }
  if (!paired) fail_at(scan, start, "expected both halves of a surrogate pair, as in \\ud83d\\ude00; found one");
}

static void scan_escape(Scan *scan) {
  scan->at++;
  char c = peek(scan);
  if (c == 0 || !strchr("\"\\/bfnrtu", c)) fail_expected(scan, "one of \"\\/bfnrtu after a backslash");
  scan->at++;
  if (c == 'u') scan_unicode_escape(scan);
}

static void scan_string(Scan *scan) {
  for (scan->at++;;) {
    unsigned char c = (unsigned char)peek(scan);
    if (scan->at >= scan->length) fail_expected(scan, "the closing quote of a string");
    if (c == '"') break;
    if (c == '\\') {
      scan_escape(scan);
    } else if (c < 0x20) {
      fail_expected(scan, "a character of a string (control characters are written \\n or \\u000a)");
    } else {
      int bytes = c < 0x80 ? 1 : utf8_character(scan->text + scan->at, scan->length - scan->at);
      if (bytes == 0) fail_at(scan, scan->at, "this is not valid UTF-8");
      scan->at += (size_t)bytes;
    }
  }
  scan->at++;
}

size_t json_number_length(const char *text, size_t left) {
  size_t length = 0;
  while (length < left && (is_digit(text[length]) || (text[length] && strchr("+-.eE", text[length])))) length++;
  return length;
}

static void scan_digits(Scan *scan, const char *expected) {
  if (!is_digit(peek(scan))) fail_expected(scan, expected);
  while (is_digit(peek(scan))) scan->at++;
}

static void scan_number(Scan *scan) {
  size_t start = scan->at;
  if (peek(scan) == '-') scan->at++;
  if (peek(scan) == '0') {
    scan->at++;
    if (is_digit(peek(scan))) fail_at(scan, start, "a number has no leading zeros");
  } else {
    scan_digits(scan, "a digit");
  }
  if (peek(scan) == '.') {
    scan->at++;
    scan_digits(scan, "a digit after the decimal point");
  }
  if (peek(scan) == 'e' || peek(scan) == 'E') {
    scan->at++;
    if (peek(scan) == '+' || peek(scan) == '-') scan->at++;
    scan_digits(scan, "a digit of the exponent");
  }
  if (scan->at - start > JSON_MAX_NUMBER)
    fail_at(scan, start,
            arena_format(scan->arena, "a number of %zu characters; at most %d are read", scan->at - start,
                         JSON_MAX_NUMBER));
}

static void scan_scalar(Scan *scan) {
  static const char *const WORDS[] = {"true", "false", "null"};
  char c = peek(scan);
  if (c == '"') {
    scan_string(scan);
    return;
  }
  if (c == '-' || is_digit(c)) {
    scan_number(scan);
    return;
  }
  for (int w = 0; w < 3; w++) {
    size_t length = strlen(WORDS[w]);
    if (scan->length - scan->at < length || memcmp(scan->text + scan->at, WORDS[w], length) != 0) continue;
    scan->at += length;
    return;
  }
  fail_expected(scan, "a value (an object, array, string, number, true, false or null)");
}

static void scan_key(Scan *scan) {
  skip_space(scan);
  if (peek(scan) != '"') fail_expected(scan, "a key in double quotes");
  scan_string(scan);
  skip_space(scan);
  if (peek(scan) != ':') fail_expected(scan, "':' after the key");
  scan->at++;
}

static void open_container(Scan *scan) {
  if (scan->depth == JSON_MAX_DEPTH)
    fail_at(scan, scan->at, arena_format(scan->arena, "nested deeper than %d", JSON_MAX_DEPTH));
  scan->closer[scan->depth++] = peek(scan) == '{' ? '}' : ']';
  scan->at++;
}

/* After a value, or the bracket that opens a container (`first`): closes what ends here. True if another value of the
 * innermost container follows; its key is then read. */
static bool next_value(Scan *scan, bool first) {
  while (scan->depth > 0) {
    char closer = scan->closer[scan->depth - 1];
    skip_space(scan);
    if (peek(scan) == closer) {
      scan->at++;
      scan->depth--;
      first = false;
      continue;
    }
    if (!first) {
      if (peek(scan) != ',') fail_expected(scan, closer == '}' ? "',' or '}'" : "',' or ']'");
      scan->at++;
    }
    if (closer == '}') scan_key(scan);
    return true;
  }
  return false;
}

static void scan_values(Scan *scan) {
  bool more = true;
  while (more) {
    skip_space(scan);
    scan->places[scan->count++].offset = scan->at;
    bool container = peek(scan) == '{' || peek(scan) == '[';
    if (container)
      open_container(scan);
    else
      scan_scalar(scan);
    more = next_value(scan, container);
  }
}

/* Each value but the first follows a comma, or a bracket that opens. */
static size_t most_values(const char *text, size_t length) {
  size_t most = 1;
  for (size_t i = 0; i < length; i++) most += text[i] == ',' || text[i] == '[' || text[i] == '{';
  return most;
}

JsonPlace *json_scan(Arena *arena, const char *file, const char *text, size_t length, size_t base, int *count) {
  Scan scan = {.arena = arena, .file = file, .text = text, .length = length, .base = base};
  if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) fail_at(&scan, 0, "a byte order mark; JSON has none");
  size_t most = most_values(text, length);
  if (most > INT_MAX) fatal_at(LOCATION_FILE(file), EXIT_LIMIT, "more than %d values", INT_MAX);
  scan.places = ARENA_ARRAY(arena, JsonPlace, most);
  scan_values(&scan);
  skip_space(&scan);
  if (scan.at < length) fail_expected(&scan, "the end of the text");
  *count = scan.count;
  return scan.places;
}
