/* SPDX-License-Identifier: MIT */
/*
 * The header is JSON of one form only, which a cursor reads:
 *   {"NAME": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}, ..., "__metadata__": {"KEY": "TEXT", ...}}
 * Offsets count from the end of the header.
 */
#include "safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "npy.h"

enum { LENGTH_BYTES = 8, MAX_DIGITS = 18 };

static const struct {
  const char *name;
  rnncc_dtype dtype;
} types[] = {
#define DTYPE(id, code, type, text, bits, kind, use, safetensors, ...) {safetensors, RNNCC_##id},
#include "dtypes.def"
};

typedef struct Cursor {
  const char *path, *start, *at, *end;
  size_t data_bytes; /* behind the header */
} Cursor;

static _Noreturn void bad_header(const Cursor *cursor, const char *expected) {
  fail(EXIT_INPUT, "%s: byte %td of the header: expected %s", cursor->path, cursor->at - cursor->start, expected);
}

static void skip_spaces(Cursor *cursor) {
  while (cursor->at < cursor->end && *cursor->at && strchr(" \t\n\r", *cursor->at)) cursor->at++;
}

static bool accept(Cursor *cursor, char c) {
  skip_spaces(cursor);
  if (cursor->at == cursor->end || *cursor->at != c) return false;
  cursor->at++;
  return true;
}

static void expect(Cursor *cursor, char c) {
  const char text[] = {'`', c, '`', 0};
  if (!accept(cursor, c)) bad_header(cursor, text);
}

/* ---- strings and numbers ---- */

static unsigned read_hex(Cursor *cursor) {
  unsigned code = 0;
  for (int i = 0; i < 4; i++, cursor->at++) {
    char c = cursor->at < cursor->end ? *cursor->at : 0;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) bad_header(cursor, "four hexadecimal digits");
    code = code * 16 + (unsigned)digit;
  }
  return code;
}

static char *put_utf8(char *to, unsigned code) {
  if (code < 0x80) {
    *to++ = (char)code;
    return to;
  }
  if (code < 0x800) {
    *to++ = (char)(0xc0 | code >> 6);
  } else {
    *to++ = (char)(0xe0 | code >> 12);
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
  }
  *to++ = (char)(0x80 | (code & 0x3f));
  return to;
}

static char *put_escaped(Cursor *cursor, char *to) {
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  char c = cursor->at < cursor->end ? *cursor->at : 0;
  const char *known = c ? strchr(letters, c) : NULL;
  cursor->at++;
  if (known) {
    *to = meant[known - letters];
    return to + 1;
  }
  unsigned code = c == 'u' ? read_hex(cursor) : 0;
  if (!code || (code >= 0xd800 && code < 0xe000)) bad_header(cursor, "an escaped character of 1 to 3 bytes of UTF-8");
  return put_utf8(to, code);
}

/* To its closing quote: no fewer than it has when it is decoded. */
static size_t string_bytes(const Cursor *cursor) {
  const char *at = cursor->at;
  while (at < cursor->end && *at != '"') at += *at == '\\' && at + 1 < cursor->end ? 2 : 1;
  return (size_t)(at - cursor->at);
}

/* The caller frees it. */
static char *read_string(Cursor *cursor) {
  expect(cursor, '"');
  char *text = allocate(string_bytes(cursor) + 1), *to = text;
  for (; cursor->at < cursor->end && *cursor->at != '"';) {
    if ((unsigned char)*cursor->at < ' ') bad_header(cursor, "no control character in a string");
    if (*cursor->at != '\\') {
      *to++ = *cursor->at++;
      continue;
    }
    cursor->at++;
    to = put_escaped(cursor, to);
  }
  expect(cursor, '"');
  return text;
}

static int64_t read_count(Cursor *cursor) {
  skip_spaces(cursor);
  int64_t value = 0;
  const char *begin = cursor->at;
  for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
    if (cursor->at - begin == MAX_DIGITS) bad_header(cursor, "a smaller number");
    value = value * 10 + (*cursor->at - '0');
  }
  if (cursor->at == begin) bad_header(cursor, "a number");
  return value;
}

/* ---- tensors ---- */

static void read_dtype(Cursor *cursor, SafeTensor *tensor) {
  char *text = read_string(cursor);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].name && !strcmp(types[i].name, text)) tensor->dtype = types[i].dtype;
  if (tensor->dtype == RNNCC_NONE)
    fail(EXIT_INPUT, "%s: `%.200s`: dtype \"%.40s\" is none of rnncc's", cursor->path, tensor->name, text);
  free(text);
}

static void read_shape(Cursor *cursor, SafeTensor *tensor) {
  expect(cursor, '[');
  if (accept(cursor, ']')) return;
  do {
    if (tensor->rank == RNNCC_MAX_RANK)
      fail(EXIT_INPUT, "%s: `%.200s`: rank above %d", cursor->path, tensor->name, RNNCC_MAX_RANK);
    tensor->shape[tensor->rank++] = read_count(cursor);
  } while (accept(cursor, ','));
  expect(cursor, ']');
}

