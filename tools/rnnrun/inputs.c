/* SPDX-License-Identifier: MIT */
/*
 * Inputs come in two rounds: first files, because their shapes give the run-time dimensions; then the fills, whose
 * shapes follow from the dimensions: those known from files or --dim, else the module's optimum.
 */
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "tensors.h"

typedef struct Dims {
  int64_t *values;     /* by index into info->dims; -1: not known yet */
  const char **source; /* what set it, for messages */
} Dims;

const char *file_path(const char *option, const char *name, const char *value) {
  if (value[0] != '@' || !value[1]) fail(EXIT_INPUT, "--%s %s=%s: expected @FILE", option, name, value);
  return value + 1;
}

/* "2x3xf32=@x.bin": lengths, then the type. NULL unless the value has that form; else the path. */
static const char *parse_raw(const char *value, rnncc_tensor *tensor) {
  const char *equals = strchr(value, '=');
  if (!equals || equals[1] != '@') return NULL;
  const char *at = value;
  for (char *end; *at >= '0' && *at <= '9'; at = end + 1) {
    if (tensor->rank == RNNCC_MAX_RANK) return NULL;
    int64_t length = strtoll(at, &end, 10);
    if (*end != 'x') return NULL;
    tensor->shape[tensor->rank++] = length;
  }
  tensor->dtype = dtype_from_text(at, (size_t)(equals - at));
  return tensor->dtype == RNNCC_NONE ? NULL : equals + 2;
}

static rnncc_tensor read_file(const rnncc_tensor_info *expected, const char *value) {
  const char *name = expected->name;
  if (value[0] == '@') return npy_read(file_path("input", name, value), expected->dtype);
  rnncc_tensor tensor = {.struct_size = sizeof tensor};
  const char *path = parse_raw(value, &tensor);
  if (!path)
    fail(EXIT_INPUT, "--input %s=%s: expected @x.npy, 2x3xf32=@x.bin, zeros, random or random:SEED", name, value);
  tensor.bytes = tensor_bytes(tensor.dtype, tensor.rank, tensor.shape);
  if (tensor.bytes == SIZE_MAX) fail(EXIT_INPUT, "--input %s=%s: shape too large", name, value);
  tensor.data = raw_read(path, tensor.bytes);
  return tensor;
}

static int is_fill(const char *value) {
  return !strcmp(value, "zeros") || !strcmp(value, "random") || !strncmp(value, "random:", 7);
}

/* splitmix64: reproducible everywhere, which rand() is not. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Floats in [-1, 1); integers 0 or 1, which are indices and lengths that nearly any model takes. */
static void fill_random(rnncc_tensor *tensor, uint64_t seed) {
  size_t size = dtype_bytes(tensor->dtype);
  for (size_t i = 0; i < tensor->bytes / size; i++) {
    uint64_t bits = next_random(&seed);
    double number = (double)(int64_t)bits * 0x1p-63;
    if (dtype_is_float(tensor->dtype))
      set_float_element(tensor, i, number);
    else
      ((unsigned char *)tensor->data)[i * size] = bits >> 63;
  }
}

static void set_dim(const rnncc_info *info, Dims *dims, int index, int64_t value, const char *source) {
  const rnncc_dim_info *dim = rnncc_dim_at(info, index);
  if (value < dim->min || value > dim->max)
    fail(EXIT_INPUT, "%s: %s = %lld, but this module takes %lld to %lld", source, dim->name, (long long)value,
         (long long)dim->min, (long long)dim->max);
  if (dims->values[index] >= 0 && dims->values[index] != value)
    fail(EXIT_INPUT, "%s: %s = %lld, but %lld by %s", source, dim->name, (long long)value,
         (long long)dims->values[index], dims->source[index]);
  dims->values[index] = value;
  dims->source[index] = source;
}

/* Of element i of a module's list, whose structs begin with a name and have so many bytes there. */
static const char *name_at(const void *list, size_t bytes, int i) {
  return *(const char *const *)((const char *)list + bytes * (size_t)i);
}

/* `"x", "k" and 3 more`. */
static const char *names_there(const void *list, size_t bytes, int count) {
  enum { MOST = 16 };
  static char text[4096];
  size_t length = 0;
  if (!count) return "none";
  for (int i = 0; i < count && i < MOST && length < sizeof text; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s\"%s\"", i ? ", " : "", name_at(list, bytes, i));
  if (count > MOST && length < sizeof text) snprintf(text + length, sizeof text - length, " and %d more", count - MOST);
  return text;
}

