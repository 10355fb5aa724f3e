/* SPDX-License-Identifier: MIT */
/*
 * Runs depthwise convolutions and pools of blocked tensors on integers, whose sums are exact, and compares them with
 * plain loops in double. Images are further apart than their size; lanes past the channels hold NaN. Built by
 * test_window_kernels.py, once for each instruction set.
 */
#include "window_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { APART = 32 }; /* floats between images, and before the first */
static const float UNTOUCHED = 12345;

typedef struct Problem {
  const WindowVariant *v;
  int64_t in_image, out_image; /* the distances from image to image */
  float *x, *w, *bias, *residual;
} Problem;

static int whole(unsigned *seed) {
  *seed = *seed * 1664525 + 1013904223;
  return (int)(*seed >> 16) % 9 - 4;
}

/* [n][blocks][pixels][lanes] after APART floats. */
static float *blocked_tensor(const WindowVariant *v, int64_t pixels, int64_t image, unsigned seed) {
  int64_t count = APART + v->n * image;
  float *data = aligned_alloc(64, ((size_t)count * sizeof *data + 63) / 64 * 64);
  for (int64_t i = 0; i < count; i++) data[i] = NAN;
  for (int64_t n = 0; n < v->n; n++)
    for (int64_t c = 0; c < v->channels; c++)
      for (int64_t i = 0; i < pixels; i++)
        data[APART + n * image + (c / v->lanes * pixels + i) * v->lanes + c % v->lanes] = (float)whole(&seed);
  return data;
}

static int64_t blocks(const WindowVariant *v) { return (v->channels + v->lanes - 1) / v->lanes; }

static Problem new_problem(const WindowVariant *v) {
  Problem p = {.v = v};
  int64_t in = v->in[0] * v->in[1], out = v->out[0] * v->out[1];
  int64_t weights = blocks(v) * v->window[0] * v->window[1] * v->lanes; /* [blocks][R][S][lanes] */
  unsigned seed = 7;
  p.in_image = blocks(v) * in * v->lanes + APART;
  p.out_image = blocks(v) * out * v->lanes + APART;
  p.x = blocked_tensor(v, in, p.in_image, 1);
  p.residual = blocked_tensor(v, out, p.out_image, 2);
  p.w = calloc((size_t)weights, sizeof *p.w);
  p.bias = calloc((size_t)v->channels, sizeof *p.bias);
  for (int64_t i = 0; i < weights; i++) p.w[i] = (float)whole(&seed);
  for (int64_t k = 0; k < v->channels; k++) p.bias[k] = (float)whole(&seed);
  return p;
}

static void free_problem(Problem *p) { free(p->x), free(p->w), free(p->bias), free(p->residual); }

/* The result by a team of `size`, whose ranks run one after the other: they share no element. */
static float *run(const Problem *p, int size) {
  const WindowVariant *v = p->v;
  int64_t count = APART + v->n * p->out_image;
  float *y = aligned_alloc(64, ((size_t)count * sizeof *y + 63) / 64 * 64);
  for (int64_t i = 0; i < count; i++) y[i] = UNTOUCHED;
  for (int rank = 0; rank < size; rank++) {
    Team team = {.rank = rank, .size = size};
    v->run(&team, p->x + APART, p->w, p->bias, p->residual + APART, y + APART, v->n, v->channels, p->in_image,
           p->out_image, p->out_image);
  }
  return y;
}

/* ---- the expected result ---- */

typedef struct Window {
  double sum, max;
  int64_t in_input, in_padding; /* points; in_padding: in the input or its padding */
} Window;

static int64_t at(const Problem *p, int64_t n, int64_t c, int64_t image, int64_t pixels, int64_t pixel) {
  return APART + n * image + (c / p->v->lanes * pixels + pixel) * p->v->lanes + c % p->v->lanes;
}