static void read_offsets(Cursor *cursor, SafeTensor *tensor) {
  expect(cursor, '[');
  int64_t begin = read_count(cursor);
  expect(cursor, ',');
  int64_t end = read_count(cursor);
  expect(cursor, ']');
  if (end < begin || (uint64_t)end > cursor->data_bytes)
    fail(EXIT_INPUT, "%s: `%.200s`: its data are said to be bytes %" PRId64 " to %" PRId64 "; the file has %zu",
         cursor->path, tensor->name, begin, end, cursor->data_bytes);
  tensor->data = (const unsigned char *)cursor->end + begin;
  tensor->bytes = (size_t)(end - begin);
}

static void read_tensor(Cursor *cursor, SafeTensor *tensor) {
  enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
  int seen = 0;
  expect(cursor, '{');
  do {
    char *key = read_string(cursor);
    int field = !strcmp(key, "dtype")          ? DTYPE
                : !strcmp(key, "shape")        ? SHAPE
                : !strcmp(key, "data_offsets") ? OFFSETS
                                               : 0;
    free(key);
    if (!field || seen & field) bad_header(cursor, "dtype, shape and data_offsets, each once");
    seen |= field;
    expect(cursor, ':');
    if (field == DTYPE) read_dtype(cursor, tensor);
    if (field == SHAPE) read_shape(cursor, tensor);
    if (field == OFFSETS) read_offsets(cursor, tensor);
  } while (accept(cursor, ','));
  expect(cursor, '}');
  if (seen != ALL) bad_header(cursor, "dtype, shape and data_offsets, each once");
  size_t due = tensor_bytes(tensor->dtype, tensor->rank, tensor->shape);
  if (due != tensor->bytes)
    fail(EXIT_INPUT, "%s: `%.200s`: its shape needs %zu bytes of data, it has %zu", cursor->path, tensor->name, due,
         tensor->bytes);
}

static void skip_metadata(Cursor *cursor) {
  expect(cursor, '{');
  if (accept(cursor, '}')) return;
  do {
    free(read_string(cursor));
    expect(cursor, ':');
    free(read_string(cursor));
  } while (accept(cursor, ','));
  expect(cursor, '}');
}

/* ---- the file ---- */

static SafeTensor *add_tensor(SafeTensors *tensors, char *name) {
  SafeTensor *longer = realloc(tensors->list, (size_t)(tensors->count + 1) * sizeof *longer);
  if (!longer) fail(EXIT_RESOURCE, "out of memory");
  tensors->list = longer;
  longer[tensors->count] = (SafeTensor){.name = name};
  return &longer[tensors->count++];
}

static void read_header(Cursor *cursor, SafeTensors *tensors) {
  expect(cursor, '{');
  if (!accept(cursor, '}')) {
    do {
      char *name = read_string(cursor);
      expect(cursor, ':');
      if (strcmp(name, "__metadata__") != 0) {
        read_tensor(cursor, add_tensor(tensors, name));
        continue;
      }
      free(name);
      skip_metadata(cursor);
    } while (accept(cursor, ','));
    expect(cursor, '}');
  }
  skip_spaces(cursor); /* the header is padded with them */
  if (cursor->at != cursor->end) bad_header(cursor, "its end");
}

static int by_place(const void *a, const void *b) {
  const SafeTensor *x = a, *y = b;
  if (x->data != y->data) return x->data < y->data ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* As the format wants it: each byte of the data is one tensor's. */
static void check_coverage(const Cursor *cursor, const SafeTensors *tensors) {
  const unsigned char *data = (const unsigned char *)cursor->end;
  size_t covered = 0;
  for (int i = 0; i < tensors->count; i++) {
    const SafeTensor *tensor = &tensors->list[i];
    size_t begin = (size_t)(tensor->data - data);
    if (begin != covered)
      fail(EXIT_INPUT, "%s: `%.200s`: its data begins at byte %zu, %s the data before it, which ends at %zu",
           cursor->path, tensor->name, begin, begin < covered ? "inside" : "with a gap after", covered);
    covered += tensor->bytes;
  }
  if (covered != cursor->data_bytes)
    fail(EXIT_INPUT, "%s: %zu bytes after the last tensor belong to none", cursor->path, cursor->data_bytes - covered);
}

SafeTensors safetensors_read(const char *path) {
  struct stat status = {0};
  size_t bytes = stat(path, &status) == 0 ? (size_t)status.st_size : 0;
  SafeTensors tensors = {.file = raw_read(path, bytes)};
  uint64_t header = 0;
  for (size_t i = 0; i < LENGTH_BYTES && i < bytes; i++) header |= (uint64_t)tensors.file[i] << 8 * i;
  if (bytes < LENGTH_BYTES || header > bytes - LENGTH_BYTES)
    fail(EXIT_INPUT, "%s: not a safetensors file, or not whole: expected a header of %" PRIu64 " bytes, found %zu",
         path, header, bytes < LENGTH_BYTES ? 0 : bytes - LENGTH_BYTES);
  const char *start = (const char *)tensors.file + LENGTH_BYTES;
  Cursor cursor = {path, start, start, start + header, bytes - LENGTH_BYTES - (size_t)header};
  read_header(&cursor, &tensors);
  if (tensors.count) qsort(tensors.list, (size_t)tensors.count, sizeof *tensors.list, by_place);
  check_coverage(&cursor, &tensors);
  return tensors;
}

void safetensors_free(SafeTensors *tensors) {
  for (int i = 0; i < tensors->count; i++) free(tensors->list[i].name);
  free(tensors->list);
  free(tensors->file);
}
