/* SPDX-License-Identifier: MIT */
#include "ir/feedback.h"

#include <float.h>
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

/* ---- scales ---- */

/* By the k-th of so many scales the largest number is half a step beyond the largest integer, or by each next one less,
 * in the end a fifth below. A coarser step costs less than the best of many draws gains. */
enum { SCALES = 128 };
static const double LEAST_PART = 0.8;

static float scale_of(float largest, int most, int k) {
  double parts = (double)k / (SCALES - 1), steps = (1 - parts) * (most + 0.5) + parts * LEAST_PART * most;
  return fmaxf((float)((double)largest / steps), FLT_MIN);
}

float feedback_round(double wanted, float scale, int most) {
  float steps = scale == 0 ? 0 : rintf((float)wanted / scale);
  return fmaxf((float)-most, fminf(steps, (float)most)) * scale;
}

/* What these numbers, rounded with the scale, add to the sum; `enough` or more: it was not looked at to the end. */
static double loss_of(const double *diagonal, int64_t depth, int64_t n, const float *numbers, const double *carried,
                      float scale, int most, double enough) {
  double wanted[FEEDBACK_MOST_GROUP], loss = 0;
  for (int64_t k = 0; k < n; k++) wanted[k] = (double)numbers[k] + carried[k];
  for (int64_t k = 0; k < n && loss < enough; k++) {
    const double *u = diagonal + k * depth; /* U's row, from the first of the numbers on */
    double rounded = (double)feedback_round(wanted[k], scale, most), error = (double)numbers[k] - rounded;
    loss += u[k] * (rounded - wanted[k]) * (rounded - wanted[k]);
    for (int64_t j = k + 1; j < n; j++) wanted[j] += error * u[j];
  }
  return loss;
}

float feedback_scale(const double *diagonal, int64_t depth, int64_t n, const float *numbers, const double *carried,
                     int most) {
  float largest = 0;
  for (int64_t k = 0; k < n; k++) largest = fmaxf(largest, fabsf(numbers[k]));
  float best = largest / (float)most;
  if (best < FLT_MIN) return 0;
  double least = loss_of(diagonal, depth, n, numbers, carried, best, most, INFINITY);
  for (int k = 0; k < SCALES; k++) {
    float scale = scale_of(largest, most, k);
    double loss = loss_of(diagonal, depth, n, numbers, carried, scale, most, least);
    if (loss < least) least = loss, best = scale;
  }
  return best;
}