static void add_point(const Problem *p, Window *window, int64_t n, int64_t c, int64_t point, int64_t h, int64_t w) {
  const WindowVariant *v = p->v;
  window->in_padding += h < v->in[0] + v->pad_end[0] && w < v->in[1] + v->pad_end[1];
  if (h < 0 || h >= v->in[0] || w < 0 || w >= v->in[1]) return;
  double x = p->x[at(p, n, c, p->in_image, v->in[0] * v->in[1], h * v->in[1] + w)];
  double weight = v->kind == WINDOW_DEPTHWISE
                      ? p->w[(c / v->lanes * v->window[0] * v->window[1] + point) * v->lanes + c % v->lanes]
                      : 1;
  window->sum += x * weight;
  window->max = fmax(window->max, x);
  window->in_input++;
}

static Window window_at(const Problem *p, int64_t n, int64_t c, int64_t row, int64_t column) {
  const WindowVariant *v = p->v;
  Window window = {.max = -INFINITY};
  for (int64_t r = 0; r < v->window[0]; r++)
    for (int64_t s = 0; s < v->window[1]; s++)
      add_point(p, &window, n, c, r * v->window[1] + s, row * v->stride[0] - v->pad_begin[0] + r * v->dilation[0],
                column * v->stride[1] - v->pad_begin[1] + s * v->dilation[1]);
  return window;
}

static float wanted(const Problem *p, int64_t n, int64_t c, int64_t row, int64_t column) {
  const WindowVariant *v = p->v;
  Window window = window_at(p, n, c, row, column);
  if (v->kind == WINDOW_MAX) return (float)window.max;
  if (v->kind == WINDOW_MEAN) return (float)window.sum / (float)window.in_input;
  if (v->kind == WINDOW_MEAN_WITH_PADDING) return (float)window.sum / (float)window.in_padding;
  int64_t pixel = row * v->out[1] + column;
  double sum = window.sum + (v->bias ? p->bias[c] : 0);
  if (v->residual) sum += p->residual[at(p, n, c, p->out_image, v->out[0] * v->out[1], pixel)];
  return (float)(2 * sum);
}

static bool images_are_right(const Problem *p, const float *y) {
  const WindowVariant *v = p->v;
  int64_t pixels = v->out[0] * v->out[1], wrong = 0;
  for (int64_t n = 0; n < v->n; n++)
    for (int64_t c = 0; c < v->channels; c++)
      for (int64_t i = 0; i < pixels; i++) {
        float want = wanted(p, n, c, i / v->out[1], i % v->out[1]), got = y[at(p, n, c, p->out_image, pixels, i)];
        wrong += got != want && !(isnan(got) && isnan(want));
      }
  return wrong == 0;
}

static bool rest_is_untouched(const Problem *p, const float *y) {
  for (int64_t n = -1; n < p->v->n; n++)
    for (int64_t i = 0; i < APART; i++)
      if (y[(n + 1) * p->out_image + i] != UNTOUCHED) return false;
  return true;
}

static const char *fault_of(const Problem *p) {
  float *alone = run(p, 1);
  const char *fault = !images_are_right(p, alone)    ? "wrong result"
                      : !rest_is_untouched(p, alone) ? "writes between the images"
                                                     : NULL;
  const int sizes[] = {2, 3, 8};
  for (int i = 0; i < 3 && !fault; i++) {
    float *team = run(p, sizes[i]);
    if (memcmp(team, alone, (size_t)(APART + p->v->n * p->out_image) * sizeof *team)) fault = "depends on the team";
    free(team);
  }
  free(alone);
  return fault;
}

int main(void) {
  int faults = 0;
  for (const WindowVariant *const *v = window_variants; *v; v++) {
    Problem p = new_problem(*v);
    const char *fault = fault_of(&p);
    if (fault) printf("not ok %s: %s\n", (*v)->name, fault);
    faults += fault != NULL;
    free_problem(&p);
  }
  return faults ? 1 : 0;
}
