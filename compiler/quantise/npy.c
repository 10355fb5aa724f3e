/* SPDX-License-Identifier: MIT */
/*
 * Magic, version, length of the header (u16 in version 1, u32 in version 2), a Python dict as text, then the elements:
 *   \x93NUMPY 01 00 76 00 {'descr': '<f4', 'fortran_order': False, 'shape': (50, 1, 40), }<spaces>\n ...
 * (numpy.lib.format). Only the dict that NumPy writes is read.
 */
#include "quantise/npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 1 << 16, START_BYTES = 8 };

typedef struct Cursor {
  const char *at, *end;
  Location where;
} Cursor;

static _Noreturn void bad_header(const Cursor *cursor) {
  int left = (int)(cursor->end - cursor->at);
  fatal_at(cursor->where, EXIT_INVALID, "not a .npy header that NumPy writes, at \"%.*s\"", left < 20 ? left : 20,
           cursor->at);
}

static bool accept(Cursor *cursor, const char *text) {
  while (cursor->at < cursor->end && *cursor->at == ' ') cursor->at++;
  size_t length = strlen(text);
  if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0) return false;
  cursor->at += length;
  return true;
}

static void expect(Cursor *cursor, const char *text) {
  if (!accept(cursor, text)) bad_header(cursor);
}

/* "<f4" is a float of 4 bytes; "|b1" a bool. */
static DType dtype_of(const char *text, size_t length, DType expected) {
  static const char kinds[] = {[DTYPE_FLOAT] = 'f', [DTYPE_SIGNED] = 'i', [DTYPE_UNSIGNED] = 'u', [DTYPE_BOOL] = 'b'};
  DType found = RNNCC_NONE;
  if (length != 3 || (*text != '<' && *text != '|')) return RNNCC_NONE;
  for (const DType *dtype = all_dtypes; *dtype != RNNCC_NONE; dtype++) {
    const DTypeInfo *info = dtype_info(*dtype);
    bool whole = (size_t)info->bits == 8 * dtype_size(*dtype) || info->kind == DTYPE_BOOL;
    bool numpys = !dtype_is_coded(*dtype) || *dtype == RNNCC_F16;
    if (!whole || !numpys || text[1] != kinds[info->kind] || text[2] != (char)('0' + dtype_size(*dtype))) continue;
    if (found == RNNCC_NONE || *dtype == expected) found = *dtype;
  }
  return found;
}

static void read_descr(Cursor *cursor, Tensor *tensor, DType expected) {
  if (accept(cursor, "[")) fatal_at(cursor->where, EXIT_INVALID, "structured arrays are not supported");
  expect(cursor, "'");
  const char *end = memchr(cursor->at, '\'', (size_t)(cursor->end - cursor->at));
  if (!end) bad_header(cursor);
  tensor->dtype = dtype_of(cursor->at, (size_t)(end - cursor->at), expected);
  if (tensor->dtype == RNNCC_NONE)
    fatal_at(cursor->where, EXIT_INVALID,
             "its dtype is '%.*s'; expected a float, an integer or a bool, little-endian, such as '<f4'",
             (int)(end - cursor->at), cursor->at);
  cursor->at = end + 1;
}

static void read_order(Cursor *cursor) {
  if (accept(cursor, "True"))
    fatal_at(cursor->where, EXIT_INVALID, "Fortran order is not supported; save numpy.ascontiguousarray(a)");
  expect(cursor, "False");
}

static int64_t read_length(Cursor *cursor) {
  int64_t length = 0;
  const char *start = cursor->at;
  for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
    if (__builtin_mul_overflow(length, 10, &length) || __builtin_add_overflow(length, *cursor->at - '0', &length))
      bad_header(cursor);
  if (cursor->at == start) bad_header(cursor);
  return length;
}

static void read_shape(Cursor *cursor, Tensor *tensor) {
  expect(cursor, "(");
  while (!accept(cursor, ")")) {
    if (tensor->rank == MAX_RANK) fatal_at(cursor->where, EXIT_INVALID, "it has more than %d axes", MAX_RANK);
    tensor->shape[tensor->rank++] = read_length(cursor);
    if (!accept(cursor, ",")) {
      expect(cursor, ")");
      return;
    }
  }
}

static void read_dict(Cursor *cursor, Tensor *tensor, DType expected) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
  int seen = 0;
  expect(cursor, "{");
  while (!accept(cursor, "}")) {
    int key = accept(cursor, "'descr'")           ? DESCR
              : accept(cursor, "'fortran_order'") ? ORDER
              : accept(cursor, "'shape'")         ? SHAPE
                                                  : 0;
    if (!key || seen & key) bad_header(cursor);
    seen |= key;
    expect(cursor, ":");
    if (key == DESCR) read_descr(cursor, tensor, expected);
    if (key == ORDER) read_order(cursor);
    if (key == SHAPE) read_shape(cursor, tensor);
    if (!accept(cursor, ",")) {
      expect(cursor, "}");
      break;
    }
  }
  if (seen != ALL) bad_header(cursor);
}

/* The text of the dict; *data is where the elements begin. */
static Cursor find_header(FileBytes bytes, Location where, size_t *data) {
  const uint8_t *b = bytes.data;
  if (bytes.size < START_BYTES || memcmp(b, "\x93NUMPY", 6) != 0) fatal_at(where, EXIT_INVALID, "not a .npy file");
  if (b[6] != 1 && b[6] != 2) fatal_at(where, EXIT_INVALID, ".npy version %d is not supported; 1 and 2 are", b[6]);
  size_t start = START_BYTES + (b[6] == 1 ? 2 : 4);
  if (bytes.size < start) fatal_at(where, EXIT_INVALID, "the file ends in its header");
  size_t length = b[8] | (size_t)b[9] << 8;
  if (b[6] == 2) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (length > MAX_HEADER)
    fatal_at(where, EXIT_INVALID, "its header is of %zu bytes; expected at most %d", length, MAX_HEADER);
  if (bytes.size - start < length) fatal_at(where, EXIT_INVALID, "the file ends in its header");
  *data = start + length;
  return (Cursor){(const char *)b + start, (const char *)b + *data, where};
}

Tensor npy_read(FileBytes bytes, DType expected, Location where) {
  Tensor tensor = {0};
  size_t data;
  Cursor cursor = find_header(bytes, where, &data);
  read_dict(&cursor, &tensor, expected);
  size_t due = dtype_size(tensor.dtype);
  for (int axis = 0; axis < tensor.rank; axis++)
    if (__builtin_mul_overflow(due, (size_t)tensor.shape[axis], &due))
      fatal_at(where, EXIT_INVALID, "its shape is too large");
  if (bytes.size - data != due)
    fatal_at(where, EXIT_INVALID, "its shape needs %zu bytes of data, it has %zu", due, bytes.size - data);
  tensor.data = (void *)(bytes.data + data);
  return tensor;
}
