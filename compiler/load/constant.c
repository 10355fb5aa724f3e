/* SPDX-License-Identifier: MIT */
#include "load/constant.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "small_float.h"

static const JsonField FIELDS[] = {
    {"dtype", JSON_STRING, true}, {"shape", JSON_ARRAY, true}, {"data", JSON_ARRAY, true}, {NULL, JSON_ABSENT, false}};

DType read_dtype(Json json) {
  if (!json_expect(json, JSON_STRING)) return RNNCC_NONE;
  DType dtype = dtype_from_name(json_text(json));
  if (dtype == RNNCC_NONE)
    error_at(json_where(json), EXIT_UNSUPPORTED, "dtype \"%s\"; supported are %s",
             short_name(json_arena(json), json_text(json)), dtype_names);
  return dtype;
}

/* Axes of length 0 count as 1 for the overflow check, so that strides never overflow either. */
bool constant_read_shape(Json json, Constant *constant) {
  constant->rank = json_count(json);
  constant->shape = ARENA_ARRAY(json_arena(json), int64_t, constant->rank);
  int64_t count = 1, product = 1;
  int axis = 0;
  for (Json entry = json_first(json); entry.item; entry = json_next(entry), axis++) {
    int64_t length;
    if (!json_get_int(entry, 0, INT64_MAX, &length)) return false;
    constant->shape[axis] = length;
    count *= length > 0;
    if (__builtin_mul_overflow(product, length > 0 ? length : 1, &product) || product > INT64_MAX / 8) {
      error_at(json_where(json), EXIT_LIMIT, "the shape has more elements than memory can hold");
      return false;
    }
  }
  constant->count = (size_t)(count * product);
  return true;
}

/* JSON has no infinity and no NaN: they are written as strings. */
static bool read_special_float(Json json, double *out) {
  static const struct {
    const char *name;
    double value;
  } SPECIAL[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
  for (size_t i = 0; i < sizeof SPECIAL / sizeof *SPECIAL; i++) {
    if (strcmp(json_text(json), SPECIAL[i].name) != 0) continue;
    *out = SPECIAL[i].value;
    return true;
  }
  return json_expect(json, JSON_NUMBER);
}

/* What is not finite must have a code of its own; infinity would become NaN, and NaN -0. */
static bool read_coded(Json json, DType dtype, double value, void *out) {
  f64_to_coded(dtype, out, 0, value, false, POWER_NEAREST);
  double found = (double)coded_to_f32(dtype, out, 0);
  bool beyond = dtype == RNNCC_F4E2M1 ? !(fabs(value) < 7) : isfinite(value) && !isfinite(found);
  bool lost = isnan(value) != isnan(found) || isinf(value) != isinf(found) || (dtype == RNNCC_F8E8M0 && value < 0);
  if (!beyond && !lost) return true;
  error_at(json_where(json), EXIT_INVALID, "%g is past the range of %s", value, dtype_name(dtype));
  return false;
}

/* f32 is rounded from the text, not from f64, which would round twice. */
static bool read_float(Json json, DType dtype, void *out) {
  double value = 0;
  if (json_kind(json) == JSON_STRING ? !read_special_float(json, &value) : !json_get_double(json, &value)) return false;
  if (dtype == RNNCC_F64)
    *(double *)out = value;
  else if (dtype_is_coded(dtype))
    return read_coded(json, dtype, value, out);
  else if (json_kind(json) == JSON_NUMBER)
    return json_get_float(json, out);
  else
    *(float *)out = (float)value;
  return true;
}

/* Little-endian: the lowest bytes of the integer are the element. */
static bool read_integer(Json json, DType dtype, void *out) {
  int64_t value;
  if (!json_get_int(json, dtype_min(dtype), dtype_max(dtype), &value)) return false;
  memcpy(out, &value, dtype_size(dtype));
  return true;
}

static bool read_bool(Json json, uint8_t *out) {
  int64_t integer = 0;
  bool truth = false;
  if (json_kind(json) == JSON_BOOL ? !json_get_bool(json, &truth) : !json_get_int(json, 0, 1, &integer)) return false;
  *out = truth || integer;
  return true;
}

bool constant_read_element(Json json, DType dtype, void *out) {
  if (dtype_is_float(dtype)) return read_float(json, dtype, out);
  if (dtype == RNNCC_U64) return json_get_uint(json, out);
  return dtype == RNNCC_BOOL ? read_bool(json, out) : read_integer(json, dtype, out);
}

bool constant_read(Json json, const char *name, Constant *constant) {
  *constant = (Constant){.name = name, .where = json_where(json)};
  if (!json_check(json, FIELDS)) return false;
  Json dtype = json_member(json, "dtype"), data = json_member(json, "data");
  constant->dtype_name = json_text(dtype);
  constant->dtype = read_dtype(dtype);
  if (constant->dtype == RNNCC_NONE || !constant_read_shape(json_member(json, "shape"), constant)) return false;
  size_t given = (size_t)json_count(data);
  if (given != constant->count) {
    error_at(json_where(data), EXIT_INVALID, "%zu elements where the shape has %zu", given, constant->count);
    return false;
  }
  size_t size = dtype_size(constant->dtype);
  char *element = arena_array(json_arena(json), constant->count, size);
  constant->data = element;
  bool good = true;
  for (Json entry = json_first(data); entry.item; entry = json_next(entry), element += size)
    good &= constant_read_element(entry, constant->dtype, element);
  return good;
}

bool constant_check_bool(const Constant *constant, const uint8_t *data) {
  for (size_t i = 0; i < constant->count; i++) {
    if (data[i] <= 1) continue;
    error_at(constant->where, EXIT_INVALID, "expected 0 or 1 as %s element %zu, found %d", constant->dtype_name, i,
             data[i]);
    return false;
  }
  return true;
}

Value *constant_value(Graph *graph, const Constant *constant) {
  if (constant->dtype == RNNCC_NONE) {
    error_at(constant->where, EXIT_UNSUPPORTED, "the tensor has dtype %s; supported are %s", constant->dtype_name,
             dtype_names);
    return NULL;
  }
  if (constant->rank > MAX_RANK) {
    error_at(constant->where, EXIT_UNSUPPORTED, "the tensor has rank %d; at most %d is supported", constant->rank,
             MAX_RANK);
    return NULL;
  }
  Value *value = ARENA_NEW(graph->arena, Value);
  *value = (Value){.name = constant->name,
                   .id = -1,
                   .dtype = constant->dtype,
                   .rank = constant->rank,
                   .data = constant->data,
                   .is_weight = constant->is_weight,
                   .where = constant->where};
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, constant->rank);
  for (int axis = 0; axis < constant->rank; axis++) value->shape[axis] = dim_const(graph->dims, constant->shape[axis]);
  return value;
}
