/* SPDX-License-Identifier: MIT */
/*
 * Normalisation by the mean and variance of rows: y = epilogue((x - mean) / sqrt(variance + epsilon) * scale + bias).
 *
 * A row is read in chunks that stay in the first-level cache: first a chunk's mean, then the squares of its deviations,
 * each in several sums. Chunks are merged in double by the update of Chan, Golub and LeVeque (1979), so the variance
 * does not suffer where the mean is large, and memory is read twice in all.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/math.h"
#include "simd/simd.h"

/* 1: the mean is subtracted; 0: it counts as zero, so that the variance is the mean square.
 * legal: 0 1 */
enum { CENTRED = 1 };
/* Factors of the normal values: PARAMETER_NONE, ...
 * legal: 0 1 2 */
enum { SCALE = PARAMETER_BY_ELEMENT };
/* Summands, likewise.
 * legal: 0 1 2 */
enum { BIAS = PARAMETER_BY_ELEMENT };

enum { CHUNK = 1024, SUMS = 4 };

/* Rows of `pieces` times `inner` elements. Row r is the (r % groups)-th of those that have parameters of their own. */
typedef struct Normalise {
  const float *x, *scale, *bias;
  float *y, *mean, *inverse; /* mean and inverse deviation of each row, or NULL */
  float epsilon;
  int64_t groups, pieces, inner;
} Normalise;

/* Moments of the elements so far; squares: the sum of the squares of their deviations from the mean. */
typedef struct Moments {
  double mean, squares;
  int64_t count;
} Moments;

/* hook: maps an element of the result. */
static inline vec epilogue(vec x) { return x; }

/* The sum of x - shift, or of its square. */
SIMD_FUNCTION float sum_of(const float *x, int64_t n, vec shift, bool squared) {
  vec sums[SUMS];
  int64_t i = 0;
#pragma clang loop unroll(full)
  for (int k = 0; k < SUMS; k++) sums[k] = vzero();
  for (; i + SUMS * LANES <= n; i += SUMS * LANES) {
#pragma clang loop unroll(full)
    for (int k = 0; k < SUMS; k++) {
      vec d = vsub(vload(x + i + k * LANES), shift);
      sums[k] = squared ? vfma(sums[k], d, d) : vadd(sums[k], d);
    }
  }
  for (; i + LANES <= n; i += LANES) {
    vec d = vsub(vload(x + i), shift);
    sums[0] = squared ? vfma(sums[0], d, d) : vadd(sums[0], d);
  }
  if (i < n) {
    int lanes = (int)(n - i);
    vec d = vselect(vmask_first(lanes), vsub(vload_n(x + i, lanes), shift), vzero());
    sums[0] = squared ? vfma(sums[0], d, d) : vadd(sums[0], d);
  }
  return vhsum(vadd(vadd(sums[0], sums[1]), vadd(sums[2], sums[3])));
}

static Moments merge(Moments a, Moments b) {
  int64_t count = a.count + b.count;
  double apart = b.mean - a.mean, share = (double)b.count / (double)count;
  return (Moments){a.mean + apart * share, a.squares + b.squares + apart * apart * share * (double)a.count, count};
}

static Moments moments_of_chunk(const float *x, int64_t count) {
  float mean = CENTRED ? sum_of(x, count, vzero(), false) / (float)count : 0;
  return (Moments){mean, sum_of(x, count, vset(mean), true), count};
}

static Moments moments_of(const float *x, int64_t n) {
  Moments all = moments_of_chunk(x, min_i64(CHUNK, n));
  for (int64_t i = CHUNK; i < n; i += CHUNK) all = merge(all, moments_of_chunk(x + i, min_i64(CHUNK, n - i)));
  return all;
}

/* `factor` has the scale of a piece in it, `bias` its summand; the others are read beside the elements. */
SIMD_FUNCTION vec normal(const Normalise *p, vec x, vec mean, vec factor, vec bias, int64_t column, int lanes) {
  if (CENTRED) x = vsub(x, mean);
  if (SCALE == PARAMETER_BY_ELEMENT) factor = vmul(factor, vload_n(p->scale + column, lanes));
  if (BIAS == PARAMETER_BY_ELEMENT) bias = vload_n(p->bias + column, lanes);
  return epilogue(BIAS ? vfma(bias, x, factor) : vmul(x, factor));
}

static void normalise_piece(const Normalise *p, int64_t at, int64_t piece, int64_t column, vec mean, float inverse) {
  vec factor = vset(SCALE == PARAMETER_BY_PIECE ? inverse * p->scale[piece] : inverse),
      bias = BIAS == PARAMETER_BY_PIECE ? vset(p->bias[piece]) : vzero();
  const float *x = p->x + at;
  float *y = p->y + at;
  int64_t i = 0, last = p->inner - LANES;
  if (last < 0) {
    int rest = (int)p->inner;
    vstore_n(y, normal(p, vload_n(x, rest), mean, factor, bias, column, rest), rest);
    return;
  }
  vec at_last = vload(x + last); /* y may be x */
  for (; i <= last; i += LANES) vstore(y + i, normal(p, vload(x + i), mean, factor, bias, column + i, LANES));
  if (i < p->inner) vstore(y + last, normal(p, at_last, mean, factor, bias, column + last, LANES));
}

static void normalise_row(const Normalise *p, int64_t row) {
  int64_t n = p->pieces * p->inner, first = row % p->groups * p->pieces;
  Moments moments = moments_of(p->x + row * n, n);
  float mean = (float)moments.mean;
  float inverse = (float)(1 / __builtin_sqrt(moments.squares / (double)n + (double)p->epsilon));
  for (int64_t piece = 0; piece < p->pieces; piece++)
    normalise_piece(p, row * n + piece * p->inner, first + piece, piece * p->inner, vset(mean), inverse);
  if (p->mean) p->mean[row] = mean;
  if (p->inverse) p->inverse[row] = inverse;
}

/* x and y: [rows, pieces, inner]. scale and bias: [groups, pieces], or [pieces, inner] where each element has its own.
 */
static void normalise(const Team *team, const float *x, const float *scale, const float *bias, float *y, float *mean,
                      float *inverse, float epsilon, int64_t rows, int64_t groups, int64_t pieces, int64_t inner) {
  Normalise p = {x, scale, bias, y, mean, inverse, epsilon, groups, pieces, inner};
  int64_t together = ceil_div(CHUNK, pieces * inner), item, end; /* rows that are shared out as one */
  team_share(team, ceil_div(rows, together), &item, &end);
  for (int64_t row = item * together; row < min_i64(end * together, rows); row++) normalise_row(&p, row);
}
