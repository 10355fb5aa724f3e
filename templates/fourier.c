/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms of rows, by Stockham's method (Cochran et al., 1967) in two halves: N = N1 N2 points are
 * a matrix [N1][N2] whose columns are transformed, all at once, and turned by twiddle factors; then its transpose
 * [N2][N1], likewise, whose result is in order. A half is one pass for each of its radices, over vectors of
 * neighbouring columns: nothing is permuted but in the transposition, which is done in registers.
 *
 * An even number of real points is transformed as half as many complex ones (Cooley, Lewis and Welch, 1970).
 * Real and imaginary parts are in arrays of their own. The inverse is the transform with the two exchanged.
 *
 * The tables hold, one after the other: twiddle factors of the first half's passes, of the matrix, of the second half's
 * passes, and of the split of packed real points.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/simd.h"

/* What comes in and goes out, FOURIER_COMPLEX, ...
 * legal: 0..3 */
enum { FORM = FOURIER_COMPLEX };
/* Points of the signal.
 * legal: 1..16777216 */
enum { LENGTH = 64 };
/* 1: the inverse, of complex points.
 * legal: 0 1 */
enum { INVERSE = 0 };
/* 1: points are multiplied by a window.
 * legal: 0 1 */
enum { WINDOWED = 0 };
/* Points of the two halves; their product is LENGTH, or LENGTH / 2 of an even number of real points.
 * legal: 1..4096 */
enum { N1 = 8 };
/* legal: 1..4096 */
enum { N2 = 8 };
/* Radices of the first half, the last ones 1; their product is N1.
 * legal: 1..31 */
enum { A0 = 8 };
/* legal: 1..31 */
enum { A1 = 1 };
/* legal: 1..31 */
enum { A2 = 1 };
/* legal: 1..31 */
enum { A3 = 1 };
/* Of the second half.
 * legal: 1..31 */
enum { B0 = 8 };
/* legal: 1..31 */
enum { B1 = 1 };
/* legal: 1..31 */
enum { B2 = 1 };
/* legal: 1..31 */
enum { B3 = 1 };

enum { REAL = FORM != FOURIER_COMPLEX, PACKED = REAL && LENGTH % 2 == 0, BINS = LENGTH / 2 + 1 };
enum { POINTS = PACKED ? LENGTH / 2 : LENGTH };
/* Rows of a half's matrix are whole vectors; lanes past the last column have any value. */
enum { ROUND1 = (N1 + LANES - 1) / LANES * LANES, ROUND2 = (N2 + LANES - 1) / LANES * LANES };
/* From real to imaginary parts; with room for a vector more, that is written past the last point. */
enum { ARRAY = ROUND1 * ROUND2 + FOURIER_ROOM };
enum { MAX_RADIX = 31 };

/* ---- a few points of LANES transforms each ---- */

SIMD_FUNCTION void sum_and_difference(vec *a, vec *b) {
  vec sum = vadd(*a, *b);
  *b = vsub(*a, *b);
  *a = sum;
}

SIMD_FUNCTION void two_points(vec re[2], vec im[2]) {
  sum_and_difference(&re[0], &re[1]);
  sum_and_difference(&im[0], &im[1]);
}

SIMD_FUNCTION void four_points(vec re[4], vec im[4]) {
  vec sum_re[2] = {vadd(re[0], re[2]), vadd(re[1], re[3])}, sum_im[2] = {vadd(im[0], im[2]), vadd(im[1], im[3])};
  vec apart_re[2] = {vsub(re[0], re[2]), vsub(re[1], re[3])}, apart_im[2] = {vsub(im[0], im[2]), vsub(im[1], im[3])};
  re[0] = vadd(sum_re[0], sum_re[1]);
  im[0] = vadd(sum_im[0], sum_im[1]);
  re[1] = vadd(apart_re[0], apart_im[1]);
  im[1] = vsub(apart_im[0], apart_re[1]);
  re[2] = vsub(sum_re[0], sum_re[1]);
  im[2] = vsub(sum_im[0], sum_im[1]);
  re[3] = vsub(apart_re[0], apart_im[1]);
  im[3] = vadd(apart_im[0], apart_re[1]);
}

