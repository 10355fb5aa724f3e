/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms along the last axis but one, of as many points as there are: those stay, for their own
 * kernel. Where few points are transformed, a product with a constant matrix is faster; a complex number is two
 * neighbours on the last axis, so [rows, n, 2] is [rows, 2n] at no cost. Where a prime factor is too large for the
 * kernel, the transform becomes a convolution with a chirp, done by longer transforms (Bluestein, 1970).
 */
#include <complex.h>
#include <math.h>

#include "expand/expansion.h"
#include "expand/fourier.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "shapes/fourier_plan.h"
#include "shapes/shape.h"
#include "support/numbers.h"

/* e^(2 pi i turns / n); turns are reduced modulo n first, because they may be many. */
static double complex unit_root(int64_t turns, int64_t n) {
  return cexp(2 * M_PI * I * (double)(turns % n) / (double)n);
}

static Value *in_shape(const Formula *f, Value *x, int rank, const int64_t *shape) {
  return apply2(f, OP_Reshape, x, integers(f, rank, shape));
}

static Value *swapped(const Formula *f, Value *x, int rank, int a, int b) {
  int64_t perm[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) perm[axis] = axis;
  perm[a] = b;
  perm[b] = a;
  return build_transpose(f, x, perm);
}

static Value *first_of_axis(const Formula *f, Value *x, int64_t axis, int64_t count) {
  if (dim_equals(x->shape[axis], count)) return x;
  const Range range = {axis, 0, count};
  return build_slice(f, x, 1, &range);
}

/* What may be too short is padded by what the shortest lacks, then cropped. */
Value *fourier_fitted(const Formula *f, Value *x, int axis, int64_t length) {
  int64_t least = dim_lower(x->shape[axis]), pads[2 * MAX_RANK] = {0};
  if (least >= length) return first_of_axis(f, x, axis, length);
  pads[x->rank + axis] = length - least;
  const Attribute attribute = attribute_ints(f->graph->arena, ATTR_pads, 2 * x->rank, pads);
  return first_of_axis(f, build_op(f, OP_Pad, 1, &x, 1, 1, &attribute)->outputs[0], axis, length);
}

/* ---- as a product ---- */

/* Matrix element (n, part) -> (k, part): x * e^(sign i 2 pi n k / length). */
static double weight(int64_t n, int64_t part_in, int64_t k, int64_t part_out, int64_t length, int sign) {
  double complex unit = unit_root(n * k, length);
  if (part_in == part_out) return creal(unit);
  return part_in == 0 ? sign * cimag(unit) : -sign * cimag(unit);
}

/* How often bin n of half a spectrum counts. */
static double copies(const Dft *dft, int64_t n) {
  return dft->result_parts == 2 || n == 0 || 2 * n == dft->length ? 1 : 2;
}

/* [points * parts, results * result_parts]. Of real results the imaginary parts are not computed: those of a bin and of
 * its mirror image cancel each other. */
static Value *matrix_of(const Formula *f, const Dft *dft) {
  int64_t rows = dft->points * dft->parts, columns = dft->results * dft->result_parts;
  float *matrix = ARENA_ARRAY(f->graph->arena, float, rows *columns), *to = matrix;
  double scale = dft->inverse ? 1.0 / (double)dft->length : 1;
  for (int64_t n = 0; n < dft->points; n++)
    for (int64_t in = 0; in < dft->parts; in++)
      for (int64_t k = 0; k < dft->results; k++)
        for (int64_t out = 0; out < dft->result_parts; out++)
          *to++ = (float)(scale * copies(dft, n) * weight(n, in, k, out, dft->length, dft->inverse ? 1 : -1));
  return floats(f, 2, (const int64_t[]){rows, columns}, matrix);
}

/* [..., points, parts] -> [..., results, result_parts]; axes before may be known at run time only. */
static Value *by_matrix(const Formula *f, Value *x, const Dft *dft) {
  int64_t shape[MAX_RANK] = {0}; /* 0: as it is */
  int axis = x->rank - 2;
  shape[axis] = dft->points * dft->parts;
  Value *product = apply2(f, OP_MatMul, in_shape(f, x, axis + 1, shape), matrix_of(f, dft));
  shape[axis] = dft->results;
  shape[axis + 1] = dft->result_parts;
  return in_shape(f, product, axis + 2, shape);
}

/* Seconds of so many products of a row with a matrix, which is read from the cache that holds it. */
static double product_seconds(const Formula *f, const Dft *dft, double rows) {
  const Machine *m = f->graph->config->machine;
  int64_t columns = dft->results * dft->result_parts, lanes = f->graph->config->target->lanes;
  double elements = (double)(dft->points * dft->parts) * (double)(ceil_div(columns, lanes) * lanes),
         bytes = 4 * elements;
  double gbps = bytes <= (double)m->l1_bytes ? m->l1_gbps : bytes <= (double)m->l2_bytes ? m->l2_gbps : m->l3_gbps;
  double computing = 2 * rows * elements / m->gflops, reading = bytes / gbps;
  return 1e-9 * (computing > reading ? computing : reading);
}

