/* SPDX-License-Identifier: MIT */
/*
 * Runs direct convolutions of small integers, whose sums are exact, and compares them with plain loops in double. Lanes
 * past the last channel of the input are NaN, images are further apart than their size, and memory around the result
 * must stay unchanged. Built by test_conv_direct.py and test_conv_transposed.py, once for each instruction set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv_direct_check.h"
#include "kernels/conv/direct_weights.h"
#include "kernels/conv_transposed/phases.h"

/* Floats between images; panels of a prologue, and so its workers; slots that hold the panels, and floats between them.
 */
enum { GAP = 48, PANELS = 3, SLOTS = 2, SLOT_GAP = 16 };
static const float untouched = 12345;

/* Row-major, as in ONNX; small integers. */
typedef struct Problem {
  const DirectVariant *v;
  float *x, *w, *bias, *residual, *scale, *shift;
} Problem;

static int64_t blocks(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

static float *array(int64_t count) {
  float *data = aligned_alloc(64, ((size_t)count * sizeof *data + 127) / 64 * 64);
  return data;
}

static float *integers(int64_t count, int range, unsigned seed) {
  float *data = array(count);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    data[i] = (float)((int)(seed >> 16) % (2 * range + 1) - range);
  }
  return data;
}

static Problem new_problem(const DirectVariant *v) {
  int64_t out = v->n * v->kernels * v->out_h * v->out_w;
  return (Problem){.v = v,
                   .x = integers(v->n * v->channels * v->in_h * v->in_w, 3, 1),
                   .w = integers(v->kernels * v->channels / v->groups * v->window_h * v->window_w, 3, 2),
                   .bias = integers(v->kernels, 9, 3),
                   .residual = integers(out, 9, 4),
                   .scale = integers(v->channels, 2, 5),
                   .shift = integers(v->channels, 2, 6)};
}

static void free_problem(Problem *p) {
  free(p->x), free(p->w), free(p->bias), free(p->residual), free(p->scale), free(p->shift);
}

/* [n][channels][plane] in blocks, NaN in the lanes past the last channel, images GAP further apart than necessary. */
static float *blocked(const float *from, int64_t n, int64_t channels, int64_t plane, int64_t block) {
  int64_t image = blocks(channels, block) * plane * block + GAP;
  float *to = array(n * image);
  for (int64_t i = 0; i < n * image; i++) to[i] = NAN;
  for (int64_t i = 0; i < n * channels * plane; i++) {
    int64_t c = i / plane % channels;
    to[i / plane / channels * image + (c / block * plane + i % plane) * block + c % block] = from[i];
  }
  return to;
}

static float *vectors(const float *from, int64_t count, int64_t lanes) { return blocked(from, 1, count, 1, lanes); }

/* A depthwise transposed convolution packs its weights as if all output channels read one. */
static DirectWeights weights_of(const DirectVariant *v) {
  return (DirectWeights){.lanes = v->lanes,
                         .in_block = v->depthwise ? 1 : v->in_block,
                         .oc_vectors = v->oc_vectors,
                         .window = v->window_h * v->window_w,
                         .kernels = v->kernels,
                         .group_channels = v->channels / v->groups,
                         .group_kernels = v->depthwise ? v->kernels : v->kernels / v->groups};
}

static void pack_transposed(const DirectVariant *v, const DirectWeights *weights, const float *w, float *to) {
  PhaseAxis rows = phase_axis_of(v->window_h, v->stride_h, v->dilation_h);
  PhaseAxis columns = phase_axis_of(v->window_w, v->stride_w, v->dilation_w);
  float *taps = array(weights->kernels * weights->group_channels * weights->window);
  phases_pack(weights, &rows, &columns, w, taps, to);
  free(taps);
}

static float *packed(const DirectVariant *v, const DirectWeights *weights, const float *w) {
  int64_t floats = direct_floats(weights);
  float *to = array(floats);
  memset(to, 0, (size_t)floats * sizeof *to);
  if (v->transposed)
    pack_transposed(v, weights, w, to);
  else
    direct_pack(weights, w, to);
  return to;
}

/* The output by a team of `size`, whose ranks run one after the other: they share no element. */
static float *convolve(const Problem *p, int size) {
  const DirectVariant *v = p->v;
  DirectWeights weights = weights_of(v);
  int64_t in = v->in_h * v->in_w, out = v->out_h * v->out_w;
  int64_t x_image = blocks(v->channels, v->in_block) * in * v->in_block + GAP;
  int64_t y_image = blocks(v->kernels, v->out_block) * out * v->out_block + GAP;
  float *x = blocked(p->x, v->n, v->channels, in, v->in_block), *w = packed(v, &weights, p->w);
  float *bias = vectors(p->bias, v->kernels, v->lanes), *y = array(v->n * y_image);
  float *residual = blocked(p->residual, v->n, v->kernels, out, v->out_block);
  float *scale = vectors(p->scale, v->channels, v->in_block), *shift = vectors(p->shift, v->channels, v->in_block);
  int64_t slot = 2 * blocks(v->channels, v->in_block) * v->tile_chunk * v->wide * v->in_block + SLOT_GAP;
  float *scratch = array(SLOTS * slot);
  for (int64_t i = 0; i < v->n * y_image; i++) y[i] = untouched;
  for (int rank = 0; rank < size; rank++) {
    Team team = {.rank = rank, .size = size};
    v->kernel(&team, x, w, v->bias ? bias : NULL, v->residual ? residual : NULL, y, scale, shift, scratch, v->n,
              x_image, y_image, y_image, v->channels, v->kernels, v->channels / v->groups, v->kernels / v->groups,
              direct_span(&weights), v->group_chunk, v->tile_chunk, v->pass, PANELS, SLOTS, slot);
  }
  free(x), free(w), free(bias), free(residual), free(scale), free(shift), free(scratch);
  return y;
}