SIMD_FUNCTION void eight_points(vec re[8], vec im[8]) {
  vec even_re[4] = {re[0], re[2], re[4], re[6]}, even_im[4] = {im[0], im[2], im[4], im[6]};
  vec odd_re[4] = {re[1], re[3], re[5], re[7]}, odd_im[4] = {im[1], im[3], im[5], im[7]};
  vec root = vset(0x1.6a09e6p-1f), turned; /* of one half */
  four_points(even_re, even_im);
  four_points(odd_re, odd_im);
  turned = vmul(root, vadd(odd_re[1], odd_im[1]));
  odd_im[1] = vmul(root, vsub(odd_im[1], odd_re[1]));
  odd_re[1] = turned;
  turned = odd_im[2];
  odd_im[2] = vneg(odd_re[2]);
  odd_re[2] = turned;
  turned = vmul(root, vsub(odd_im[3], odd_re[3]));
  odd_im[3] = vneg(vmul(root, vadd(odd_im[3], odd_re[3])));
  odd_re[3] = turned;
#pragma clang loop unroll(full)
  for (int k = 0; k < 4; k++) {
    re[k] = vadd(even_re[k], odd_re[k]);
    im[k] = vadd(even_im[k], odd_im[k]);
    re[k + 4] = vsub(even_re[k], odd_re[k]);
    im[k + 4] = vsub(even_im[k], odd_im[k]);
  }
}

/* An odd number of points, in pairs j and n - j, whose factors are conjugate. roots: cos(2 pi j / n), then the sines.
 */
SIMD_FUNCTION void odd_points(int n, vec *re, vec *im, const float *roots) {
  int half = n / 2;
  vec first_re = re[0], first_im = im[0];
#pragma clang loop unroll(full)
  for (int j = 1; j <= half; j++) {
    sum_and_difference(&re[j], &re[n - j]);
    sum_and_difference(&im[j], &im[n - j]);
    re[0] = vadd(re[0], re[j]);
    im[0] = vadd(im[0], im[j]);
  }
  vec even_re[MAX_RADIX / 2], even_im[MAX_RADIX / 2], odd_re[MAX_RADIX / 2], odd_im[MAX_RADIX / 2];
#pragma clang loop unroll(full)
  for (int k = 1; k <= half; k++) {
    vec sum_re = first_re, sum_im = first_im, apart_re = vzero(), apart_im = vzero();
#pragma clang loop unroll(full)
    for (int j = 1; j <= half; j++) {
      vec cosine = vbroadcast_load(roots + j * k % n), sine = vbroadcast_load(roots + n + j * k % n);
      sum_re = vfma(sum_re, cosine, re[j]);
      sum_im = vfma(sum_im, cosine, im[j]);
      apart_re = vfma(apart_re, sine, im[n - j]);
      apart_im = vfma(apart_im, sine, re[n - j]);
    }
    even_re[k - 1] = sum_re;
    even_im[k - 1] = sum_im;
    odd_re[k - 1] = apart_re;
    odd_im[k - 1] = apart_im;
  }
#pragma clang loop unroll(full)
  for (int k = 1; k <= half; k++) {
    re[k] = vadd(even_re[k - 1], odd_re[k - 1]);
    im[k] = vsub(even_im[k - 1], odd_im[k - 1]);
    re[n - k] = vsub(even_re[k - 1], odd_re[k - 1]);
    im[n - k] = vadd(even_im[k - 1], odd_im[k - 1]);
  }
}

SIMD_FUNCTION void few_points(int n, vec *re, vec *im, const float *roots) {
  if (n == 2)
    two_points(re, im);
  else if (n == 4)
    four_points(re, im);
  else if (n == 8)
    eight_points(re, im);
  else
    odd_points(n, re, im, roots);
}

SIMD_FUNCTION void turn(vec *re, vec *im, vec cosine, vec sine) {
  vec turned = vfnma(vmul(*re, cosine), *im, sine);
  *im = vfma(vmul(*re, sine), *im, cosine);
  *re = turned;
}

/* ---- passes ---- */

/* Floats of a pass's table: an odd radix's roots, then radix - 1 twiddle factors for each p but the last pass's one. */
SIMD_FUNCTION int64_t pass_table(int radix, int64_t n) {
  return (radix % 2 ? 2 * radix : 0) + (n > radix ? n / radix * (radix - 1) * 2 : 0);
}

/* s transforms of n points, whose sums over `radix` points are taken: from[radix][n / radix][s] to
 * to[n / radix][radix][s]; n / radix points of each are left to transform. */