/* A vector register is computed on as often as multiply-adds are; loads and stores are not done at the same time. */
static double plan_seconds(const Formula *f, const FourierPlan *plan, double rows) {
  const Machine *m = f->graph->config->machine;
  double arithmetic_per_ns = m->gflops / 2 / f->graph->config->target->lanes;
  return 1e-9 * rows * (plan->arithmetic / arithmetic_per_ns + plan->moves / m->loads_per_cycle / m->ghz);
}

static bool has_plan(const Formula *f, int64_t length, bool real, FourierPlan *plan) {
  return fourier_plan(fourier_points(length, real), f->graph->config->target->lanes, plan);
}

/* Is the product faster? Without a plan it is taken for what is not too long. */
static bool is_product(const Formula *f, const Dft *dft, double rows) {
  FourierPlan plan;
  if (!has_plan(f, dft->length, dft->parts == 1 || dft->result_parts == 1, &plan)) return dft->length <= MAX_DFT_MATRIX;
  return product_seconds(f, dft, rows) < plan_seconds(f, &plan, rows);
}

/* ---- by the kernel ---- */

Value *fourier_by_kernel(const Formula *f, Value *x, int64_t length, bool inverse, bool onesided) {
  const Attribute attributes[] = {attribute_int(ATTR_inverse, inverse), attribute_int(ATTR_onesided, onesided)};
  Value *const inputs[] = {x, integers(f, 1, &length)};
  return build_op(f, OP_DFT, 2, inputs, 1, 2, attributes)->outputs[0];
}

/* ---- by a chirp ---- */

Value *fourier_exchanged(const Formula *f, Value *x) {
  return gathered(f, x, integers(f, 2, (const int64_t[]){1, 0}), x->rank - 1);
}

/* [..., n, 2] times n complex numbers: by their real parts, and with the parts exchanged by the imaginary ones. */
static Value *times_complex(const Formula *f, Value *x, int64_t n, const double complex *by) {
  float *straight = ARENA_ARRAY(f->graph->arena, float, 2 * n), *crossed = ARENA_ARRAY(f->graph->arena, float, 2 * n);
  for (int64_t k = 0; k < n; k++) {
    straight[2 * k] = straight[2 * k + 1] = (float)creal(by[k]);
    crossed[2 * k] = (float)-cimag(by[k]);
    crossed[2 * k + 1] = (float)cimag(by[k]);
  }
  const int64_t shape[] = {n, 2};
  Value *exchanged = fourier_exchanged(f, x);
  return plus(f, times(f, x, floats(f, 2, shape, straight)), times(f, exchanged, floats(f, 2, shape, crossed)));
}

/* The transform of a power of two of points, in place, in double (Cooley and Tukey, 1965). */
static void transform_in_double(Arena *arena, int64_t n, double complex *x) {
  if (n == 1) return;
  double complex *even = ARENA_ARRAY(arena, double complex, n), *odd = even + n / 2;
  for (int64_t k = 0; k < n; k++) (k % 2 ? odd : even)[k / 2] = x[k];
  transform_in_double(arena, n / 2, even);
  transform_in_double(arena, n / 2, odd);
  for (int64_t k = 0; k < n / 2; k++) {
    double complex turned = conj(unit_root(k, n)) * odd[k];
    x[k] = even[k] + turned;
    x[k + n / 2] = even[k] - turned;
  }
}

/* e^(sign i pi k^2 / n), and the spectrum of its conjugate, whose indices -n..n are taken modulo `period`. */
static double complex *chirp_of(const Formula *f, int64_t n, int sign, int64_t period, double complex *spectrum) {
  double complex *chirp = ARENA_ARRAY(f->graph->arena, double complex, n);
  for (int64_t k = 0; k < period; k++) spectrum[k] = 0;
  for (int64_t k = 0; k < n; k++) {
    double complex unit = unit_root(k * k % (2 * n), 2 * n);
    chirp[k] = sign > 0 ? unit : conj(unit);
    spectrum[k] = spectrum[(period - k) % period] = conj(chirp[k]);
  }
  transform_in_double(f->graph->arena, period, spectrum);
  return chirp;
}

/* n k = (n^2 + k^2 - (k - n)^2) / 2 makes the sum over n a convolution. [..., length, 2] -> the same. */
static Value *by_chirp(const Formula *f, Value *x, int64_t length, bool inverse) {
  int64_t period = dft_period(length);
  double complex *spectrum = ARENA_ARRAY(f->graph->arena, double complex, period);
  double complex *chirp = chirp_of(f, length, inverse ? 1 : -1, period, spectrum);
  Value *turned = fourier_fitted(f, times_complex(f, x, length, chirp), x->rank - 2, period);
  Value *product = times_complex(f, fourier_by_kernel(f, turned, period, false, false), period, spectrum);
  Value *convolved = first_of_axis(f, fourier_by_kernel(f, product, period, true, false), x->rank - 2, length);
  for (int64_t k = 0; inverse && k < length; k++) chirp[k] /= (double)length;
  return times_complex(f, convolved, length, chirp);
}