static Dims given_dims(const rnncc_info *info, const Assignments *given) {
  Dims dims = {allocate(sizeof(int64_t) * (size_t)info->n_dims), allocate(sizeof(char *) * (size_t)info->n_dims)};
  for (int i = 0; i < info->n_dims; i++) dims.values[i] = -1;
  for (int i = 0; i < given->count; i++) {
    int64_t value;
    if (!parse_integer(given->items[i].value, &value))
      fail(EXIT_INPUT, "--dim %s=%s: expected a whole number", given->items[i].name, given->items[i].value);
    int index = 0;
    while (index < info->n_dims && strcmp(rnncc_dim_at(info, index)->name, given->items[i].name) != 0) index++;
    if (index == info->n_dims)
      fail(EXIT_INPUT, "--dim %s: the module has no such dimension; it has %s", given->items[i].name,
           names_there(info->dims, info->dim_size, info->n_dims));
    set_dim(info, &dims, index, value, "--dim");
  }
  return dims;
}

/* Checks rank, type and fixed lengths of a tensor from a file. Its run-time dimensions go to dims. */
static void check_file(const rnncc_info *info, const rnncc_tensor_info *expected, const rnncc_tensor *tensor,
                       Dims *dims) {
  char got[SHAPE_TEXT];
  shape_text(got, tensor->rank, tensor->shape);
  if (tensor->dtype != expected->dtype)
    fail(EXIT_INPUT, "input %s is %s, but must be %s", expected->name, dtype_text(tensor->dtype),
         dtype_text(expected->dtype));
  if (tensor->rank != expected->rank)
    fail(EXIT_INPUT, "input %s is %s, but must have rank %d", expected->name, got, expected->rank);
  for (int axis = 0; axis < tensor->rank; axis++) {
    if (expected->shape[axis] >= 0 && expected->shape[axis] != tensor->shape[axis])
      fail(EXIT_INPUT, "input %s is %s, but axis %d must be %lld long", expected->name, got, axis,
           (long long)expected->shape[axis]);
    if (expected->dim[axis] >= 0) set_dim(info, dims, expected->dim[axis], tensor->shape[axis], expected->name);
  }
}

static rnncc_tensor make_fill(const rnncc_info *info, const rnncc_tensor_info *expected, const char *fill,
                              const Dims *dims) {
  rnncc_tensor tensor = {.struct_size = sizeof tensor, .dtype = expected->dtype, .rank = expected->rank};
  for (int axis = 0; axis < tensor.rank; axis++) {
    int dim = expected->dim[axis];
    if (expected->shape[axis] < 0 && dim < 0)
      fail(EXIT_INPUT, "input %s: the length of axis %d is not a dimension's own; give a file", expected->name, axis);
    tensor.shape[axis] = expected->shape[axis] >= 0 ? expected->shape[axis]
                         : dims->values[dim] >= 0   ? dims->values[dim]
                                                    : rnncc_dim_at(info, dim)->opt;
  }
  tensor.bytes = tensor_bytes(tensor.dtype, tensor.rank, tensor.shape);
  tensor.data = allocate(tensor.bytes);
  int64_t seed = 0;
  if (fill[0] == 'r' && fill[6] == ':' && !parse_integer(fill + 7, &seed))
    fail(EXIT_INPUT, "--input %s=%s: expected a whole number after random:", expected->name, fill);
  if (fill[0] == 'r') fill_random(&tensor, (uint64_t)seed);
  return tensor;
}

void check_names(const Assignments *assignments, const char *option, const rnncc_tensor_info *tensors, size_t size,
                 int count) {
  for (int i = 0; i < assignments->count; i++) {
    int found = 0;
    for (int t = 0; t < count; t++) found |= !strcmp(name_at(tensors, size, t), assignments->items[i].name);
    if (!found)
      fail(EXIT_INPUT, "--%s %s: the module has no such %s; it has %s", option, assignments->items[i].name,
           option[0] == 'i' ? "input" : "output", names_there(tensors, size, count));
  }
}

rnncc_tensor *make_inputs(const rnncc_info *info, const Arguments *arguments, const char *standard) {
  check_names(&arguments->inputs, "input", info->inputs, info->tensor_size, info->n_inputs);
  Dims dims = given_dims(info, &arguments->dims);
  rnncc_tensor *inputs = allocate(sizeof *inputs * (size_t)info->n_inputs);
  const char **fills = allocate(sizeof *fills * (size_t)info->n_inputs);
  for (int i = 0; i < info->n_inputs; i++) {
    const char *value = assignment_find(&arguments->inputs, rnncc_input_at(info, i)->name);
    if (!value) value = standard;
    if (!value)
      fail(EXIT_INPUT, "input %s is missing: --input %s=@x.npy, zeros or random", rnncc_input_at(info, i)->name,
           rnncc_input_at(info, i)->name);
    if (is_fill(value)) {
      fills[i] = value;
      continue;
    }
    inputs[i] = read_file(rnncc_input_at(info, i), value);
    check_file(info, rnncc_input_at(info, i), &inputs[i], &dims);
  }
  for (int i = 0; i < info->n_inputs; i++)
    if (fills[i]) inputs[i] = make_fill(info, rnncc_input_at(info, i), fills[i], &dims);
  free(fills);
  free(dims.values);
  free(dims.source);
  return inputs;
}