SIMD_FUNCTION void pass(int radix, int64_t n, int64_t s, const float *restrict from, float *restrict to,
                        const float *restrict table) {
  int64_t left = n / radix;
  const float *factors = table + (radix % 2 ? 2 * radix : 0);
  for (int64_t p = 0; p < left; p++, factors += 2 * (radix - 1))
    for (int64_t q = 0; q < s; q += LANES) {
      vec re[MAX_RADIX], im[MAX_RADIX];
#pragma clang loop unroll(full)
      for (int k = 0; k < radix; k++) {
        re[k] = vload(from + s * (p + left * k) + q);
        im[k] = vload(from + ARRAY + s * (p + left * k) + q);
      }
      few_points(radix, re, im, table);
#pragma clang loop unroll(full)
      for (int k = 0; k < radix; k++) {
        if (left > 1 && k)
          turn(&re[k], &im[k], vbroadcast_load(factors + 2 * k - 2), vbroadcast_load(factors + 2 * k - 1));
        vstore(to + s * (radix * p + k) + q, re[k]);
        vstore(to + ARRAY + s * (radix * p + k) + q, im[k]);
      }
    }
}

/* Four radices' passes over s columns, there and back; the result's place. */
SIMD_FUNCTION float *passes(int r0, int r1, int r2, int r3, int64_t s, float *from, float *to, const float *table) {
  const int radices[4] = {r0, r1, r2, r3};
  int64_t n = (int64_t)r0 * r1 * r2 * r3;
#pragma clang loop unroll(full)
  for (int k = 0; k < 4; k++) {
    if (radices[k] == 1) continue;
    pass(radices[k], n, s, from, to, table);
    table += pass_table(radices[k], n);
    n /= radices[k];
    s *= radices[k];
    float *next = from;
    from = to;
    to = next;
  }
  return from;
}

SIMD_FUNCTION int64_t passes_table(int r0, int r1, int r2, int r3) {
  return (r0 > 1 ? pass_table(r0, (int64_t)r0 * r1 * r2 * r3) : 0) +
         (r1 > 1 ? pass_table(r1, (int64_t)r1 * r2 * r3) : 0) + (r2 > 1 ? pass_table(r2, (int64_t)r2 * r3) : 0) +
         (r3 > 1 ? pass_table(r3, r3) : 0);
}

/* ---- between the halves ---- */

/* LANES rows of LANES points, turned by the factors of their places: their real or imaginary parts, transposed. */
SIMD_FUNCTION void turn_square(const float *restrict from, float *restrict to, const float *restrict factors,
                               bool imaginary) {
  vec rows[LANES];
#pragma clang loop unroll(full)
  for (int k = 0; k < LANES; k++) {
    vec re = vload(from + k * ROUND2), im = vload(from + ARRAY + k * ROUND2);
    vec cosine = vload(factors + k * ROUND2), sine = vload(factors + ROUND1 * ROUND2 + k * ROUND2);
    rows[k] = imaginary ? vfma(vmul(re, sine), im, cosine) : vfnma(vmul(re, cosine), im, sine);
  }
  vtranspose(rows);
#pragma clang loop unroll(full)
  for (int k = 0; k < LANES; k++) vstore(to + k * ROUND1, rows[k]);
}

/* from[ROUND1][ROUND2] to to[ROUND2][ROUND1]. */
static void turn_and_transpose(const float *restrict from, float *restrict to, const float *restrict factors) {
  for (int64_t i = 0; i < ROUND1; i += LANES)
    for (int64_t j = 0; j < ROUND2; j += LANES) {
      int64_t at = i * ROUND2 + j;
      turn_square(from + at, to + j * ROUND1 + i, factors + at, false);
      turn_square(from + at, to + ARRAY + j * ROUND1 + i, factors + at, true);
    }
}

/* ---- points in ---- */

/* x[2 k] and x[2 k + 1] are a point; of the inverse they are exchanged, and divided by the length. */
SIMD_FUNCTION void load_vector_of_pairs(const float *x, const float *window, float *re, float *im) {
  vec low = vload(x), high = vload(x + LANES), scale = vset(1.0f / LENGTH);
  if (WINDOWED && PACKED) low = vmul(low, vload(window)), high = vmul(high, vload(window + LANES));
  vec even = vunzip_even(low, high), odd = vunzip_odd(low, high);
  if (WINDOWED && !PACKED) even = vmul(even, vload(window)), odd = vmul(odd, vload(window));
  vstore(re, INVERSE ? vmul(even, scale) : even);
  vstore(im, INVERSE ? vmul(odd, scale) : odd);
}

