/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms of n points, where only the run knows n: by the chirp of fourier.c (Bluestein, 1970),
 * with transforms of a period that is long enough for the largest n. So all that depends on n is the chirp,
 *   w[k] = e^(i pi d^2 / n), d = min(k, period - k).
 * x times conj(w), which is 0 from n on, is convolved with w around the period and multiplied by conj(w) again: of w,
 * the first n results read only what is less than n from the begin or the end. The inverse has w and conj(w) exchanged,
 * and divides by n.
 */
#include <math.h>

#include "expand/fourier.h"
#include "shapes/shape.h"

/* [period, 1] each. */
typedef struct Chirp {
  Value *real, *imaginary;
} Chirp;

/* How far each place of the period is from its begin or end, by the shorter way. */
static Value *distances(const Formula *f, int64_t period) {
  int64_t *to = ARENA_ARRAY(f->graph->arena, int64_t, period);
  for (int64_t k = 0; k < period; k++) to[k] = k < period - k ? k : period - k;
  const int64_t shape[] = {period, 1};
  return graph_constant(f->graph, f->name, RNNCC_I64, 2, shape, to);
}

/* d^2 is taken modulo 2n as an integer, so that the angle is below 2 pi. */
static Chirp chirp_of(const Formula *f, Value *n, int64_t period) {
  Value *d = distances(f, period), *two = integers(f, 1, (const int64_t[]){2});
  Value *turns = cast(f, apply2(f, OP_Mod, times(f, d, d), times(f, n, two)), RNNCC_F32);
  Value *angle = times(f, over(f, turns, cast(f, n, RNNCC_F32)), number(f, turns, M_PI));
  return (Chirp){apply(f, OP_Cos, angle), apply(f, OP_Sin, angle)};
}

static Chirp conjugate(const Formula *f, Chirp w) { return (Chirp){w.real, apply(f, OP_Neg, w.imaginary)}; }

static Value *complex_of(const Formula *f, Chirp w) {
  Value *const parts[] = {w.real, w.imaginary};
  return build_concat(f, 2, parts, 1);
}

/* (a + bi)(c + di) = (a, b) c + (b, a) (-d, d). */
static Value *times_complex(const Formula *f, Value *x, Chirp by) {
  Value *signs = floats(f, 1, (const int64_t[]){2}, (const float[]){-1, 1});
  return plus(f, times(f, x, by.real), times(f, fourier_exchanged(f, x), times(f, by.imaginary, signs)));
}

static Chirp parts_of(const Formula *f, Value *x) {
  const Range real = {x->rank - 1, 0, 1}, imaginary = {x->rank - 1, 1, 2};
  return (Chirp){build_slice(f, x, 1, &real), build_slice(f, x, 1, &imaginary)};
}

/* The first n; of half a spectrum, n / 2 + 1. */
static Value *first_results(const Formula *f, Value *x, const Dft *dft, Value *n) {
  Value *one = integers(f, 1, (const int64_t[]){1}), *two = integers(f, 1, (const int64_t[]){2});
  Value *count = dft->onesided ? plus(f, over(f, n, two), one) : n;
  Value *axis = integers(f, 1, (const int64_t[]){x->rank - 2}), *none = integers(f, 1, (const int64_t[]){0});
  Value *const inputs[] = {x, none, count, axis};
  return build_op(f, OP_Slice, 4, inputs, 1, 0, NULL)->outputs[0];
}

Value *fourier_of_any_length(const Formula *f, Value *x, const Dft *dft) {
  int points = x->rank - 2, parts = x->rank - 1;
  Value *n = build_extent(f, x, points);
  int64_t period = dft_period(dim_upper(x->shape[points]));
  Chirp w = chirp_of(f, n, period), before = dft->inverse ? w : conjugate(f, w), around = conjugate(f, before);
  Value *turned = fourier_fitted(f, fourier_fitted(f, x, parts, 2), points, period);
  Value *spectrum = fourier_by_kernel(f, times_complex(f, turned, before), period, false, false);
  Chirp chirps = parts_of(f, fourier_by_kernel(f, complex_of(f, around), period, false, false));
  Value *convolved = fourier_by_kernel(f, times_complex(f, spectrum, chirps), period, true, false);
  Value *result = first_results(f, times_complex(f, convolved, before), dft, n);
  return dft->inverse ? over(f, result, cast(f, n, RNNCC_F32)) : result;
}
