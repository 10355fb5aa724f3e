/* SPDX-License-Identifier: MIT */
/*
 * TensorProto: extents, and elements as raw bytes, as a typed list, or in a file beside the model. Narrow types are
 * in the list of 32-bit integers, one element each; of less than 8 bits, one byte of packed elements each.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "load/onnx/reader.h"
#include "small_float.h"

static const size_t MAX_EXTERNAL_BYTES = (size_t)1 << 40;

/* By TensorProto.DataType, which has no gaps. */
static const OnnxType TYPES[] = {
#define DTYPE(id, code, type, text, bits, kind, use, safetensors, onnx, ...)                                           \
  [onnx] = {text, RNNCC_##id, (int)sizeof(type), bits},
#define FOREIGN(text, bits, safetensors, onnx) [onnx] = {text, RNNCC_NONE, (bits) / 8, bits},
#include "dtypes.def"
};

const OnnxType *onnx_type(int code) {
  int n = (int)(sizeof TYPES / sizeof *TYPES);
  return code > 0 && code < n ? &TYPES[code] : NULL;
}

const char *onnx_text(const char *text) { return text ? text : ""; }

/* Axes of length 0 count as 1 for the overflow check, so that strides never overflow either. */
static bool read_shape(OnnxReader *reader, const Onnx__TensorProto *proto, Constant *constant) {
  int64_t product = 1;
  bool empty = false;
  constant->rank = (int)proto->n_dims;
  constant->shape = ARENA_ARRAY(reader->arena, int64_t, constant->rank);
  for (int axis = 0; axis < constant->rank; axis++) {
    int64_t length = constant->shape[axis] = proto->dims[axis];
    if (length < 0) {
      error_at(constant->where, EXIT_INVALID, "axis %d of the tensor is %" PRId64 " long; expected 0 or more", axis,
               length);
      return false;
    }
    empty |= length == 0;
    if (__builtin_mul_overflow(product, length > 0 ? length : 1, &product) || product > INT64_MAX / 16) {
      error_at(constant->where, EXIT_LIMIT, "the tensor's shape has more elements than memory can hold");
      return false;
    }
  }
  constant->count = empty ? 0 : (size_t)product;
  return true;
}

static bool check_size(const Constant *constant, size_t given, size_t due, const char *of_what) {
  if (given == due) return true;
  error_at(constant->where, EXIT_INVALID, "the tensor has %zu %s where its shape and type %s take %zu", given, of_what,
           constant->dtype_name, due);
  return false;
}

/* Elements of less than 8 bits, the first one in the lowest bits of a byte, to a byte each. */
static void unpack(OnnxReader *reader, Constant *constant, const OnnxType *type, const uint8_t *packed) {
  uint8_t *data = arena_array(reader->arena, constant->count, 1);
  size_t each = 8 / (size_t)type->bits;
  bool is_signed = dtype_info(type->dtype)->kind == DTYPE_SIGNED;
  for (size_t i = 0; i < constant->count; i++) {
    uint8_t bits = unsigned_bits(packed[i / each] >> (i % each * (size_t)type->bits), type->bits);
    data[i] = is_signed ? (uint8_t)signed_bits(bits, type->bits) : bits;
  }
  constant->data = data;
}

static size_t packed_bytes(const Constant *constant, const OnnxType *type) {
  return type->bits < 8 ? (constant->count * (size_t)type->bits + 7) / 8 : constant->count * (size_t)type->bytes;
}

/* Bytes of the file, copied if they are not aligned to their elements. */
static bool take_raw(OnnxReader *reader, Constant *constant, const OnnxType *type, const uint8_t *data, size_t bytes) {
  if (!check_size(constant, bytes, packed_bytes(constant, type), "bytes")) return false;
  if (type->bits < 8) {
    unpack(reader, constant, type, data);
    return true;
  }
  if (type->dtype == RNNCC_BOOL && !constant_check_bool(constant, data)) return false;
  bool aligned = (uintptr_t)data % (size_t)type->bytes == 0;
  constant->data = aligned && data ? data : arena_copy(reader->arena, data ? data : (const uint8_t *)"", bytes);
  return true;
}

/* Elements of `bytes` bytes from integers that they must fit into. Half floats are given as their bits. */
static bool narrow(OnnxReader *reader, Constant *constant, const OnnxType *type, const int32_t *given) {
  bool is_signed = type->name[0] == 'i';
  int64_t span = (int64_t)1 << (8 * type->bytes);
  int64_t least = is_signed ? -span / 2 : 0, most = type->dtype == RNNCC_BOOL ? 1 : least + span - 1;
  uint8_t *data = arena_array(reader->arena, constant->count, (size_t)type->bytes);
  for (size_t i = 0; i < constant->count; i++) {
    if (given[i] < least || given[i] > most) {
      error_at(constant->where, EXIT_INVALID, "expected %s elements, %" PRId64 " to %" PRId64 "; element %zu is %d",
               type->name, least, most, i, given[i]);
      return false;
    }
    memcpy(data + i * (size_t)type->bytes, &given[i], (size_t)type->bytes); /* little-endian, as the targets are */
  }
  constant->data = data;
  return true;
}

static bool narrow_packed(OnnxReader *reader, Constant *constant, const OnnxType *type,
                          const Onnx__TensorProto *proto) {
  size_t bytes = packed_bytes(constant, type);
  if (!check_size(constant, proto->n_int32_data, bytes, "elements of `int32_data`")) return false;
  uint8_t *packed = arena_array(reader->arena, bytes, 1);
  for (size_t i = 0; i < bytes; i++) {
    int32_t given = packed[i] = (uint8_t)proto->int32_data[i];
    if (proto->int32_data[i] == given || proto->int32_data[i] == (int8_t)given) continue;
    error_at(constant->where, EXIT_INVALID, "expected bytes of %s elements, -128 to 255; `int32_data` has %d at %zu",
             type->name, proto->int32_data[i], i);
    return false;
  }
  unpack(reader, constant, type, packed);
  return true;
}

static bool narrow_unsigned(OnnxReader *reader, Constant *constant, const uint64_t *given) {
  uint32_t *data = ARENA_ARRAY(reader->arena, uint32_t, constant->count);
  for (size_t i = 0; i < constant->count; i++) {
    data[i] = (uint32_t)given[i];
    if (data[i] == given[i]) continue;
    error_at(constant->where, EXIT_INVALID, "expected u32 elements, 0 to %" PRIu32 "; element %zu is %" PRIu64,
             UINT32_MAX, i, given[i]);
    return false;
  }
  constant->data = data;
  return true;
}

static bool take_list(OnnxReader *reader, Constant *constant, const OnnxType *type, const Onnx__TensorProto *proto) {
  switch (proto->data_type) {
#define LIST(TYPE, field)                                                                                              \
  case ONNX__TENSOR_PROTO__DATA_TYPE__##TYPE:                                                                          \
    constant->data = proto->field;                                                                                     \
    return check_size(constant, proto->n_##field, constant->count, "elements");
    LIST(FLOAT, float_data)
    LIST(DOUBLE, double_data)
    LIST(INT64, int64_data)
    LIST(UINT64, uint64_data)
    LIST(INT32, int32_data)
#undef LIST
  case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    return check_size(constant, proto->n_uint64_data, constant->count, "elements") &&
           narrow_unsigned(reader, constant, proto->uint64_data);
  default:
    if (type->bits < 8) return narrow_packed(reader, constant, type, proto);
    return check_size(constant, proto->n_int32_data, constant->count, "elements") &&
           narrow(reader, constant, type, proto->int32_data);
  }
}

static const char *external_entry(const Onnx__TensorProto *proto, const char *key) {
  for (size_t i = 0; i < proto->n_external_data; i++)
    if (strcmp(onnx_text(proto->external_data[i]->key), key) == 0) return onnx_text(proto->external_data[i]->value);
  return NULL;
}

static FileBytes external_file(OnnxReader *reader, const char *name, Location where) {
  for (const ExternalFile *file = reader->external; file; file = file->next)
    if (strcmp(file->name, name) == 0) return file->bytes;
  ExternalFile *file = ARENA_NEW(reader->arena, ExternalFile);
  uint8_t digest[SHA256_BYTES];
  file->name = name;
  ModelFiles *files = reader->settings ? reader->settings->files : NULL;
  file->bytes = model_file_read_beside(files, reader->arena, reader->file, name, MAX_EXTERNAL_BYTES, where);
  file->next = reader->external;
  reader->external = file;
  sha256(file->bytes.data, file->bytes.size, digest);
  sha256_add(&reader->hash, digest, sizeof digest);
  return file->bytes;
}

/* False after an error. An entry that is absent leaves *number. */
static bool external_number(const Onnx__TensorProto *proto, const char *key, Location where, uint64_t *number) {
  const char *text = external_entry(proto, key);
  if (!text) return true;
  char *end;
  size_t digits = strspn(text, "0123456789");
  *number = strtoull(text, &end, 10);
  if (digits > 0 && digits < 20 && !text[digits]) return true;
  error_at(where, EXIT_INVALID, "expected a number of 1 to 19 digits as the external data's %s, found \"%.40s\"", key,
           text);
  return false;
}

static bool take_external(OnnxReader *reader, Constant *constant, const OnnxType *type,
                          const Onnx__TensorProto *proto) {
  const char *name = external_entry(proto, "location");
  if (!name) {
    error_at(constant->where, EXIT_INVALID, "the tensor's data is said to be external, without a location");
    return false;
  }
  FileBytes file = external_file(reader, name, constant->where);
  uint64_t offset = 0, length;
  if (!external_number(proto, "offset", constant->where, &offset)) return false;
  if (offset > file.size) {
    error_at(constant->where, EXIT_INVALID, "the data begins at byte %" PRIu64 " of \"%s\", which has %zu bytes",
             offset, short_name(reader->arena, name), file.size);
    return false;
  }
  length = file.size - offset;
  if (!external_number(proto, "length", constant->where, &length)) return false;
  if (length > file.size - offset) {
    error_at(constant->where, EXIT_INVALID,
             "the data is %" PRIu64 " bytes from byte %" PRIu64 " of \"%s\" on, which has %zu bytes", length, offset,
             short_name(reader->arena, name), file.size);
    return false;
  }
  return take_raw(reader, constant, type, file.data + offset, length);
}

bool onnx_read_tensor(OnnxReader *reader, const Onnx__TensorProto *proto, const char *name, Location where,
                      Constant *constant) {
  const OnnxType *type = onnx_type(proto->data_type);
  *constant = (Constant){.name = name, .where = where};
  if (!proto->data_type) {
    error_at(where, EXIT_INVALID, "the tensor has no element type");
    return false;
  }
  if (!type) {
    error_at(where, EXIT_UNSUPPORTED, "the tensor is of element type %d, which ONNX does not have", proto->data_type);
    return false;
  }
  constant->dtype_name = type->name;
  constant->dtype = type->dtype;
  if (!read_shape(reader, proto, constant)) return false;
  if (constant->dtype == RNNCC_NONE) return true; /* an error only if a node reads it */
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return take_external(reader, constant, type, proto);
  bool good = proto->has_raw_data ? take_raw(reader, constant, type, proto->raw_data.data, proto->raw_data.len)
                                  : take_list(reader, constant, type, proto);
  if (good && !constant->data) constant->data = arena_alloc(reader->arena, 1); /* of no elements */
  return good;
}