/* Of short rows; and their last vector ends with the row. */
static void load_pairs(const float *restrict x, const float *restrict window, float *restrict to) {
  float *re = INVERSE ? to + ARRAY : to, *im = INVERSE ? to : to + ARRAY;
  const float scale = INVERSE ? 1.0f / LENGTH : 1;
  for (int64_t i = 0; i < N1; i++)
    for (int64_t j = 0; j < N2; j += N2 < LANES ? 1 : LANES) {
      int64_t column = N2 < LANES ? j : min_i64(j, N2 - LANES), k = i * N2 + column, at = i * ROUND2 + column;
      const float *factors = window + (PACKED ? 2 * k : k);
      if (N2 >= LANES) {
        load_vector_of_pairs(x + 2 * k, factors, re + at, im + at);
      } else {
        re[at] = scale * (WINDOWED ? x[2 * k] * factors[0] : x[2 * k]);
        im[at] = scale * (WINDOWED ? x[2 * k + 1] * factors[PACKED] : x[2 * k + 1]);
      }
    }
}

static void load_real(const float *restrict x, const float *restrict window, float *restrict to) {
  for (int64_t i = 0; i < N1; i++)
    for (int64_t j = 0; j < N2; j++) {
      int64_t k = i * N2 + j, at = i * ROUND2 + j;
      to[at] = WINDOWED ? x[k] * window[k] : x[k];
      to[ARRAY + at] = 0;
    }
}

/* Half a spectrum of an even number of points: bin k and the conjugate of its mirror image POINTS - k make the spectra
 * of even and of odd points; the latter become imaginary. halves: factors of the split, halved. */
static void load_half_packed(const float *restrict x, const float *restrict halves, float *restrict to) {
  const float scale = 2.0f / LENGTH;
  for (int64_t i = 0; i < N1; i++)
    for (int64_t j = 0; j < N2; j++) {
      int64_t k = i * N2 + j, mirrored = POINTS - k, at = i * ROUND2 + j;
      float sum_re = x[2 * k] + x[2 * mirrored], sum_im = x[2 * k + 1] - x[2 * mirrored + 1];
      float apart_re = x[2 * k] - x[2 * mirrored], apart_im = x[2 * k + 1] + x[2 * mirrored + 1];
      float cosine = halves[k], sine = halves[BINS + k];
      to[ARRAY + at] = scale * (0.5f * sum_re - (cosine * apart_im - sine * apart_re));
      to[at] = scale * (0.5f * sum_im + (cosine * apart_re + sine * apart_im));
    }
  to[ARRAY] = 0.5f * scale * (x[0] + x[2 * POINTS]);
  to[0] = 0.5f * scale * (x[0] - x[2 * POINTS]);
}

/* Of an odd number: all bins, with the mirror images. The first one's imaginary part does not count. */
static void load_half(const float *restrict x, float *restrict to) {
  const float scale = 1.0f / LENGTH;
  for (int64_t i = 0; i < N1; i++)
    for (int64_t j = 0; j < N2; j++) {
      int64_t k = i * N2 + j, bin = k < BINS ? k : LENGTH - k, at = i * ROUND2 + j;
      to[ARRAY + at] = scale * x[2 * bin];
      to[at] = k ? scale * (k < BINS ? x[2 * bin + 1] : -x[2 * bin + 1]) : 0;
    }
}

static void load_row(const float *x, const float *window, const float *halves, float *to) {
  if (FORM == FOURIER_HALF && PACKED)
    load_half_packed(x, halves, to);
  else if (FORM == FOURIER_HALF)
    load_half(x, to);
  else if (FORM == FOURIER_COMPLEX || PACKED)
    load_pairs(x, window, to);
  else
    load_real(x, window, to);
}

/* ---- results out ---- */

/* Rows of ROUND1 become rows of N1, in ascending order: what a vector writes past its row, the next row overwrites. */
static void close_up(const float *restrict from, float *restrict to) {
  for (int part = 0; part < 2; part++)
    for (int64_t row = 0; row < N2; row++)
      for (int64_t q = 0; q < ROUND1; q += LANES)
        vstore(to + part * ARRAY + row * N1 + q, vload(from + part * ARRAY + row * ROUND1 + q));
}

static void store_pairs(const float *restrict from, float *restrict y, int64_t n, bool exchanged) {
  const float *re = exchanged ? from + ARRAY : from, *im = exchanged ? from : from + ARRAY;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    vstore(y + 2 * k, vzip_low(vload(re + k), vload(im + k)));
    vstore(y + 2 * k + LANES, vzip_high(vload(re + k), vload(im + k)));
  }
#pragma clang loop vectorize(disable)
  for (; k < n; k++) {
    y[2 * k] = re[k];
    y[2 * k + 1] = im[k];
  }
}

