/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms as products with constant matrices. A complex number is two neighbours on the last axis,
 * so [rows, n, 2] is [rows, 2n] at no cost. A short transform is one product and runs at the speed of multiply-adds; a
 * longer one is split (Cooley and Tukey, 1965): n = n1 n2 takes n2 transforms of n1 and n1 of n2.
 */
#include <math.h>

#include "expand/expansion.h"
#include "shapes/shape.h"
#include "shapes/signal.h"

/* cos and sin of 2 pi turns / n; reduced modulo n first, because the product may be large. */
typedef struct Unit {
  double cosine, sine;
} Unit;
static Unit unit_root(int64_t turns, int64_t n) {
  double angle = 2 * M_PI * (double)(turns % n) / (double)n;
  return (Unit){cos(angle), sin(angle)};
}

/* Matrix element (n, part) -> (k, part): x * e^(sign i 2 pi n k / length). */
static float weight(int64_t n, int64_t part_in, int64_t k, int64_t part_out, int64_t length, int sign) {
  Unit unit = unit_root(n * k, length);
  if (part_in == part_out) return (float)unit.cosine;
  return (float)(part_in == 0 ? sign * unit.sine : -sign * unit.sine);
}

/* [parts * length, 2 * bins], times `scale`. */
static Value *matrix_of(const Formula *f, int64_t length, int64_t parts, int64_t bins, int sign, double scale) {
  float *matrix = ARENA_ARRAY(f->graph->arena, float, parts *length * 2 * bins), *to = matrix;
  for (int64_t n = 0; n < length; n++)
    for (int64_t in = 0; in < parts; in++)
      for (int64_t k = 0; k < bins; k++)
        for (int64_t out = 0; out < 2; out++) *to++ = (float)(scale * (double)weight(n, in, k, out, length, sign));
  return floats(f, 2, (const int64_t[]){parts * length, 2 * bins}, matrix);
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

/* The last two axes of x, points and their parts, as one times a matrix, [..., count, parts]; axes before may be known
 * at run time only. */
static Value *by_matrix(const Formula *f, Value *x, Value *matrix, int64_t count, int64_t parts) {
  int64_t shape[MAX_RANK] = {0}; /* 0: as it is */
  int points = x->rank - 2;
  shape[points] = dim_value(x->shape[points]) * dim_value(x->shape[points + 1]);
  Value *product = apply2(f, OP_MatMul, in_shape(f, x, points + 1, shape), matrix);
  shape[points] = count;
  shape[points + 1] = parts;
  return in_shape(f, product, points + 2, shape);
}

/* x[rows, n2, n1, 2] times e^(sign i 2 pi j k / n1 n2): by the cosine, and with the parts swapped by the sine. */
static Value *twiddled(const Formula *f, Value *x, int64_t n2, int64_t n1, int sign) {
  float *cosines = ARENA_ARRAY(f->graph->arena, float, 2 * n1 * n2);
  float *sines = ARENA_ARRAY(f->graph->arena, float, 2 * n1 * n2);
  for (int64_t j = 0, at = 0; j < n2; j++)
    for (int64_t k = 0; k < n1; k++, at += 2) {
      Unit unit = unit_root(j * k, n1 * n2);
      cosines[at] = cosines[at + 1] = (float)unit.cosine;
      sines[at] = (float)(-sign * unit.sine);
      sines[at + 1] = (float)(sign * unit.sine);
    }
  const int64_t shape[] = {n2, n1, 2};
  Value *other_part = gathered(f, x, integers(f, 2, (const int64_t[]){1, 0}), 3);
  return plus(f, times(f, x, floats(f, 3, shape, cosines)), times(f, other_part, floats(f, 3, shape, sines)));
}

/* [rows, length, parts] -> [rows, length, 2]. */
static Value *transformed(const Formula *f, Value *x, int64_t length, int64_t parts, int sign, double scale) {
  if (dft_is_matrix(length)) return by_matrix(f, x, matrix_of(f, length, parts, length, sign, scale), length, 2);
  int64_t n1 = dft_factor(length), n2 = length / n1;
  Value *columns = swapped(f, in_shape(f, x, 4, (const int64_t[]){-1, n1, n2, parts}), 4, 1, 2);
  Value *inner = transformed(f, in_shape(f, columns, 3, (const int64_t[]){-1, n1, parts}), n1, parts, sign, scale);
  Value *turned = twiddled(f, in_shape(f, inner, 4, (const int64_t[]){-1, n2, n1, 2}), n2, n1, sign);
  Value *rows = in_shape(f, swapped(f, turned, 4, 1, 2), 3, (const int64_t[]){-1, n2, 2});
  Value *outer = transformed(f, rows, n2, 2, sign, 1);
  Value *in_order = swapped(f, in_shape(f, outer, 4, (const int64_t[]){-1, n1, n2, 2}), 4, 1, 2);
  return in_shape(f, in_order, 3, (const int64_t[]){-1, length, 2});
}

static Value *first_of_axis(const Formula *f, Value *x, int64_t axis, int64_t count) {
  if (dim_equals(x->shape[axis], count)) return x;
  const Range range = {axis, 0, count};
  return build_slice(f, x, 1, &range);
}

/* The axis cropped, or padded with zeros, to `length`. */
static Value *fitted(const Formula *f, Value *x, int axis, int64_t length) {
  int64_t extent = dim_value(x->shape[axis]), pads[2 * MAX_RANK] = {0};
  if (extent >= length) return first_of_axis(f, x, axis, length);
  pads[x->rank + axis] = length - extent;
  const Attribute attribute = attribute_ints(f->graph->arena, ATTR_pads, 2 * x->rank, pads);
  return build_op(f, OP_Pad, 1, &x, 1, 1, &attribute)->outputs[0];
}

/* ---- half a spectrum to real numbers ---- */

/* x[n] = 1/length sum of X[k] e^(i 2 pi n k / length) over all k, where X[length - k] is the conjugate of X[k]: twice
 * the real part of each that has a mirror image. [2 * bins, length] */
static Value *real_matrix_of(const Formula *f, const Dft *dft) {
  float *matrix = ARENA_ARRAY(f->graph->arena, float, 2 * dft->points * dft->length), *to = matrix;
  for (int64_t k = 0; k < dft->points; k++) {
    double scale = (k == 0 || 2 * k == dft->length ? 1 : 2) / (double)dft->length;
    for (int64_t n = 0; n < dft->length; n++) to[n] = (float)(scale * unit_root(n * k, dft->length).cosine);
    to += dft->length;
    for (int64_t n = 0; n < dft->length; n++) to[n] = (float)(-scale * unit_root(n * k, dft->length).sine);
    to += dft->length;
  }
  return floats(f, 2, (const int64_t[]){2 * dft->points, dft->length}, matrix);
}

/* [rows, bins, 2] -> [rows, length, 2]. The imaginary parts of the ends do not count. */
static Value *with_mirror_image(const Formula *f, Value *rows, const Dft *dft) {
  int64_t *places = ARENA_ARRAY(f->graph->arena, int64_t, dft->length);
  float *signs = ARENA_ARRAY(f->graph->arena, float, 2 * dft->length);
  for (int64_t k = 0; k < dft->length; k++) {
    int64_t mirrored = dft->length - k;
    places[k] = k < dft->points ? k : mirrored;
    signs[2 * k] = 1;
    signs[2 * k + 1] = k % dft->length == mirrored % dft->length ? 0 : k < dft->points ? 1 : -1;
  }
  Value *whole = gathered(f, rows, integers(f, (int)dft->length, places), 1);
  return times(f, whole, floats(f, 2, (const int64_t[]){dft->length, 2}, signs));
}

/* [rows, points, parts] -> [rows, results, result_parts], of a length that is split. */
static Value *split_rows(const Formula *f, Value *rows, const Dft *dft) {
  int sign = dft->inverse ? 1 : -1;
  double scale = dft->inverse ? 1.0 / (double)dft->length : 1;
  if (dft->result_parts == 2)
    return first_of_axis(f, transformed(f, rows, dft->length, dft->parts, sign, scale), 1, dft->results);
  Value *whole = with_mirror_image(f, rows, dft);
  return first_of_axis(f, transformed(f, whole, dft->length, 2, sign, scale), 2, 1);
}

static Value *dft_matrix(const Formula *f, const Dft *dft) {
  if (dft->result_parts == 1) return real_matrix_of(f, dft);
  return matrix_of(f, dft->length, dft->parts, dft->results, dft->inverse ? 1 : -1,
                   dft->inverse ? 1.0 / (double)dft->length : 1);
}

/* [..., points, parts] -> [..., results, result_parts]. */
static Value *along_last(const Formula *f, Value *x, const Dft *dft) {
  const Dim *shape[MAX_RANK];
  int rank = x->rank;
  if (dft_is_matrix(dft->length)) return by_matrix(f, x, dft_matrix(f, dft), dft->results, dft->result_parts);
  for (int axis = 0; axis < rank - 2; axis++) shape[axis] = x->shape[axis];
  shape[rank - 2] = dim_const(f->graph->dims, dft->results);
  shape[rank - 1] = dim_const(f->graph->dims, dft->result_parts);
  Value *rows = in_shape(f, x, 3, (const int64_t[]){-1, dft->points, dft->parts});
  return reshaped(f, split_rows(f, rows, dft), rank, shape);
}

void expand_dft(const Formula *f, const Node *node, Value **results) {
  Dft dft;
  if (!read_dft(f->graph, node, &dft)) bug("the transform was good before");
  int rank = node->inputs[0]->rank, last = rank - 2; /* of the axes before the parts */
  Value *x = fitted(f, node->inputs[0], dft.axis, dft.points);
  if (dft.axis == last)
    results[0] = along_last(f, x, &dft);
  else
    results[0] = swapped(f, along_last(f, swapped(f, x, rank, dft.axis, last), &dft), rank, dft.axis, last);
}

/* ---- of frames ---- */

/* A window of constants is part of the matrix, and the transform a convolution: [2 * bins, parts, length]. */
static Value *kernels_of(const Formula *f, const Stft *stft, const float *window) {
  float *kernels = ARENA_ARRAY(f->graph->arena, float, 2 * stft->bins * stft->parts * stft->length), *to = kernels;
  for (int64_t k = 0; k < stft->bins; k++)
    for (int64_t out = 0; out < 2; out++)
      for (int64_t in = 0; in < stft->parts; in++)
        for (int64_t n = 0; n < stft->length; n++)
          *to++ = weight(n, in, k, out, stft->length, -1) * (window ? window[n] : 1);
  return floats(f, 3, (const int64_t[]){2 * stft->bins, stft->parts, stft->length}, kernels);
}

/* [B, frames, bins, 2]; B and frames may be known at run time only. */
static Value *convolved(const Formula *f, Value *signal, const Stft *stft, const float *window) {
  const Attribute stride = attribute_ints(f->graph->arena, ATTR_strides, 1, &stft->step);
  Value *const inputs[] = {swapped(f, signal, 3, 1, 2), kernels_of(f, stft, window)};
  Value *spectra = swapped(f, build_op(f, OP_Conv, 2, inputs, 1, 1, &stride)->outputs[0], 3, 1, 2);
  return in_shape(f, spectra, 4, (const int64_t[]){0, 0, stft->bins, 2});
}

/* Frames [B, frames, length, parts] times a window [length] that is known at run time only. */
static Value *windowed(const Formula *f, Value *signal, const Stft *stft, Value *window) {
  int64_t frames = dim_value(stft->frames), *indices = ARENA_ARRAY(f->graph->arena, int64_t, frames * stft->length);
  for (int64_t frame = 0; frame < frames; frame++)
    for (int64_t n = 0; n < stft->length; n++) indices[frame * stft->length + n] = frame * stft->step + n;
  const int64_t shape[] = {frames, stft->length};
  Value *places = graph_constant(f->graph, f->name, RNNCC_I64, 2, shape, indices);
  return times(f, gathered(f, signal, places, 1), with_axis(f, window, 1));
}

/* [B, frames, bins, 2]. */
static Value *transformed_frames(const Formula *f, Value *signal, const Stft *stft, Value *window) {
  if (!dim_is_const(stft->frames) || dim_value(stft->frames) * stft->length > 1 << 24)
    fatal_at(f->where, EXIT_UNSUPPORTED, "STFT: with a window that is not constant the signal's length must be known");
  const Dft dft = {.length = stft->length,
                   .points = stft->length,
                   .parts = stft->parts,
                   .results = stft->bins,
                   .result_parts = 2,
                   .onesided = stft->onesided};
  return along_last(f, windowed(f, signal, stft, window), &dft);
}

void expand_stft(const Formula *f, const Node *node, Value **results) {
  Stft stft;
  if (!read_stft(f->graph, node, &stft)) bug("the transform was good before");
  Value *signal = node->inputs[0], *window = node_input(node, 2);
  if (signal->rank == 2) signal = with_axis(f, signal, 2);
  results[0] = window && !window->data ? transformed_frames(f, signal, &stft, window)
                                       : convolved(f, signal, &stft, window ? window->data : NULL);
}
