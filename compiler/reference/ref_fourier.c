/* SPDX-License-Identifier: MIT */
/*
 * DFT along the last axis but one, and STFT: sums of products, in double. Half a spectrum stands for the whole one of
 * real numbers.
 */
#include <complex.h>
#include <math.h>

#include "reference/kernels.h"

/* Points of a row of complex or real numbers, from element `at` on. */
typedef struct Row {
  const Tensor *x;
  int64_t at, parts, points;
} Row;

static double complex point(const Row *row, int64_t n) {
  double re = tensor_get(row->x, row->at + n * row->parts);
  return row->parts == 1 ? re : re + I * tensor_get(row->x, row->at + n * row->parts + 1);
}

/* Of half a spectrum: bin n, or the conjugate of its mirror image. */
static double complex mirrored(const Row *row, int64_t n, int64_t length) {
  double complex bin = n < row->points ? point(row, n) : conj(point(row, length - n));
  return n == 0 || 2 * n == length ? creal(bin) : bin;
}

static double complex root(int64_t turns, int64_t length, double sign) {
  return cexp(sign * 2 * M_PI * I * (double)(turns % length) / (double)length);
}

static void store(Tensor *y, int64_t at, double complex value, int64_t parts) {
  tensor_set(y, at * parts, creal(value));
  if (parts == 2) tensor_set(y, at * parts + 1, cimag(value));
}

const char *ref_dft(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  int64_t parts = x->shape[x->rank - 1], points = x->shape[x->rank - 2];
  int64_t y_parts = y->shape[y->rank - 1], results = y->shape[y->rank - 2];
  bool inverse = node_int(node, ATTR_inverse), half = y_parts == 1;
  int64_t length = half ? results : points, rows = tensor_extent(x, 0, x->rank - 2);
  for (int64_t i = 0; i < rows * results; i++) {
    Row row = {x, i / results * points * parts, parts, points};
    double complex sum = 0;
    for (int64_t n = 0; n < length; n++)
      sum += (half ? mirrored(&row, n, length) : point(&row, n)) * root(n * (i % results), length, inverse ? 1 : -1);
    store(y, i, inverse ? sum / (double)length : sum, y_parts);
  }
  return NULL;
}

const char *ref_stft(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *window = optional_input(node, inputs, 2), *frame = optional_input(node, inputs, 3);
  Tensor *y = outputs[0];
  int64_t step = tensor_get_int(inputs[1], 0), length = window ? window->shape[0] : tensor_get_int(frame, 0);
  int64_t parts = x->rank == 3 ? x->shape[2] : 1, frames = y->shape[1], bins = y->shape[2];
  for (int64_t i = 0; i < y->shape[0] * frames * bins; i++) {
    int64_t place = i / bins;
    Row row = {x, (place / frames * x->shape[1] + place % frames * step) * parts, parts, length};
    double complex sum = 0;
    for (int64_t n = 0; n < length; n++)
      sum += (window ? tensor_get(window, n) : 1) * point(&row, n) * root(n * (i % bins), length, -1);
    store(y, i, sum, 2);
  }
  return NULL;
}
