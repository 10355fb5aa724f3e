/* SPDX-License-Identifier: MIT */
/*
 * A .npy file is magic, version, header length (u16 in version 1, u32 in version 2), a Python dict as text, data:
 *   \x93NUMPY 01 00 76 00 {'descr': '<f4', 'fortran_order': False, 'shape': (50, 1, 40), }<spaces>\n ...
 * (numpy.lib.format). The dict is read by a cursor over that text; anything NumPy would not write is refused.
 */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_LIMIT = 1 << 16 };

/* A FIFO does not wait for its writer. */
static FILE *open_file(const char *path) {
  struct stat status;
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &status) != 0) fail(EXIT_INPUT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(EXIT_INPUT, "%s: not a regular file", path);
  FILE *file = fdopen(descriptor, "rb");
  if (!file) fail(EXIT_INPUT, "%s: %s", path, strerror(errno));
  return file;
}

static void read_exactly(FILE *file, const char *path, void *data, size_t bytes, const char *what) {
  size_t got = fread(data, 1, bytes, file);
  if (got != bytes)
    fail(EXIT_INPUT, "%s: %s: expected %zu bytes, found %zu%s%s", path, what, bytes, got, ferror(file) ? ": " : "",
         ferror(file) ? strerror(errno) : "");
}

/* The rest of the file, which must be that long: checked before a size from a header is allocated. */
static void *read_rest(FILE *file, const char *path, size_t bytes) {
  struct stat status;
  if (fstat(fileno(file), &status) != 0) fail(EXIT_INPUT, "%s: %s", path, strerror(errno));
  size_t left = (size_t)(status.st_size - ftello(file));
  if (left != bytes) fail(EXIT_INPUT, "%s: its shape needs %zu bytes of data, it has %zu", path, bytes, left);
  void *data = allocate(bytes);
  read_exactly(file, path, data, bytes, "data");
  return data;
}

typedef struct Cursor {
  const char *at, *path;
} Cursor;

static _Noreturn void bad_header(const Cursor *cursor) {
  fail(EXIT_INPUT, "%s: not a .npy header that NumPy writes, at \"%.20s\"", cursor->path, cursor->at);
}

static int accept(Cursor *cursor, const char *text) {
  cursor->at += strspn(cursor->at, " ");
  size_t length = strlen(text);
  if (strncmp(cursor->at, text, length) != 0) return 0;
  cursor->at += length;
  return 1;
}

static void expect(Cursor *cursor, const char *text) {
  if (!accept(cursor, text)) bad_header(cursor);
}

static void read_descr(Cursor *cursor, rnncc_tensor *tensor, rnncc_dtype expected) {
  if (accept(cursor, "[")) fail(EXIT_INPUT, "%s: structured arrays are not supported", cursor->path);
  expect(cursor, "'");
  size_t length = strcspn(cursor->at, "'");
  tensor->dtype = dtype_from_npy(cursor->at, length, expected);
  char known[NPY_TYPES];
  if (tensor->dtype == RNNCC_NONE)
    fail(EXIT_INPUT, "%s: dtype '%.*s' is not supported; these are:%s", cursor->path, (int)length, cursor->at,
         npy_types(known));
  cursor->at += length;
  expect(cursor, "'");
}

static void read_order(Cursor *cursor) {
  if (accept(cursor, "True"))
    fail(EXIT_INPUT, "%s: Fortran order is not supported; save numpy.ascontiguousarray(a)", cursor->path);
  expect(cursor, "False");
}

/* Digits, of which the first is 0 only if it is alone. */
static int64_t read_extent(Cursor *cursor) {
  accept(cursor, "");
  size_t digits = strspn(cursor->at, "0123456789");
  if (digits == 0 || (digits > 1 && cursor->at[0] == '0')) bad_header(cursor);
  errno = 0;
  int64_t extent = strtoll(cursor->at, NULL, 10);
  if (errno) bad_header(cursor);
  cursor->at += digits;
  return extent;
}

static void read_shape(Cursor *cursor, rnncc_tensor *tensor) {
  expect(cursor, "(");
  while (!accept(cursor, ")")) {
    if (tensor->rank == RNNCC_MAX_RANK) fail(EXIT_INPUT, "%s: rank above %d", cursor->path, RNNCC_MAX_RANK);
    tensor->shape[tensor->rank++] = read_extent(cursor);
    if (!accept(cursor, ",")) {
      expect(cursor, ")");
      return;
    }
  }
}

static void read_dict(Cursor *cursor, rnncc_tensor *tensor, rnncc_dtype expected) {
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

/* The text of the dict, of *length bytes, zero-terminated; the caller frees it. */
static char *read_header(FILE *file, const char *path, size_t *length) {
  unsigned char start[8], length_bytes[4] = {0};
  read_exactly(file, path, start, sizeof start, "start of a .npy file");
  if (memcmp(start, "\x93NUMPY", 6) != 0) fail(EXIT_INPUT, "%s: not a .npy file", path);
  if (start[6] != 1 && start[6] != 2)
    fail(EXIT_INPUT, "%s: .npy version %d is not supported; 1 and 2 are", path, start[6]);
  read_exactly(file, path, length_bytes, start[6] == 1 ? 2 : 4, ".npy header length");
  *length =
      length_bytes[0] | (size_t)length_bytes[1] << 8 | (size_t)length_bytes[2] << 16 | (size_t)length_bytes[3] << 24;
  if (*length > HEADER_LIMIT) fail(EXIT_INPUT, "%s: .npy header of %zu bytes", path, *length);
  char *header = allocate(*length + 1);
  read_exactly(file, path, header, *length, ".npy header");
  return header;
}

rnncc_tensor npy_read(const char *path, rnncc_dtype expected) {
  rnncc_tensor tensor = {.struct_size = sizeof tensor};
  FILE *file = open_file(path);
  size_t length;
  char *header = read_header(file, path, &length);
  Cursor cursor = {header, path};
  read_dict(&cursor, &tensor, expected);
  cursor.at += strspn(cursor.at, " \n");
  if (cursor.at != header + length) bad_header(&cursor);
  free(header);

  tensor.bytes = tensor_bytes(tensor.dtype, tensor.rank, tensor.shape);
  if (tensor.bytes == SIZE_MAX) fail(EXIT_INPUT, "%s: shape too large", path);
  tensor.data = read_rest(file, path, tensor.bytes);
  fclose(file);
  return tensor;
}

void *raw_read(const char *path, size_t bytes) {
  FILE *file = open_file(path);
  void *data = read_rest(file, path, bytes);
  fclose(file);
  return data;
}

int npy_write(FILE *stream, const rnncc_tensor *tensor) {
  char header[512];
  int length =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype_npy(tensor->dtype));
  for (int axis = 0; axis < tensor->rank; axis++)
    length += snprintf(header + length, sizeof header - (size_t)length, "%s%lld%s", axis ? " " : "",
                       (long long)tensor->shape[axis], axis + 1 < tensor->rank || axis == 0 ? "," : "");
  length += snprintf(header + length, sizeof header - (size_t)length, "), }");
  int padded = (10 + length + 1 + 63) / 64 * 64 - 10; /* data starts on a 64-byte boundary */
  unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)padded, (unsigned char)(padded >> 8)};
  fwrite(start, 1, sizeof start, stream);
  fprintf(stream, "%s%*s", header, padded - length, "\n");
  fwrite(tensor->data, 1, tensor_bytes(tensor->dtype, tensor->rank, tensor->shape), stream);
  return !ferror(stream);
}
