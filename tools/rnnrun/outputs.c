/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "tensors.h"

rnncc_tensor *make_outputs(const rnncc_info *info) {
  rnncc_tensor *outputs = allocate(sizeof *outputs * (size_t)info->n_outputs);
  for (int i = 0; i < info->n_outputs; i++) {
    const rnncc_tensor_info *expected = rnncc_output_at(info, i);
    outputs[i] = (rnncc_tensor){.struct_size = sizeof(rnncc_tensor), .dtype = expected->dtype, .rank = expected->rank};
    outputs[i].bytes = tensor_bytes(expected->dtype, expected->rank, expected->max_shape);
    outputs[i].data = allocate(outputs[i].bytes);
  }
  return outputs;
}

void free_tensors(rnncc_tensor *tensors, int count) {
  for (int i = 0; i < count; i++) free(tensors[i].data);
  free(tensors);
}

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && !strcmp(text + length - end_length, end);
}

static int write_data(FILE *file, const char *path, const rnncc_tensor *tensor) {
  if (ends_with(path, ".npy")) return npy_write(file, tensor);
  size_t bytes = tensor_bytes(tensor->dtype, tensor->rank, tensor->shape);
  return fwrite(tensor->data, 1, bytes, file) == bytes;
}

/* A regular file, or nothing yet. A device, a pipe or a link must not be replaced by a file. */
static bool may_be_replaced(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 ? S_ISREG(status.st_mode) : errno == ENOENT;
}

/* If it were opened again, it would be written from the start of a file in use. */
bool is_stdout(const char *path) {
  struct stat given, ours;
  if (stat(path, &given) != 0 || fstat(STDOUT_FILENO, &ours) != 0) return false;
  return given.st_dev == ours.st_dev && given.st_ino == ours.st_ino;
}

static void write_in_place(const char *path, const rnncc_tensor *tensor) {
  FILE *file = is_stdout(path) ? stdout : fopen(path, "wb");
  bool written = file && write_data(file, path, tensor);
  int error = errno;
  if (file && (file == stdout ? fflush(file) : fclose(file)) != 0 && written) written = false, error = errno;
  if (!written) fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(error));
}

/* Writes a temporary file beside it, and renames that when it is complete. Its name is short: that of the path may be
 * as long as a name can be. */
static void replace(const char *path, const rnncc_tensor *tensor) {
  const char *name = strrchr(path, '/');
  int folder = name ? (int)(name + 1 - path) : 0;
  size_t size = (size_t)folder + sizeof ".rnnrun-XXXXXX";
  char *temporary = allocate(size);
  snprintf(temporary, size, "%.*s.rnnrun-XXXXXX", folder, path);
  int descriptor = mkstemp(temporary);
  if (descriptor < 0) fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
  mode_t mask = umask(0);
  umask(mask);
  FILE *file = fdopen(descriptor, "wb");
  bool written = file && write_data(file, path, tensor) && fchmod(descriptor, 0666 & ~mask) == 0;
  int error = errno;
  if (file && fclose(file) != 0 && written) written = false, error = errno;
  if (written && rename(temporary, path) != 0) written = false, error = errno;
  if (!written) {
    unlink(temporary);
    fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(error));
  }
  free(temporary);
}

static void write_output(const char *path, const rnncc_tensor *tensor) {
  if (may_be_replaced(path))
    replace(path, tensor);
  else
    write_in_place(path, tensor);
}

void write_outputs(const rnncc_info *info, const Arguments *arguments, const rnncc_tensor *outputs) {
  for (int i = 0; i < info->n_outputs; i++) {
    const char *name = rnncc_output_at(info, i)->name, *value = assignment_find(&arguments->outputs, name);
    if (value) write_output(file_path("output", name, value), &outputs[i]);
  }
}
