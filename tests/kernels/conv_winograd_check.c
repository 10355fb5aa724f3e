/* SPDX-License-Identifier: MIT */
/*
 * Runs specialised Winograd convolutions on random extents and compares them with plain loops in double; every array
 * ends at a page that must not be touched. Built by test_conv_winograd_kernels.py, once for each instruction set.
 *
 * The stated bounds: max |error| / max |result| is at most 1e-5 for F(2,3), and 1e-4 for others, whose transforms
 * increase rounding errors more than they reduce them. F(2,3) is exact on small integers, because its transforms only
 * add, and multiply by quarters.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conv_winograd_check.h"

enum { MAX_TEAM = 8, MARGIN = 48 };

/* ---- random numbers: the same on every machine ---- */

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}
static int64_t random_in(int64_t low, int64_t high) {
  return low + (int64_t)(next_random() % (uint64_t)(high - low + 1));
}
/* In [-1, 1], or an integer of at most 4. */
static float random_float(bool integral) {
  return integral ? (float)random_in(-4, 4) : (float)((double)(next_random() >> 11) * 0x1p-52 - 1);
}

/* ---- arrays that end at a page that must not be touched ---- */

static size_t mapped_bytes(int64_t n) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return ((size_t)n * sizeof(float) + page - 1) / page * page;
}
static float *new_array(int64_t n, float fill) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = mapped_bytes(n);
  char *memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + bytes, page, PROT_NONE)) abort();
  float *array = (float *)(memory + bytes) - n;
  for (int64_t i = 0; i < n; i++) array[i] = fill;
  return array;
}
static void free_array(float *array, int64_t n) {
  size_t bytes = mapped_bytes(n);
  munmap((char *)(array + n) - bytes, bytes + (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- a problem ---- */

typedef struct Problem {
  const WinogradVariant *variant;
  int64_t n, channels, kernels, block_tiles, slots;
  int64_t x_blocks, y_blocks;
  int64_t x_image, residual_image, y_image; /* images are further apart than their size */
  float *x, *w, *weights, *bias, *residual;
  double *want; /* [n][kernels][out_h / pool][out_w / pool] */
} Problem;

static int64_t taps_of(const WinogradVariant *v) { return (int64_t)v->form.taps_h * v->form.taps_w; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t x_count(const Problem *p) { return p->n * p->x_image; }
static int64_t y_count(const Problem *p) { return p->n * p->y_image; }
static int64_t y_width(const WinogradVariant *v) { return v->out_w / v->pool; }
static int64_t y_plane(const WinogradVariant *v) { return v->out_h / v->pool * y_width(v); }
static int64_t blocked_at(int lanes, int64_t plane, int64_t channel, int64_t point) {
  return (channel / lanes * plane + point) * lanes + channel % lanes;
}

static WinogradWeights weights_of(const Problem *p) {
  const WinogradVariant *v = p->variant;
  return (WinogradWeights){v->form, v->lanes, v->oc_vectors, p->channels, p->kernels};
}

static double sum_at(const Problem *p, int64_t image, int64_t k, int64_t h, int64_t w) {
  const WinogradVariant *v = p->variant;
  double sum = v->bias ? p->bias[k] : 0;
  int64_t taps = taps_of(v);
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t row = h - v->pad_top + tap / v->form.taps_w, column = w - v->pad_left + tap % v->form.taps_w;
    if (row < 0 || row >= v->in_h || column < 0 || column >= v->in_w) continue;
    for (int64_t c = 0; c < p->channels; c++) {
      float x = p->x[image * p->x_image + blocked_at(v->lanes, v->in_h * v->in_w, c, row * v->in_w + column)];
      sum += (double)x * p->w[(k * p->channels + c) * taps + tap];
    }
  }
  return sum;
}

static double output_at(const Problem *p, int64_t image, int64_t k, int64_t h, int64_t w) {
  const WinogradVariant *v = p->variant;
  double sum = sum_at(p, image, k, h, w);
  int64_t at = blocked_at(v->lanes, v->out_h * v->out_w, k, h * v->out_w + w);
  return fmax(sum + (v->residual ? p->residual[image * p->residual_image + at] : 0), 0);
}

static double largest_output(const Problem *p, int64_t image, int64_t k, int64_t row, int64_t column) {
  double most = 0;
  for (int64_t h = row * p->variant->pool; h < (row + 1) * p->variant->pool; h++)
    for (int64_t w = column * p->variant->pool; w < (column + 1) * p->variant->pool; w++)
      most = fmax(most, output_at(p, image, k, h, w));
  return most;
}

static void solve(Problem *p) {
  const WinogradVariant *v = p->variant;
  int64_t plane = y_plane(v);
  double *want = p->want = malloc((size_t)(p->n * p->kernels * plane + 1) * sizeof *want);
  for (int64_t image = 0; image < p->n; image++)
    for (int64_t k = 0; k < p->kernels; k++)
      for (int64_t point = 0; point < plane; point++)
        *want++ = largest_output(p, image, k, point / y_width(v), point % y_width(v));
}

static void fill_blocked(float *array, int lanes, int64_t plane, int64_t channels, bool integral) {
  for (int64_t c = 0; c < channels; c++)
    for (int64_t point = 0; point < plane; point++) array[blocked_at(lanes, plane, c, point)] = random_float(integral);
}

static float *random_array(int64_t n, bool integral) {
  float *array = new_array(n, 0);
  for (int64_t i = 0; i < n; i++) array[i] = random_float(integral);
  return array;
}

/* Lanes past the last channel, and the memory between images, are NaN. */
static float *random_images(int64_t n, int64_t image, int lanes, int64_t plane, int64_t channels, bool integral) {
  float *array = new_array(n * image, NAN);
  for (int64_t i = 0; i < n; i++) fill_blocked(array + i * image, lanes, plane, channels, integral);
  return array;
}

static Problem random_problem(const WinogradVariant *v, int64_t n, int64_t most_channels, bool integral) {
  Problem p = {.variant = v, .n = n, .channels = random_in(1, most_channels), .slots = random_in(1, 3)};
  int64_t in_plane = v->in_h * v->in_w, out_plane = v->out_h * v->out_w, group = v->oc_vectors;
  p.y_blocks = random_in(0, 1) * group + (v->oc_tail ? v->oc_tail : group);
  p.kernels = p.y_blocks * v->lanes - random_in(0, v->lanes - 1);
  p.block_tiles = random_in(1, 30);
  p.x_blocks = ceil_div(p.channels, v->lanes);
  p.x_image = p.x_blocks * in_plane * v->lanes + MARGIN;
  p.residual_image = p.y_blocks * out_plane * v->lanes + MARGIN;
  p.y_image = p.y_blocks * y_plane(v) * v->lanes + MARGIN;
  p.x = random_images(n, p.x_image, v->lanes, in_plane, p.channels, integral);
  p.residual = random_images(n, p.residual_image, v->lanes, out_plane, p.kernels, integral);
  p.w = random_array(p.kernels * p.channels * taps_of(v), integral);
  p.bias = random_array(p.kernels, integral);
  WinogradWeights weights = weights_of(&p);
  p.weights = new_array(winograd_weights_floats(&weights), NAN);
  winograd_weights_pack(&weights, p.w, p.weights);
  solve(&p);
  return p;
}

static void free_problem(Problem *p) {
  WinogradWeights weights = weights_of(p);
  free_array(p->x, x_count(p));
  free_array(p->residual, p->n * p->residual_image);
  free_array(p->w, p->kernels * p->channels * taps_of(p->variant));
  free_array(p->bias, p->kernels);
  free_array(p->weights, winograd_weights_floats(&weights));
  free(p->want);
}

/* ---- teams ---- */

static int64_t input_point(const Problem *p) { return p->block_tiles * p->x_blocks * p->variant->lanes; }
static int64_t product_point(const Problem *p) { return p->block_tiles * p->variant->lanes; }
static int64_t slot(const Problem *p) {
  const WinogradVariant *v = p->variant;
  return winograd_points(&v->form) * (input_point(p) + v->oc_vectors * product_point(p));
}
static int64_t scratch_count(const Problem *p) { return p->slots * slot(p); }

/* Workers never wait for each other, so here they run one after the other. */
static float *convolve(const Problem *p, int size) {
  float *y = new_array(y_count(p), -12345), *scratch = new_array(scratch_count(p), NAN);
  for (int rank = 0; rank < size; rank++) {
    Team team = {.rank = rank, .size = size};
    p->variant->kernel(&team, p->x, p->weights, p->variant->bias ? p->bias : NULL,
                       p->variant->residual ? p->residual : NULL, y, scratch, p->n, p->channels, p->kernels, p->x_image,
                       p->residual_image, p->y_image, p->block_tiles, input_point(p), product_point(p), p->slots,
                       slot(p));
  }
  free_array(scratch, scratch_count(p));
  return y;
}

/* ---- comparison ---- */

static float result_at(const Problem *p, const float *y, int64_t i) {
  int64_t plane = y_plane(p->variant), image = i / plane / p->kernels;
  return y[image * p->y_image + blocked_at(p->variant->lanes, plane, i / plane % p->kernels, i % plane)];
}

static int64_t results(const Problem *p) { return p->n * p->kernels * y_plane(p->variant); }

/* max |error| / max |result|, with residual and bias included; NaN if a result is NaN. */
static double relative_error(const Problem *p, const float *y) {
  double most = 0, error = 0;
  for (int64_t i = 0; i < results(p); i++) {
    double off = fabs(result_at(p, y, i) - p->want[i]);
    if (!(off <= error)) error = off;
    most = fmax(most, p->want[i]);
  }
  return error == 0 ? 0 : error / most;
}

static bool margins_are_whole(const Problem *p, const float *y) {
  for (int64_t image = 0; image < p->n; image++)
    for (int64_t i = 1; i <= MARGIN; i++)
      if (y[(image + 1) * p->y_image - i] != -12345) return false;
  return true;
}

static bool same_results(const Problem *p, const float *a, const float *b) {
  for (int64_t i = 0; i < results(p); i++) {
    float one = result_at(p, a, i), other = result_at(p, b, i);
    if (memcmp(&one, &other, sizeof one)) return false;
  }
  return true;
}

static const char *fault_of(const Problem *p, double bound, double *worst) {
  static const int sizes[] = {2, 3, MAX_TEAM};
  float *alone = convolve(p, 1);
  double error = relative_error(p, alone);
  const char *fault = error <= bound ? NULL : "wrong result";
  if (!margins_are_whole(p, alone)) fault = "writes between images";
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !fault; i++) {
    float *team = convolve(p, sizes[i]);
    if (!same_results(p, team, alone)) fault = "depends on the size of the team";
    free_array(team, y_count(p));
  }
  free_array(alone, y_count(p));
  *worst = fmax(*worst, error);
  return fault;
}

/* F(2,3) along both axes, or one. */
static bool adds_only(const WinogradVariant *v) {
  return v->form.tile_h <= 2 && v->form.tile_w <= 2 && v->form.taps_h <= 3 && v->form.taps_w <= 3;
}

static int check_variant(const WinogradVariant *v, int rounds, int64_t most_channels) {
  int faults = 0;
  double worst = 0;
  for (int round = 0; round < rounds; round++) {
    bool integral = round % 3 == 0;
    Problem p = random_problem(v, (round + 1) % 4, most_channels, integral);
    const char *fault = fault_of(&p, !adds_only(v) ? 1e-4 : integral ? 0 : 1e-5, &worst);
    if (fault)
      printf("not ok %s: n %ld channels %ld kernels %ld block %ld slots %ld: %s\n", v->name, (long)p.n,
             (long)p.channels, (long)p.kernels, (long)p.block_tiles, (long)p.slots, fault);
    faults += fault != NULL;
    free_problem(&p);
  }
  printf("%s %s, worst error %.2g\n", faults ? "not ok" : "ok", v->name, worst);
  return faults;
}

/* conv_winograd_check ROUNDS CHANNELS */
int main(int count, char **arguments) {
  if (count != 3) return 2;
  int faults = 0;
  for (const WinogradVariant *const *v = winograd_variants; *v; v++)
    faults += check_variant(*v, atoi(arguments[1]), atoi(arguments[2]));
  return faults ? 1 : 0;
}
