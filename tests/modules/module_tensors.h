/* SPDX-License-Identifier: MIT */
/* Memory for the inputs and outputs of any module from C, each tensor between pages that may not be touched. */
#ifndef TESTS_MODULE_TENSORS_H
#define TESTS_MODULE_TENSORS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rnncc_loader.h"

enum { MOST_TENSORS = 16 };

__attribute__((format(printf, 1, 2))) static inline _Noreturn void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  _exit(1);
}

/* Bytes between two forbidden pages, flush with the one behind them, or else with the one before. */
static inline void *between_forbidden_pages(size_t bytes, bool at_end) {
  size_t page = (size_t)getpagesize(), room = (bytes + page - 1) / page * page;
  unsigned char *pages =
      mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, page, PROT_NONE) || mprotect(pages + page + room, page, PROT_NONE))
    fail("no memory");
  return pages + page + (at_end ? room - bytes : 0);
}

static inline void forget_pages(void *data, size_t bytes) {
  size_t page = (size_t)getpagesize(), room = (bytes + page - 1) / page * page;
  munmap((unsigned char *)((uintptr_t)data / page * page) - page, room + 2 * page);
}

/* At the optimum of each dim, or all at the maximum. */
static inline rnncc_tensor tensor_of(const rnncc_info *info, const rnncc_tensor_info *described, bool maximal,
                                     bool at_end) {
  rnncc_tensor it = {.struct_size = sizeof it, .dtype = described->dtype, .rank = described->rank};
  it.bytes = rnncc_dtype_size(it.dtype);
  for (int axis = 0; axis < it.rank; axis++) {
    int dim = described->dim[axis];
    it.shape[axis] = maximal || dim < 0 ? described->max_shape[axis] : rnncc_dim_at(info, dim)->opt;
    it.bytes *= (size_t)it.shape[axis];
  }
  it.data = between_forbidden_pages(it.bytes, at_end);
  return it;
}

#endif
