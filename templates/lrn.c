/* SPDX-License-Identifier: MIT */
/*
 * Local response normalisation: y[n, c, p] = x[n, c, p] * (bias + alpha * sum of squares of channels c - before ..
 * c + after, pixel p)^-beta. A vector holds neighbouring pixels.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/math.h"

/* Half-width of what is summed: channels before, and after.
 * legal: 0..65536 */
enum { BEFORE = 2 };
/* legal: 0..65536 */
enum { AFTER = 2 };
/* What beta is: POWER_ANY, ...
 * legal: 0..3 */
enum { POWER = POWER_THREE_QUARTERS };

typedef struct Lrn {
  const float *x;
  float *y, alpha, beta, bias;
  int64_t channels, plane;
} Lrn;

enum { PIECE = 1024 };

/* x * base^-beta. */
SIMD_FUNCTION vec attenuated(vec x, vec base, float beta) {
  if (POWER == POWER_THREE_QUARTERS) {
    vec root = vsqrt(base);
    return vdiv(x, vmul(root, vsqrt(root)));
  }
  if (POWER == POWER_HALF) return vdiv(x, vsqrt(base));
  return vdiv(x, POWER == POWER_ONE ? base : vpow(base, vset(beta)));
}

/* n <= LANES pixels of one channel. */
SIMD_FUNCTION void some_pixels(const Lrn *l, const float *image, float *out, int64_t c, int64_t p, int n) {
  int64_t first = max_i64(c - BEFORE, 0), last = min_i64(c + AFTER, l->channels - 1);
  vec squares = vzero();
  for (int64_t k = first; k <= last; k++) {
    vec x = vload_n(image + k * l->plane + p, n);
    squares = vfma(squares, x, x);
  }
  vec base = vfma(vset(l->bias), vset(l->alpha), squares);
  vstore_n(out + c * l->plane + p, attenuated(vload_n(image + c * l->plane + p, n), base, l->beta), n);
}

/* x and y: [n, channels, plane]; alpha: of one square. */
static void lrn(const Team *team, const float *x, float *y, float alpha, float beta, float bias, int64_t n,
                int64_t channels, int64_t plane) {
  Lrn l = {x, y, alpha, beta, bias, channels, plane};
  int64_t pieces = ceil_div(plane, PIECE), item, end;
  team_share(team, n * channels * pieces, &item, &end);
  for (; item < end; item++) {
    int64_t begin = item % pieces * PIECE, stop = min_i64(begin + PIECE, plane);
    int64_t c = item / pieces % channels, image = item / pieces / channels * channels * plane;
    for (int64_t p = begin; p < stop; p += LANES)
      some_pixels(&l, x + image, y + image, c, p, (int)min_i64(LANES, stop - p));
  }
}