/* The tests' prologue takes the absolute value, their epilogue the maximum with zero. */
static double input(const Problem *p, int64_t n, int64_t channel, int64_t row, int64_t column) {
  const DirectVariant *v = p->v;
  if (row < 0 || row >= v->in_h || column < 0 || column >= v->in_w) return 0;
  double x = p->x[((n * v->channels + channel) * v->in_h + row) * v->in_w + column];
  return v->prologue ? fabs(x * p->scale[channel] + p->shift[channel]) : x;
}

/* The row or column whose tap `k` reaches `out` in a transposed convolution; -1: none. */
static int64_t source(int64_t out, int64_t k, int64_t stride, int64_t dilation, int64_t crop) {
  int64_t scaled = out + crop - k * dilation;
  return scaled < 0 || scaled % stride ? -1 : scaled / stride;
}

/* x times w at a tap of the window, of the group's channel `c`. w: [channels][kernels of a group][R][S]. */
static double transposed_tap(const Problem *p, int64_t n, int64_t k, int64_t c, int64_t r, int64_t s, int64_t row,
                             int64_t column) {
  const DirectVariant *v = p->v;
  int64_t kernels = v->kernels / v->groups, channel = k / kernels * (v->channels / v->groups) + c;
  double w = p->w[((channel * kernels + k % kernels) * v->window_h + r) * v->window_w + s];
  return w * input(p, n, channel, source(row, r, v->stride_h, v->dilation_h, v->top),
                   source(column, s, v->stride_w, v->dilation_w, v->left));
}

static double tap(const Problem *p, int64_t n, int64_t k, int64_t c, int64_t r, int64_t s, int64_t row,
                  int64_t column) {
  const DirectVariant *v = p->v;
  if (v->transposed) return transposed_tap(p, n, k, c, r, s, row, column);
  int64_t channels = v->channels / v->groups, first = k / (v->kernels / v->groups) * channels;
  return p->w[((k * channels + c) * v->window_h + r) * v->window_w + s] *
         input(p, n, first + c, row * v->stride_h + r * v->dilation_h - v->top,
               column * v->stride_w + s * v->dilation_w - v->left);
}

static double expected(const Problem *p, int64_t n, int64_t k, int64_t row, int64_t column) {
  const DirectVariant *v = p->v;
  double sum = v->bias ? p->bias[k] : 0;
  if (v->residual) sum += p->residual[((n * v->kernels + k) * v->out_h + row) * v->out_w + column];
  for (int64_t c = 0; c < v->channels / v->groups; c++)
    for (int64_t r = 0; r < v->window_h; r++)
      for (int64_t s = 0; s < v->window_w; s++) sum += tap(p, n, k, c, r, s, row, column);
  return sum > 0 ? sum : 0;
}

/* Checks every element of the output, and the memory between its images. */
static bool right(const Problem *p, const float *y) {
  const DirectVariant *v = p->v;
  int64_t block = v->out_block, plane = v->out_h * v->out_w, image = blocks(v->kernels, block) * plane * block + GAP;
  for (int64_t i = 0; i < v->n * image; i++) {
    int64_t at = i % image, pixel = at / block % plane, k = at / block / plane * block + at % block;
    if (at >= image - GAP && y[i] != untouched) return false;
    if (at >= image - GAP || k >= v->kernels) continue;
    if (y[i] != (float)expected(p, i / image, k, pixel / v->out_w, pixel % v->out_w)) return false;
  }
  return true;
}

static bool same(const Problem *p, const float *a, const float *b) {
  const DirectVariant *v = p->v;
  int64_t image = blocks(v->kernels, v->out_block) * v->out_h * v->out_w * v->out_block + GAP;
  return !memcmp(a, b, (size_t)(v->n * image) * sizeof *a);
}

static const char *fault_of(const Problem *p) {
  static const int sizes[] = {2, 3, 8};
  float *alone = convolve(p, 1);
  const char *fault = right(p, alone) ? NULL : "wrong result";
  for (int i = 0; i < 3 && !fault; i++) {
    float *team = convolve(p, sizes[i]);
    if (!same(p, team, alone)) fault = "depends on the size of the team";
    free(team);
  }
  free(alone);
  return fault;
}

int main(void) {
  int faults = 0;
  for (const DirectVariant *const *v = direct_variants; *v; v++) {
    Problem p = new_problem(*v);
    const char *fault = fault_of(&p);
    if (fault) printf("not ok %s: %s\n", (*v)->name, fault);
    faults += fault != NULL;
    free_problem(&p);
  }
  return faults ? 1 : 0;
}
