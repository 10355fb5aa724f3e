/* SPDX-License-Identifier: MIT */
/*
 * A part of gemm_int8.c and gemm_int8_matrices.c: the operands, and what becomes of a vector of sums. The template says
 * before it how many VECTORS a panel has.
 */

/* Elements of A.
 * legal: uint8_t int8_t */
typedef uint8_t A;
/* Has A a zero point other than 0?
 * legal: 0 1 */
enum { A_ZERO = 1 };
/* Has B one zero point other than 0? Then the kernel adds up rows of A.
 * legal: 0 1 */
enum { B_ZERO = 0 };
/* Is a row of i32 added to the sums?
 * legal: 0 1 */
enum { BIAS = 0 };
/* 0: the sums are not scaled; 1: by one number; 2: by one for each column.
 * legal: 0..2 */
enum { SCALES = 2 };
/* Is a scale multiplied by A's, which only the run knows?
 * legal: 0 1 */
enum { A_SCALE = 0 };
/* Is a row of f32 added to scaled sums?
 * legal: 0 1 */
enum { ADDEND = 0 };
/* Are rows of f32 added behind it, the next one residual_row further on?
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* What is stored.
 * legal: float int32_t uint8_t int8_t */
typedef float T;

/* hook: maps an element of an f32 result; x and the result are one vector of columns. */
static inline vec epilogue(vec x) { return x; }

enum { A_SIGNED = (A)-1 < 0 };
enum { T_FLOAT = (T)0.5 > 0, T_BYTES = sizeof(T) == 1, T_SIGNED = (T)-1 < 0 };

typedef struct Gemm {
  const A *a;
  const int8_t *b;
  const int32_t *bias;
  const float *scale, *addend, *residual;
  T *c;
  int64_t m, n, k, panels, groups;
  int64_t residual_row;
  int a_zero, b_zero; /* A's as dot products count it */
  float a_scale, c_zero;
} Gemm;

static int64_t panel_bytes(const Gemm *g) { return (g->groups + 1) * VECTORS * LANES * DOT; }

/* ---- what becomes of a vector of sums ---- */

SIMD_FUNCTION vint bias_at(const Gemm *g, int64_t column, int64_t count) {
  return count >= LANES ? vint_load(g->bias + column) : vint_load_n(g->bias + column, (int)count);
}

/* What all rows of a vector of columns share. */
typedef struct Column {
  int64_t at, count; /* the first one; of them and those behind it, 0 and less for none */
  vint bias;
  vec scale, addend;
} Column;

SIMD_FUNCTION vec scale_at(const Gemm *g, int64_t column, int64_t count) {
  vec scale = SCALES == 2 ? panel_load(g->scale + column, count) : vset(*g->scale);
  return A_SCALE ? vmul(vset(g->a_scale), scale) : scale;
}

SIMD_FUNCTION Column column_at(const Gemm *g, int64_t at) {
  Column column = {.at = at, .count = g->n - at};
  if (column.count <= 0) return column;
  if (BIAS) column.bias = bias_at(g, at, column.count);
  if (SCALES) column.scale = scale_at(g, at, column.count);
  if (ADDEND) column.addend = panel_load(g->addend + at, column.count);
  return column;
}

/* `rows`: the sum of the row of A, in every lane. */
SIMD_FUNCTION vint corrected(const Gemm *g, const Column *column, vint sum, vint rows) {
  if (BIAS) sum = vint_add(sum, column->bias);
  if (!B_ZERO) return sum;
  vint centred = vint_sub(rows, vint_set((int)((uint32_t)g->k * (uint32_t)g->a_zero)));
  return vint_sub(sum, vint_mul(vint_set(g->b_zero), centred));
}

SIMD_FUNCTION vec scaled(const Gemm *g, const Column *column, vint sum, int64_t row) {
  vec y = vint_to_float(sum);
  if (SCALES) y = vmul(y, column->scale);
  if (ADDEND) y = vadd(y, column->addend);
  if (RESIDUAL) y = vadd(y, panel_load(g->residual + row * g->residual_row + column->at, column->count));
  return T_FLOAT ? epilogue(y) : y;
}

/* Halves to even, saturated; as the formula, all of it in f32. */
SIMD_FUNCTION vint requantised(const Gemm *g, vec y) {
  const float least = T_SIGNED ? -128.0f : 0.0f, most = T_SIGNED ? 127.0f : 255.0f;
  return vround_to_int(vmin_bound(vmax_bound(vadd(vround(y), vset(g->c_zero)), vset(least)), vset(most)));
}

/* One row of C. */
SIMD_FUNCTION void finish(const Gemm *g, const Column *column, vint sum, vint rows, int64_t row) {
  void *to = g->c + row * g->n + column->at;
  int part = column->count >= LANES ? LANES : (int)column->count;
  if (column->count <= 0) return;
  sum = corrected(g, column, sum, rows);
  if (T_FLOAT) {
    panel_store(to, scaled(g, column, sum, row), column->count);
  } else if (!T_BYTES) {
    if (part == LANES)
      vint_store(to, sum);
    else
      vint_store_n(to, sum, part);
  } else {
    vint y = requantised(g, scaled(g, column, sum, row));
    if (part == LANES && T_SIGNED) vint_store_s8(to, y);
    if (part == LANES && !T_SIGNED) vint_store_u8(to, y);
    if (part < LANES && T_SIGNED) vint_store_s8_n(to, y, part);
    if (part < LANES && !T_SIGNED) vint_store_u8_n(to, y, part);
  }
}

/* The matrices of one batch. A and B have strides for each batch axis, C is dense, the rest is the same for all. */
static Gemm at_batch(const Gemm *all, int64_t index, int64_t rank, const int64_t *dims, const int64_t *a_batch,
                     const int64_t *b_batch) {
  Gemm g = *all;
  g.c += index * all->m * all->n;
  for (int64_t axis = rank - 1; axis >= 0; axis--) {
    int64_t i = index % dims[axis];
    g.a += i * a_batch[axis];
    g.b += i * b_batch[axis];
    index /= dims[axis];
  }
  return g;
}