/* LANES bins of an even number of real points: those of even points, and those of odd points turned by the factors. */
SIMD_FUNCTION void store_split(const float *re, float *y, const float *halves, int64_t k) {
  int64_t mirrored = POINTS - k - LANES + 1;
  vec re_here = vload(re + k), im_here = vload(re + ARRAY + k);
  vec re_there = vreverse(vload(re + mirrored)), im_there = vreverse(vload(re + ARRAY + mirrored));
  vec odd_re = vadd(im_here, im_there), odd_im = vsub(re_there, re_here), half = vset(0.5f);
  turn(&odd_re, &odd_im, vload(halves + k), vload(halves + BINS + k));
  vec bins_re = vfma(odd_re, half, vadd(re_here, re_there)), bins_im = vfma(odd_im, half, vsub(im_here, im_there));
  vstore(y + 2 * k, vzip_low(bins_re, bins_im));
  vstore(y + 2 * k + LANES, vzip_high(bins_re, bins_im));
}

static void store_half_packed(const float *restrict re, float *restrict y, const float *restrict halves) {
  const float *im = re + ARRAY;
  int64_t k = 0;
  for (; k + LANES <= POINTS; k += LANES) store_split(re, y, halves, k);
#pragma clang loop vectorize(disable)
  for (; k < BINS; k++) {
    int64_t mirrored = POINTS - k;
    float cosine = halves[k], sine = halves[BINS + k];
    float odd_re = im[k] + im[mirrored], odd_im = re[mirrored] - re[k];
    y[2 * k] = 0.5f * (re[k] + re[mirrored]) + (cosine * odd_re - sine * odd_im);
    y[2 * k + 1] = 0.5f * (im[k] - im[mirrored]) + (cosine * odd_im + sine * odd_re);
  }
}

static void store_mirror_image(float *y) {
  for (int64_t k = BINS; k < LENGTH; k++) {
    y[2 * k] = y[2 * (LENGTH - k)];
    y[2 * k + 1] = -y[2 * (LENGTH - k) + 1];
  }
}

static void store_row(float *from, float *y, const float *halves) {
  if (FORM == FOURIER_COMPLEX) {
    store_pairs(from, y, LENGTH, INVERSE);
  } else if (FORM == FOURIER_HALF && PACKED) {
    store_pairs(from, y, POINTS, true);
  } else if (FORM == FOURIER_HALF) {
    for (int64_t k = 0; k < LENGTH; k++) y[k] = from[ARRAY + k];
  } else if (PACKED) {
    from[POINTS] = from[0]; /* the mirror image of bin 0 */
    from[ARRAY + POINTS] = from[ARRAY];
    store_half_packed(from, y, halves);
  } else {
    store_pairs(from, y, BINS, false);
  }
  if (FORM == FOURIER_REAL_WHOLE) store_mirror_image(y);
}

/* ---- a row ---- */

static void transform(const float *x, const float *window, const float *tables, float *y, float *here, float *there) {
  const float *between = tables + passes_table(A0, A1, A2, A3), *second = between + 2 * ROUND1 * ROUND2;
  const float *halves = second + passes_table(B0, B1, B2, B3);
  load_row(x, window, halves, here);
  float *columns = passes(A0, A1, A2, A3, ROUND2, here, there, tables);
  float *rows = columns == here ? there : here;
  turn_and_transpose(columns, rows, between);
  float *result = passes(B0, B1, B2, B3, ROUND1, rows, columns, second);
  if (ROUND1 > N1) {
    float *closed = result == here ? there : here;
    close_up(result, closed);
    result = closed;
  }
  store_row(result, y, halves);
}

/* Rows of x and y: a row of x begins `outer_step` floats after the one that is `inner` rows before, else `inner_step`
 * after the last one; y's rows are next to each other. scratch: for each of `slots` workers, which share the rows, two
 * times two arrays, `slot` floats from one worker's to the next one's. */
static void fourier(const Team *team, const float *x, const float *window, const float *tables, float *y,
                    float *scratch, int64_t slots, int64_t slot, int64_t outer, int64_t inner, int64_t outer_step,
                    int64_t inner_step, int64_t y_step) {
  int64_t rows = outer * inner, workers = min_i64(slots, team->size), rank = min_i64(team->rank, workers);
  int64_t end = rows * min_i64(rank + 1, workers) / workers;
  float *here = scratch + min_i64(rank, workers - 1) * slot, *there = here + 2 * ARRAY;
  for (int64_t row = rows * rank / workers; row < end; row++)
    transform(x + row / inner * outer_step + row % inner * inner_step, window, tables, y + row * y_step, here, there);
}