/* Half a spectrum, [..., bins, 2], to the whole one. The imaginary parts of the ends do not count. */
static Value *with_mirror_image(const Formula *f, Value *x, const Dft *dft) {
  int64_t *places = ARENA_ARRAY(f->graph->arena, int64_t, dft->length);
  float *signs = ARENA_ARRAY(f->graph->arena, float, 2 * dft->length);
  for (int64_t k = 0; k < dft->length; k++) {
    places[k] = k < dft->points ? k : dft->length - k;
    signs[2 * k] = 1;
    signs[2 * k + 1] = k == 0 || 2 * k == dft->length ? 0 : k < dft->points ? 1 : -1;
  }
  Value *whole = gathered(f, x, integers(f, (int)dft->length, places), x->rank - 2);
  return times(f, whole, floats(f, 2, (const int64_t[]){dft->length, 2}, signs));
}

/* [..., points, parts] -> [..., results, result_parts]. */
static Value *long_prime(const Formula *f, Value *x, const Dft *dft) {
  int parts = x->rank - 1;
  Value *whole = dft->result_parts == 1 ? with_mirror_image(f, x, dft) : fourier_fitted(f, x, parts, 2);
  Value *y = by_chirp(f, whole, dft->length, dft->inverse);
  return first_of_axis(f, first_of_axis(f, y, parts, dft->result_parts), parts - 1, dft->results);
}

/* ---- the operators ---- */

/* [..., points, parts] -> [..., results, result_parts]. */
static Value *along_last(const Formula *f, Value *x, const Dft *dft) {
  FourierPlan plan;
  bool real = dft->parts == 1 || dft->result_parts == 1;
  if (dft->of_run) return fourier_of_any_length(f, x, dft);
  if (is_product(f, dft, value_optimum(x) / (double)(dft->points * dft->parts))) return by_matrix(f, x, dft);
  if (!has_plan(f, dft->length, real, &plan)) return long_prime(f, x, dft);
  if (dft->inverse && dft->parts == 1) x = fourier_fitted(f, x, x->rank - 1, 2);
  return fourier_by_kernel(f, x, dft->length, dft->inverse, dft->onesided);
}

void expand_dft(const Formula *f, const Node *node, Value **results) {
  Dft dft;
  if (!read_dft(f->graph, node, &dft)) bug("the transform was good before");
  int rank = node->inputs[0]->rank, last = rank - 2; /* of the axes before the parts */
  Value *x = dft.of_run ? node->inputs[0] : fourier_fitted(f, node->inputs[0], dft.axis, dft.points);
  if (dft.axis == last)
    results[0] = along_last(f, x, &dft);
  else
    results[0] = swapped(f, along_last(f, swapped(f, x, rank, dft.axis, last), &dft), rank, dft.axis, last);
}

/* The transform as a convolution, [2 * bins, parts, length]; a window of constants is part of it. */
static Value *kernels_of(const Formula *f, const Stft *stft, const float *window) {
  float *kernels = ARENA_ARRAY(f->graph->arena, float, 2 * stft->bins * stft->parts * stft->length), *to = kernels;
  for (int64_t k = 0; k < stft->bins; k++)
    for (int64_t out = 0; out < 2; out++)
      for (int64_t in = 0; in < stft->parts; in++)
        for (int64_t n = 0; n < stft->length; n++)
          *to++ = (float)(weight(n, in, k, out, stft->length, -1) * (window ? (double)window[n] : 1));
  return floats(f, 3, (const int64_t[]){2 * stft->bins, stft->parts, stft->length}, kernels);
}

/* [B, frames, bins, 2]; B and frames may be known at run time only. */
static Value *convolved(const Formula *f, Value *signal, const Stft *stft, Value *window) {
  const Attribute stride = attribute_ints(f->graph->arena, ATTR_strides, 1, &stft->step);
  Value *kernels = kernels_of(f, stft, window ? window->data : NULL);
  if (window && !window->data) kernels = times(f, kernels, window);
  Value *const inputs[] = {swapped(f, signal, 3, 1, 2), kernels};
  Value *spectra = swapped(f, build_op(f, OP_Conv, 2, inputs, 1, 1, &stride)->outputs[0], 3, 1, 2);
  return in_shape(f, spectra, 4, (const int64_t[]){0, 0, stft->bins, 2});
}

void expand_stft(const Formula *f, const Node *node, Value **results) {
  Stft stft;
  if (!read_stft(f->graph, node, &stft)) bug("the transform was good before");
  Value *signal = node->inputs[0];
  const Dft dft = {
      .length = stft.length, .points = stft.length, .parts = stft.parts, .results = stft.bins, .result_parts = 2};
  FourierPlan plan;
  double frames = value_optimum(node->outputs[0]) / (double)(2 * stft.bins);
  if (has_plan(f, stft.length, stft.parts == 1, &plan) && !is_product(f, &dft, frames)) return;
  if (signal->rank == 2) signal = with_axis(f, signal, 2);
  results[0] = convolved(f, signal, &stft, node_input(node, 2));
}
