/* SPDX-License-Identifier: MIT */
#include "ir/feedback.h"

#include <math.h>

/* Of many rows nearly all directions are in use, and errors have nowhere to go. The time grows by the cube of depth. */
enum { MOST_ROWS_OF_DEPTH = 4 };

/* Part of the mean square that is added in every direction: others than the rows' do not become free. */
static const double DAMPING = 1e-3;

bool feedback_fits(int64_t depth) { return depth <= FEEDBACK_MOST_DEPTH; }

void feedback_add(double *moments, int64_t n, int64_t depth, const float *rows) {
  for (int64_t row = 0; row < n; row++)
    for (int64_t i = 0; i < depth; i++) {
      double x = (double)rows[row * depth + i];
      if (x == 0) continue;
      for (int64_t j = i; j < depth; j++) moments[i * depth + j] += x * (double)rows[row * depth + j];
    }
}

/* Of a column k at a time, from the last one: what it explains is taken from those before it. */
static void factor(double *a, int64_t depth, double *column) {
  for (int64_t k = depth - 1; k >= 0; k--) {
    double d = a[k * depth + k];
    for (int64_t i = 0; i < k; i++) column[i] = a[i * depth + k], a[i * depth + k] /= d;
    for (int64_t i = 0; i < k; i++)
      for (int64_t j = i; j < k; j++) a[i * depth + j] -= a[i * depth + k] * column[j];
  }
}

const double *feedback_of(Arena *arena, double *moments, int64_t depth) {
  double trace = 0;
  for (int64_t i = 0; i < depth; i++) trace += moments[i * depth + i];
  if (!(trace > 0) || !isfinite(trace)) return NULL;
  for (int64_t i = 0; i < depth; i++) moments[i * depth + i] += DAMPING * trace / (double)depth;
  factor(moments, depth, ARENA_ARRAY(arena, double, depth));
  return moments;
}

const double *feedback_for(Arena *arena, int64_t n, int64_t depth, const float *rows) {
  if (!feedback_fits(depth) || n > MOST_ROWS_OF_DEPTH * depth) return NULL;
  double *moments = ARENA_ARRAY(arena, double, depth *depth);
  feedback_add(moments, n, depth, rows);
  return feedback_of(arena, moments, depth);
}
