/* SPDX-License-Identifier: MIT */
/*
 * softmax(scale q K' + mask) V of one query a batch, in f32. Rows of K and V are contiguous, and vectors run along
 * them. A worker computes a batch's scores and then its results, so that where K is V the cache still has it. Workers
 * share the batches.
 *
 * As in Softmax, a query whose scores are all -inf has weights of NaN, and so has one with a score of NaN or +inf.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* What is added to the scores. 0: nothing; 1: a number for each key.
 * legal: 0 1 */
enum { MASK = 0 };
/* 1: a query whose weights are not numbers gets 0.
 * legal: 0 1 */
enum { BLIND_ZERO = 0 };

/* Vectors of a result at once, and fewer where less is left. */
enum { VECTORS = 8, FEW = 4 };

/* One batch. */
typedef struct Attend {
  const float *q, *k, *v, *mask;
  float *y, *scores;
  int64_t keys, depth, width, k_row, v_row, mask_column;
  float scale;
} Attend;

/* The products of q with `keys` rows of K, in lanes. */
SIMD_FUNCTION void multiply(const Attend *a, vec sums[LANES], int64_t key, int keys) {
  const float *k = a->k + key * a->k_row;
  int64_t i = 0;
#pragma clang loop unroll(full)
  for (int m = 0; m < keys; m++) sums[m] = vzero();
  for (; i + LANES <= a->depth; i += LANES) {
    vec q = vload(a->q + i);
#pragma clang loop unroll(full)
    for (int m = 0; m < keys; m++) sums[m] = vfma(sums[m], q, vload(k + m * a->k_row + i));
  }
  int rest = (int)(a->depth - i);
  if (!rest) return;
  vec q = vload_n(a->q + i, rest);
#pragma clang loop unroll(full)
  for (int m = 0; m < keys; m++) sums[m] = vfma(sums[m], q, vload_n(k + m * a->k_row + i, rest));
}

/* Scores of a vector of keys: lanes are summed by turning them. */
static void score_vector(const Attend *a, int64_t key) {
  vec sums[LANES], score = vzero();
  multiply(a, sums, key, LANES);
  vtranspose(sums);
#pragma clang loop unroll(full)
  for (int m = 0; m < LANES; m++) score = vadd(score, sums[m]);
  vstore(a->scores + key, vmul(score, vset(a->scale)));
}

static void score_key(const Attend *a, int64_t key) {
  vec sums[LANES];
  multiply(a, sums, key, 1);
  a->scores[key] = vhsum(sums[0]) * a->scale;
}

static void score_keys(const Attend *a) {
  int64_t key = 0;
  for (; key + LANES <= a->keys; key += LANES) score_vector(a, key);
  for (; key < a->keys; key++) score_key(a, key);
  for (key = 0; MASK && key < a->keys; key++) a->scores[key] += a->mask[key * a->mask_column];
}

/* Scores become e^(score - maximum). Returns the sum. */
static float weigh(const Attend *a) {
  vec top = vset(-__builtin_inff()), sum = vzero();
  for (int64_t i = 0; i < a->keys; i += LANES) {
    int lanes = (int)min_i64(LANES, a->keys - i);
    top = vmax(top, vselect(vmask_first(lanes), vload_n(a->scores + i, lanes), top));
  }
  top = vset(vhmax(top));
  for (int64_t i = 0; i < a->keys; i += LANES) {
    int lanes = (int)min_i64(LANES, a->keys - i);
    vec weight = vexp(vsub(vload_n(a->scores + i, lanes), top));
    sum = vadd(sum, vselect(vmask_first(lanes), weight, vzero()));
    vstore_n(a->scores + i, weight, lanes);
  }
  return vhsum(sum);
}

/* Columns `column` .. of the result: `vectors` whole vectors, or one of `rest` elements. */
SIMD_FUNCTION void result_columns(const Attend *a, int64_t column, vec factor, int vectors, int rest) {
  vec sums[VECTORS];
  const float *v = a->v + column;
#pragma clang loop unroll(full)
  for (int i = 0; i < vectors; i++) sums[i] = vzero();
  for (int64_t key = 0; key < a->keys; key++, v += a->v_row) {
    vec weight = vbroadcast_load(a->scores + key);
#pragma clang loop unroll(full)
    for (int i = 0; i < vectors; i++) sums[i] = vfma(sums[i], weight, rest ? vload_n(v, rest) : vload(v + i * LANES));
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < vectors; i++) {
    vec result = vmul(sums[i], factor);
    if (rest)
      vstore_n(a->y + column, result, rest);
    else
      vstore(a->y + column + i * LANES, result);
  }
}

static void attend(const Attend *a) {
  int64_t column = 0;
  score_keys(a);
  float sum = weigh(a);
  if (BLIND_ZERO && !(sum > 0)) {
    for (; column < a->width; column++) a->y[column] = 0;
    return;
  }
  vec factor = vset(1 / sum);
  for (; column + VECTORS * LANES <= a->width; column += VECTORS * LANES) result_columns(a, column, factor, VECTORS, 0);
  for (; column + FEW * LANES <= a->width; column += FEW * LANES) result_columns(a, column, factor, FEW, 0);
  for (; column + LANES <= a->width; column += LANES) result_columns(a, column, factor, 1, 0);
  if (column < a->width) result_columns(a, column, factor, 1, (int)(a->width - column));
}

/* strides: [q, k, v, mask, y][rank], in elements. scratch: `slots` workers' slots, `slot` floats apart, of a number for
 * each key. Workers without one have nothing to do. No extent is zero. */
static void attention_row(const Team *team, const float *q, const float *k, const float *v, const float *mask, float *y,
                          float *scratch, float scale, int64_t keys, int64_t depth, int64_t width, int64_t k_row,
                          int64_t v_row, int64_t mask_column, int64_t batch_rank, const int64_t *batch_dims,
                          const int64_t *strides, int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), batches = 1;
  if (team->rank >= workers) return;
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  int64_t item = share_begin(batches, team->rank, workers), end = share_begin(batches, team->rank + 1, workers);
  for (; item < end; item++) {
    Attend a = {q, k, v, mask, y, scratch + team->rank * slot, keys, depth, width, k_row, v_row, mask_column, scale};
    for (int64_t axis = batch_rank - 1, index = item; axis >= 0; index /= batch_dims[axis--]) {
      int64_t i = index % batch_dims[axis];
      a.q += i * strides[axis];
      a.k += i * strides[batch_rank + axis];
      a.v += i * strides[2 * batch_rank + axis];
      if (MASK) a.mask += i * strides[3 * batch_rank + axis];
      a.y += i * strides[4 * batch_rank + axis];
    }
    attend(&a);
  }
}
