/* SPDX-License-Identifier: MIT */
/*
 * The scores' gradient of templates/cross_entropy.c: d (exp(x - m) / sum - [class is the target]), where d is that of
 * the place's loss. The scores are read once, the gradient is written once.
 */
#include "kernel.h"
#include "simd/math.h"

/* 1: inner is 1.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };
/* 1: a place whose target is `ignored` has the gradient 0.
 * legal: 0 1 */
enum { IGNORES = 0 };

typedef struct Losses {
  const float *x, *maxima, *sums, *d;
  const int64_t *targets;
  float *dx;
  int64_t n, inner, ignored;
} Losses;

static void of_row(const Losses *l, int64_t place) {
  const float *x = l->x + place * l->n;
  float *dx = l->dx + place * l->n;
  vec top = vset(l->maxima[place]), scale = vset(l->d[place] / l->sums[place]);
  int64_t i = 0;
  for (; i + LANES <= l->n; i += LANES) vstore(dx + i, vmul(vexp(vsub(vload(x + i), top)), scale));
  int rest = (int)(l->n - i);
  if (rest) vstore_n(dx + i, vmul(vexp(vsub(vload_n(x + i, rest), top)), scale), rest);
}

static void of_columns(const Losses *l, int64_t place, int lanes) {
  int64_t first = place / l->inner * l->n * l->inner + place % l->inner;
  vec top = vload_n(l->maxima + place, lanes);
  vec scale = vdiv(vload_n(l->d + place, lanes), vload_n(l->sums + place, lanes));
  for (int64_t k = 0; k < l->n; k++) {
    int64_t at = first + k * l->inner;
    vstore_n(l->dx + at, vmul(vexp(vsub(vload_n(l->x + at, lanes), top)), scale), lanes);
  }
}

/* The target's class; a run whose targets are no classes has failed before. */
static void at_target(const Losses *l, int64_t place) {
  int64_t target = l->targets[place];
  float *dx = l->dx + place / l->inner * l->n * l->inner + place % l->inner;
  if (IGNORES && target == l->ignored) {
    for (int64_t k = 0; k < l->n; k++) dx[k * l->inner] = 0;
    return;
  }
  if (target >= 0 && target < l->n) dx[target * l->inner] -= l->d[place];
}

/* x, dx: [outer, n, inner]; targets, maxima, sums, d: [outer, inner]. */
static void cross_entropy_gradient(const Team *team, const float *x, const int64_t *targets, const float *maxima,
                                   const float *sums, const float *d, float *dx, int64_t outer, int64_t n,
                                   int64_t inner, int64_t ignored) {
  Losses l = {x, maxima, sums, d, targets, dx, n, inner, ignored};
  int64_t blocks = LAST_AXIS ? 1 : ceil_div(inner, LANES), item, end;
  team_share(team, outer * blocks, &item, &end);
  for (; item < end; item++) {
    int64_t column = item % blocks * LANES, place = item / blocks * inner + column;
    int lanes = (int)min_i64(LANES, inner - column);
    if (LAST_AXIS)
      of_row(&l, place);
    else
      of_columns(&l, place, lanes);
    for (int i = 0; i < lanes; i++) at_target(&l, place + i);
  }
}
