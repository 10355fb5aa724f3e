/* SPDX-License-Identifier: MIT */
#include "load/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100000000 }; /* the latter as in the format's own reader */

static const JsonField FIELDS[] = {{"dtype", JSON_STRING, true},
                                   {"shape", JSON_ARRAY, true},
                                   {"data_offsets", JSON_ARRAY, true},
                                   {NULL, JSON_ABSENT, false}};

/* Includes unsupported types: a file may hold tensors that the model never reads. */
static const struct {
  const char *name;
  int bytes;
  DType dtype;
} TYPES[] = {
#define DTYPE(id, code, type, text, bits, kind, use, safetensors, ...) {safetensors, (int)sizeof(type), RNNCC_##id},
#define FOREIGN(text, bits, safetensors, onnx) {safetensors, (bits) / 8, RNNCC_NONE},
#include "dtypes.def"
};

typedef struct Range {
  int64_t begin, end; /* bytes after the header */
  Constant *constant;
} Range;

/* Bytes of an element, 0 after an error. */
static int read_type(Json json, Constant *constant) {
  constant->dtype_name = json_text(json);
  for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++) {
    if (!TYPES[t].name || strcmp(TYPES[t].name, constant->dtype_name) != 0) continue;
    constant->dtype = TYPES[t].dtype;
    return TYPES[t].bytes;
  }
  error_at(json_where(json), EXIT_UNSUPPORTED, "dtype \"%s\"; supported are %s",
           short_name(json_arena(json), constant->dtype_name), dtype_names);
  return 0;
}

static bool read_range(Json json, int64_t data_bytes, Range *range) {
  Json begin = json_first(json), end = begin.item ? json_next(begin) : begin;
  if (json_count(json) != 2) {
    error_at(json_where(json), EXIT_INVALID, "expected two offsets: [begin, end]");
    return false;
  }
  return json_get_int(begin, 0, data_bytes, &range->begin) && json_get_int(end, range->begin, data_bytes, &range->end);
}

static bool read_entry(Json json, const uint8_t *data, int64_t data_bytes, Range *range) {
  Constant *constant = range->constant;
  *constant = (Constant){.name = json_key(json), .where = json_where(json)};
  if (!json_check(json, FIELDS)) return false;
  int element = read_type(json_member(json, "dtype"), constant);
  if (element == 0 || !constant_read_shape(json_member(json, "shape"), constant)) return false;
  if (!read_range(json_member(json, "data_offsets"), data_bytes, range)) return false;
  uint64_t due = (uint64_t)constant->count * (uint64_t)element, given = (uint64_t)(range->end - range->begin);
  if (given != due) {
    error_at(constant->where, EXIT_INVALID,
             "%" PRIu64 " bytes of data where the shape has %zu elements of %s: %" PRIu64 " bytes", given,
             constant->count, constant->dtype_name, due);
    return false;
  }
  constant->data = data + range->begin;
  return true;
}

static int by_begin(const void *a, const void *b) {
  const Range *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

/* Overlaps let one tensor forge another; gaps hide bytes that no reader looks at. */
static void check_coverage(const char *file, Range *ranges, int count, int64_t data_bytes) {
  int64_t covered = 0;
  qsort(ranges, (size_t)count, sizeof *ranges, by_begin);
  for (int i = 0; i < count; i++) {
    if (ranges[i].begin != covered)
      error_at(ranges[i].constant->where, EXIT_INVALID,
               "the data begins at %" PRId64 ", %s the data before it, which ends at %" PRId64, ranges[i].begin,
               ranges[i].begin < covered ? "inside" : "with a gap after", covered);
    if (ranges[i].end > covered) covered = ranges[i].end;
  }
  if (covered != data_bytes)
    error_at(LOCATION_FILE(file), EXIT_INVALID, "%" PRId64 " bytes after the last tensor belong to none",
             data_bytes - covered);
}

static void check_metadata(Json json) {
  if (!json_expect(json, JSON_OBJECT)) return;
  for (Json entry = json_first(json); entry.item; entry = json_next(entry)) json_expect(entry, JSON_STRING);
}

/* The header's text, after its length was checked. */
static size_t header_bytes(const char *file, FileBytes bytes) {
  if (bytes.size < LENGTH_BYTES)
    fatal_at(LOCATION_FILE(file), EXIT_INVALID, "%zu bytes are no safetensors file: it begins with 8 bytes of length",
             bytes.size);
  uint64_t length;
  memcpy(&length, bytes.data, sizeof length);
  if (length > bytes.size - LENGTH_BYTES)
    fatal_at(LOCATION_FILE(file), EXIT_INVALID, "the header is said to have %" PRIu64 " bytes; the file has %zu",
             length, bytes.size);
  if (length > MAX_HEADER_BYTES)
    fatal_at(LOCATION_FILE(file), EXIT_LIMIT, "the header has %" PRIu64 " bytes; at most %d are read", length,
             MAX_HEADER_BYTES);
  return length;
}

/* Usually nothing moves, because writers pad the header; the format does not require it. */
static void align(Arena *arena, Constant *constant) {
  size_t element = constant->dtype == RNNCC_NONE ? 1 : dtype_size(constant->dtype);
  if ((uintptr_t)constant->data % element == 0) return;
  constant->data = arena_copy(arena, constant->data, constant->count * element);
}

Constant *safetensors_read(Arena *arena, const char *file, FileBytes bytes, int *count) {
  size_t header = header_bytes(file, bytes);
  const uint8_t *data = bytes.data + LENGTH_BYTES + header;
  int64_t data_bytes = (int64_t)(bytes.size - LENGTH_BYTES - header);
  Json root = json_parse(arena, file, (const char *)bytes.data + LENGTH_BYTES, header, LENGTH_BYTES);
  if (!json_expect(root, JSON_OBJECT)) stop_on_errors();
  Constant *constants = ARENA_ARRAY(arena, Constant, json_count(root));
  Range *ranges = ARENA_ARRAY(arena, Range, json_count(root));
  int n = 0, before = error_count();
  for (Json entry = json_first(root); entry.item; entry = json_next(entry)) {
    if (strcmp(json_key(entry), "__metadata__") == 0) {
      check_metadata(entry);
      continue;
    }
    ranges[n].constant = &constants[n];
    if (read_entry(entry, data, data_bytes, &ranges[n])) n++;
  }
  if (error_count() > before) stop_on_errors();
  check_coverage(file, ranges, n, data_bytes);
  for (int i = 0; i < n; i++) {
    if (constants[i].dtype == RNNCC_BOOL) constant_check_bool(&constants[i], constants[i].data);
    align(arena, &constants[i]);
  }
  if (error_count() > before) stop_on_errors();
  *count = n;
  return constants;
}
