/* SPDX-License-Identifier: MIT */
/*
 * Cross entropy of scores x[outer, n, inner], n classes, and a target class for each other place: log(sum of exp(x -
 * m)) - (x[target] - m), where m is the place's maximum. No tensor of the scores' size is written. Where the classes
 * are the last axis a vector runs along them; else a vector holds LANES neighbouring places. A NaN, or an infinite
 * maximum, makes the place's loss NaN.
 */
#include "kernel.h"
#include "simd/math.h"

/* 1: inner is 1.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };
/* 1: a place whose target is `ignored` has the loss 0.
 * legal: 0 1 */
enum { IGNORES = 0 };

/* Running maxima: the next need not wait for the last. */
enum { CHAINS = 4 };

typedef struct Losses {
  const float *x;
  const int64_t *targets;
  float *losses, *maxima, *sums;
  int64_t n, inner, ignored;
  atomic_int *fault;
} Losses;

static float row_maximum(const float *x, int64_t n) {
  vec top[CHAINS];
  int64_t i = 0;
#pragma clang loop unroll(full)
  for (int k = 0; k < CHAINS; k++) top[k] = vset(-__builtin_inff());
  for (; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
#pragma clang loop unroll(full)
    for (int k = 0; k < CHAINS; k++) top[k] = vmax(top[k], vload(x + i + k * LANES));
  }
  for (; i < n; i += LANES) {
    int lanes = (int)min_i64(LANES, n - i);
    top[0] = vmax(top[0], vselect(vmask_first(lanes), vload_n(x + i, lanes), top[0]));
  }
  return vhmax(vmax(vmax(top[0], top[1]), vmax(top[2], top[3])));
}

static float row_sum(const float *x, int64_t n, float maximum) {
  vec top = vset(maximum), sum = vzero();
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) sum = vadd(sum, vexp(vsub(vload(x + i), top)));
  int rest = (int)(n - i);
  if (rest) sum = vadd(sum, vselect(vmask_first(rest), vexp(vsub(vload_n(x + i, rest), top)), vzero()));
  return vhsum(sum);
}

/* The score of the place's target class. */
static float target_score(const Losses *l, int64_t place) {
  int64_t target = l->targets[place];
  if (IGNORES && target == l->ignored) return 0;
  if (target < 0 || target >= l->n) {
    fault_report(l->fault, RNNCC_ERROR_VALUE);
    return 0;
  }
  return l->x[(place / l->inner * l->n + target) * l->inner + place % l->inner];
}

/* Of the `lanes` places from `place` on. */
static void finish(const Losses *l, int64_t place, vec maximum, vec sum, int lanes) {
  float scores[LANES] = {0};
  for (int i = 0; i < lanes; i++) scores[i] = target_score(l, place + i);
  vstore_n(l->losses + place, vsub(vlog(sum), vsub(vload(scores), maximum)), lanes);
  for (int i = 0; IGNORES && i < lanes; i++)
    if (l->targets[place + i] == l->ignored) l->losses[place + i] = 0;
  if (l->maxima) vstore_n(l->maxima + place, maximum, lanes);
  if (l->sums) vstore_n(l->sums + place, sum, lanes);
}

static void of_rows(const Losses *l, int64_t place, int lanes) {
  float maxima[LANES] = {0}, sums[LANES] = {0};
  for (int i = 0; i < lanes; i++) {
    const float *row = l->x + (place + i) * l->n;
    maxima[i] = row_maximum(row, l->n);
    sums[i] = row_sum(row, l->n, maxima[i]);
  }
  finish(l, place, vload(maxima), vload(sums), lanes);
}

/* Neighbouring places, whose scores are `inner` apart. */
static void of_columns(const Losses *l, int64_t place, int lanes) {
  const float *x = l->x + place / l->inner * l->n * l->inner + place % l->inner;
  vec top = vset(-__builtin_inff()), sum = vzero();
  for (int64_t k = 0; k < l->n; k++) top = vmax(top, vload_n(x + k * l->inner, lanes));
  for (int64_t k = 0; k < l->n; k++) sum = vadd(sum, vexp(vsub(vload_n(x + k * l->inner, lanes), top)));
  finish(l, place, top, sum, lanes);
}

/* targets, losses, maxima, sums: [outer, inner]; maxima and sums, which the gradient reads, may be NULL. */
static void cross_entropy(const Team *team, const float *x, const int64_t *targets, float *losses, float *maxima,
                          float *sums, int64_t outer, int64_t n, int64_t inner, int64_t ignored, atomic_int *fault) {
  Losses l = {x, targets, losses, maxima, sums, n, inner, ignored, fault};
  int64_t blocks = ceil_div(inner, LANES), item, end;
  team_share(team, LAST_AXIS ? outer : outer * blocks, &item, &end);
  if (LAST_AXIS) {
    for (; item < end; item += LANES) of_rows(&l, item, (int)min_i64(LANES, end - item));
    return;
  }
  for (; item < end; item++) {
    int64_t column = item % blocks * LANES;
    of_columns(&l, item / blocks * inner + column, (int)min_i64(LANES, inner - column));
  }
}
