/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "small_float.h"
#include "topology.h"

_Noreturn void fail(int exit_code, const char *format, ...) {
  char message[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  static char line[sizeof message * 5]; /* written at once: other processes may write to the same file */
  setvbuf(stderr, line, _IOLBF, sizeof line);
  fprintf(stderr, "%s: error: ", program_invocation_short_name);
  for (const char *c = message; *c; c++) {
    if (iscntrl((unsigned char)*c))
      fprintf(stderr, "\\x%02x", (unsigned char)*c);
    else
      fputc(*c, stderr);
  }
  fputc('\n', stderr);
  exit(exit_code);
}

void check_stdout(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) fail(EXIT_ENVIRONMENT, "cannot write to stdout");
}

void *allocate(size_t bytes) {
  if (bytes > SIZE_MAX - 64) fail(EXIT_RESOURCE, "out of memory");
  size_t rounded = (bytes + 64) / 64 * 64;
  void *memory = aligned_alloc(64, rounded);
  if (!memory) fail(EXIT_RESOURCE, "out of memory (%zu bytes)", bytes);
  return memset(memory, 0, rounded);
}

uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

enum { KIND_NONE, KIND_FLOAT, KIND_SIGNED, KIND_UNSIGNED, KIND_BOOL };

static const struct {
  const char *text, *npy;
  size_t bytes;
  int bits, kind;
} dtypes[] = {
#define DTYPE(id, code, type, text, bits, kind, use, safetensors, onnx, onnx_name, npy)                                \
  [RNNCC_##id] = {text, npy, sizeof(type), bits, KIND_##kind},
#include "dtypes.def"
};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const char *npy_types(char text[NPY_TYPES]) {
  *text = 0;
  for (rnncc_dtype dtype = RNNCC_F32; dtype < DTYPES; dtype++)
    if (!strstr(text, dtypes[dtype].npy)) strcat(strcat(text, " "), dtypes[dtype].npy);
  return text;
}

static const char *known(rnncc_dtype dtype, const char *name) { return dtype && dtype < DTYPES ? name : "unknown"; }

size_t dtype_bytes(rnncc_dtype dtype) { return dtype < DTYPES ? dtypes[dtype].bytes : 0; }
const char *dtype_text(rnncc_dtype dtype) { return known(dtype, dtypes[dtype % DTYPES].text); }
const char *dtype_npy(rnncc_dtype dtype) { return known(dtype, dtypes[dtype % DTYPES].npy); }

rnncc_dtype dtype_from_text(const char *text, size_t length) {
  for (rnncc_dtype dtype = RNNCC_F32; dtype < DTYPES; dtype++)
    if (strlen(dtypes[dtype].text) == length && !memcmp(dtypes[dtype].text, text, length)) return dtype;
  return RNNCC_NONE;
}

/* Of one byte there is no order, which NumPy writes as '|' or '<'. It writes "<f1" for f8e5m2, and cannot read that. */
static bool is_npy(rnncc_dtype dtype, const char *text, size_t length) {
  const char *npy = dtypes[dtype].npy;
  bool ordered = dtypes[dtype].bytes > 1 || strchr("|<", *text) == NULL;
  if (dtype == RNNCC_F8E5M2 && length == 3 && !memcmp(text, "<f1", length)) return true;
  return strlen(npy) == length && !memcmp(npy + !ordered, text + !ordered, length - !ordered);
}

rnncc_dtype dtype_from_npy(const char *text, size_t length, rnncc_dtype expected) {
  if (length == 0) return RNNCC_NONE;
  if (expected < DTYPES && expected && is_npy(expected, text, length)) return expected;
  for (rnncc_dtype dtype = RNNCC_F32; dtype < DTYPES; dtype++)
    if (is_npy(dtype, text, length)) return dtype;
  return RNNCC_NONE;
}

bool dtype_is_float(rnncc_dtype dtype) { return dtypes[dtype].kind == KIND_FLOAT; }
bool dtype_is_unsigned(rnncc_dtype dtype) { return dtypes[dtype].kind == KIND_UNSIGNED; }

double float_element(const rnncc_tensor *tensor, int64_t i) {
  if (tensor->dtype == RNNCC_F64) return ((const double *)tensor->data)[i];
  if (tensor->dtype == RNNCC_F32) return (double)((const float *)tensor->data)[i];
  return (double)coded_to_f32(tensor->dtype, tensor->data, i);
}

void set_float_element(rnncc_tensor *tensor, size_t i, double value) {
  if (tensor->dtype == RNNCC_F64)
    ((double *)tensor->data)[i] = value;
  else if (tensor->dtype == RNNCC_F32)
    ((float *)tensor->data)[i] = (float)value;
  else
    f64_to_coded(tensor->dtype, tensor->data, (int64_t)i, value, 1, POWER_NEAREST);
}

int64_t integer_element(const rnncc_tensor *tensor, int64_t i) {
  size_t size = dtype_bytes(tensor->dtype);
  int64_t element = 0;
  memcpy(&element, (const char *)tensor->data + (size_t)i * size, size);
  int bits = dtypes[tensor->dtype].bits;
  uint64_t high = (uint64_t)element << (64 - bits);
  return dtypes[tensor->dtype].kind == KIND_SIGNED ? (int64_t)high >> (64 - bits) : (int64_t)(high >> (64 - bits));
}

double any_element(const rnncc_tensor *tensor, int64_t i) {
  if (dtype_is_float(tensor->dtype)) return float_element(tensor, i);
  int64_t integer = integer_element(tensor, i);
  return dtype_is_unsigned(tensor->dtype) ? (double)(uint64_t)integer : (double)integer;
}

size_t tensor_bytes(rnncc_dtype dtype, int rank, const int64_t *shape) {
  size_t bytes = dtype_bytes(dtype);
  for (int axis = 0; axis < rank; axis++)
    if (shape[axis] < 0 || __builtin_mul_overflow(bytes, (size_t)shape[axis], &bytes)) return SIZE_MAX;
  return bytes;
}

const char *shape_text(char text[SHAPE_TEXT], int rank, const int64_t *shape) {
  if (rank == 0) return strcpy(text, "scalar");
  int length = 0;
  for (int axis = 0; axis < rank; axis++)
    length += snprintf(text + length, (size_t)(SHAPE_TEXT - length), "%s%lld", axis ? "x" : "", (long long)shape[axis]);
  return text;
}

int parse_integer(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && !isspace((unsigned char)*text);
}

void write_json_string(FILE *file, const char *text) {
  putc('"', file);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c < 0x20 || *c == 0x7f || strchr("<>&", *c))
      fprintf(file, "\\u%04x", *c);
    else
      fprintf(file, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
  }
  putc('"', file);
}

int cpu_count(void) {
  CpuMask mask;
  return sched_getaffinity(0, sizeof mask, &mask.set) == 0 ? CPU_COUNT_S(sizeof mask, &mask.set) : 1;
}

/* Linux on ARM gives no name, but numbers by which it can be looked up. */
const char *cpu_name(char name[CPU_NAME_BYTES]) {
  static const char *const labels[] = {"model name", "CPU part"};
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[CPU_NAME_BYTES];
  strcpy(name, "unknown");
  for (int found = 0; file && !found && fgets(line, sizeof line, file);)
    for (size_t i = 0; i < sizeof labels / sizeof *labels && !found; i++) {
      const char *value = strncmp(line, labels[i], strlen(labels[i])) == 0 ? strstr(line, ": ") : NULL;
      found = value != NULL;
      if (value) snprintf(name, CPU_NAME_BYTES, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    }
  if (file) fclose(file);
  return name;
}
