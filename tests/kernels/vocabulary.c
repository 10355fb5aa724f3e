/* SPDX-License-Identifier: MIT */
/*
 * Every operation of the SIMD vocabulary is compared with plain C, lane by lane and bit by bit, on all pairs of edge
 * values, each in every lane; loads and stores of n lanes are tested next to guard pages.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "isa.h"
#include "tap.h"

static const float edges[] = {0.0f,
                              -0.0f,
                              1.0f,
                              -1.0f,
                              0.5f,
                              -0.5f,
                              1.5f,
                              -1.5f,
                              2.5f,
                              -2.5f,
                              0.49999997f,
                              -0.49999997f,
                              3.0f,
                              -7.25f,
                              1e10f,
                              8388607.5f,
                              -8388607.5f,
                              8388608.0f,
                              8388609.0f,
                              -16777216.0f,
                              0x1p-126f,
                              -0x1p-126f,
                              0x1.8p-130f,
                              -0x1p-149f,
                              0x1.fffffep127f,
                              -0x1.fffffep127f,
                              0x1.fffffep-1f,
                              1.0000001f,
                              INFINITY,
                              -INFINITY,
                              NAN,
                              -NAN};
enum { N_EDGES = sizeof edges / sizeof *edges };

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The same bits, or both NaN. */
static bool same(float got, float want) { return isnan(want) ? isnan(got) : bits_of(got) == bits_of(want); }
/* For minima and maxima, where the sign of a zero is not defined. */
static bool same_value(float got, float want) { return same(got, want) || (got == 0 && want == 0); }

/* ---- lane by lane ---- */

typedef vec VectorOp(vec a, vec b);
typedef float ScalarOp(float a, float b);

#define VECTOR(name, expression)                                                                                       \
  static vec vector_##name(vec a, vec b) { return (void)a, (void)b, (expression); }
#define SCALAR(name, expression)                                                                                       \
  static float scalar_##name(float a, float b) { return (void)a, (void)b, (expression); }

static vec as_vec(vmask m) { return vselect(m, vset(1.0f), vset(-0.0f)); }
static float as_float(bool b) { return b ? 1.0f : -0.0f; }
static float nan_min(float a, float b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static float nan_max(float a, float b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }

#define OPS(X)                                                                                                         \
  X(vset, vset(2.5f), 2.5f, same)                                                                                      \
  X(vzero, vzero(), 0.0f, same)                                                                                        \
  X(vadd, vadd(a, b), a + b, same)                                                                                     \
  X(vsub, vsub(a, b), a - b, same)                                                                                     \
  X(vmul, vmul(a, b), a *b, same)                                                                                      \
  X(vdiv, vdiv(a, b), a / b, same)                                                                                     \
  X(vsqrt, vsqrt(a), sqrtf(a), same)                                                                                   \
  X(vneg, vneg(a), -a, same)                                                                                           \
  X(vabs, vabs(a), fabsf(a), same)                                                                                     \
  X(vcopysign, vcopysign(a, b), copysignf(a, b), same)                                                                 \
  X(vfloor, vfloor(a), floorf(a), same)                                                                                \
  X(vceil, vceil(a), ceilf(a), same)                                                                                   \
  X(vround, vround(a), nearbyintf(a), same)                                                                            \
  X(vmin, vmin(a, b), nan_min(a, b), same_value)                                                                       \
  X(vmax, vmax(a, b), nan_max(a, b), same_value)                                                                       \
  X(vlt, as_vec(vlt(a, b)), as_float(a < b), same)                                                                     \
  X(vle, as_vec(vle(a, b)), as_float(a <= b), same)                                                                    \
  X(vgt, as_vec(vgt(a, b)), as_float(a > b), same)                                                                     \
  X(vge, as_vec(vge(a, b)), as_float(a >= b), same)                                                                    \
  X(veq, as_vec(veq(a, b)), as_float(a == b), same)                                                                    \
  X(vne, as_vec(vne(a, b)), as_float(a != b), same)                                                                    \
  X(visnan, as_vec(visnan(a)), as_float(isnan(a)), same)                                                               \
  X(vand, as_vec(vand(vlt(a, b), vlt(a, vzero()))), as_float(a < b && a < 0), same)                                    \
  X(vor, as_vec(vor(vlt(a, b), vlt(a, vzero()))), as_float(a < b || a < 0), same)                                      \
  X(vnot, as_vec(vnot(vlt(a, b))), as_float(!(a < b)), same)                                                           \
  X(vselect, vselect(vlt(a, b), a, b), a < b ? a : b, same)

#define DEFINE(name, vector, scalar, comparison)                                                                       \
  VECTOR(name, vector)                                                                                                 \
  SCALAR(name, scalar)
OPS(DEFINE)

static const struct Op {
  const char *name;
  VectorOp *vector;
  ScalarOp *scalar;
  bool (*same)(float got, float want);
} ops[] = {
#define ROW(name, vector, scalar, comparison) {#name, vector_##name, scalar_##name, comparison},
    OPS(ROW)};
enum { N_OPS = sizeof ops / sizeof *ops };

static void lanes_agree_with_plain_c(const struct Op *op) {
  int wrong = 0;
  float bad_a = 0, bad_b = 0, bad_got = 0;
  for (int i = 0; i < N_EDGES; i++)
    for (int j = 0; j < N_EDGES; j++) {
      float a[LANES], b[LANES], got[LANES];
      for (int k = 0; k < LANES; k++) a[k] = edges[(i + k) % N_EDGES], b[k] = edges[(j + 3 * k) % N_EDGES];
      vstore(got, op->vector(vload(a), vload(b)));
      for (int k = 0; k < LANES; k++)
        if (!op->same(got[k], op->scalar(a[k], b[k]))) wrong++, bad_a = a[k], bad_b = b[k], bad_got = got[k];
    }
  tap_case(wrong == 0, op->name, "%d wrong, last %a, %a -> %a", wrong, (double)bad_a, (double)bad_b, (double)bad_got);
}

/* Does vfma round once? Only then 1 - 2^-46 is exact. */
static bool fuses(void) {
  volatile float a = 1 + 0x1p-23f, b = 1 - 0x1p-23f;
  return vhsum(vfma(vset(-1.0f), vset(a), vset(b))) != 0;
}

/* Rounded once if the CPU can. */
static void vfma_adds_the_product(void) {
  int wrong = 0;
  for (int i = 0; i < N_EDGES * N_EDGES * N_EDGES; i++) {
    float acc = edges[i % N_EDGES], a = edges[i / N_EDGES % N_EDGES], b = edges[i / N_EDGES / N_EDGES];
    float plus[LANES], minus[LANES];
    volatile float product = a * b; /* rounded */
    bool once = fuses();
    vstore(plus, vfma(vset(acc), vset(a), vset(b)));
    vstore(minus, vfnma(vset(acc), vset(a), vset(b)));
    wrong += !same(plus[LANES - 1], once ? fmaf(a, b, acc) : acc + product);
    wrong += !same(minus[LANES - 1], once ? fmaf(-a, b, acc) : acc - product);
  }
  tap_case(wrong == 0, "vfma_adds_the_product", "%d wrong, %s", wrong, fuses() ? "one rounding" : "two roundings");
#if !defined SIMD_PLAIN && !defined SIMD_SSE42
  tap_case(fuses(), "vfma_rounds_once", "of the CPU");
#endif
}

static void bounds_keep_nan(void) {
  int wrong = 0;
  for (int i = 0; i < N_EDGES; i++)
    for (int j = 0; j < N_EDGES; j++) {
      if (isnan(edges[j])) continue;
      float low[LANES], high[LANES];
      vstore(low, vmin_bound(vset(edges[i]), vset(edges[j])));
      vstore(high, vmax_bound(vset(edges[i]), vset(edges[j])));
      wrong += !same_value(low[0], nan_min(edges[i], edges[j])) + !same_value(high[0], nan_max(edges[i], edges[j]));
    }
  tap_case(wrong == 0, "vmin_bound_and_vmax_bound_keep_nan", "%d wrong", wrong);
}

/* ---- exponents ---- */

static void vscale2_multiplies_by_powers_of_two(void) {
  int wrong = 0;
  for (int n = -126; n <= 128; n++)
    for (float v = 0.5f; v <= 2; v += 0.0625f) {
      double want = ldexp((double)v, n);
      float got[LANES];
      if (fabs(want) < 0x1p-126 || fabs(want) >= 0x1p128) continue;
      vstore(got, vscale2(vset(-v), vset((float)n + 0x1.8p23f)));
      wrong += (double)got[LANES - 1] != -want;
    }
  tap_case(wrong == 0, "vscale2_multiplies_by_powers_of_two", "%d wrong", wrong);
}

static void exponent_and_mantissa_make_the_number(void) {
  int wrong = 0;
  for (int i = 0; i < N_EDGES; i++) {
    float x = edges[i], exponent[LANES], mantissa[LANES];
    if (!(x >= 0x1p-126f) || isinf(x)) continue;
    vstore(exponent, vexponent(vset(x)));
    vstore(mantissa, vmantissa(vset(x)));
    wrong += !(mantissa[0] >= 1 && mantissa[0] < 2 && exponent[0] == floorf(exponent[0]));
    wrong += ldexp((double)mantissa[0], (int)exponent[0]) != (double)x;
  }
  float of_infinity[LANES];
  vstore(of_infinity, vexponent(vset(INFINITY)));
  tap_case(wrong == 0 && of_infinity[0] == 128, "exponent_and_mantissa_make_the_number", "%d wrong", wrong);
}

/* ---- across lanes ---- */

static float halving_sum(const float *x) {
  float lane[LANES];
  memcpy(lane, x, sizeof lane);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}

static void reductions_halve_the_vector(void) {
  int wrong = 0;
  for (int i = 0; i < 1000; i++) {
    float x[LANES], least = INFINITY, greatest = -INFINITY;
    for (int k = 0; k < LANES; k++) {
      x[k] = i < N_EDGES ? edges[(i + k) % N_EDGES] : 1.0f / (float)(1 + (i * 7 + k * 13) % 101) - 0.1f;
      least = nan_min(x[k], least);
      greatest = nan_max(x[k], greatest);
    }
    wrong += !same(vhsum(vload(x)), halving_sum(x));
    wrong += !same_value(vhmin(vload(x)), least) + !same_value(vhmax(vload(x)), greatest);
  }
  tap_case(wrong == 0, "reductions_halve_the_vector", "%d wrong", wrong);
}

static void vany_sees_each_lane(void) {
  bool right = !vany(vmask_first(0)) && vany(vmask_first(LANES));
  for (int k = 0; k < LANES; k++) {
    float x[LANES] = {0};
    x[k] = 1;
    right = right && vany(vgt(vload(x), vzero()));
  }
  tap_case(right, "vany_sees_each_lane", "%d lanes", LANES);
}

/* ---- memory ---- */

/* A page between two pages that cannot be read. */
static float *guarded_page(size_t *floats) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_READ | PROT_WRITE)) return NULL;
  *floats = page / sizeof(float);
  return (float *)(memory + page);
}

/* `p` has exactly n floats; the bytes beyond, if there are any, must not change. */
static bool moves_n(float *p, int n) {
  float x[LANES], lanes[LANES];
  for (int i = 0; i < LANES; i++) x[i] = (float)(i + 1);
  vstore_n(p, vload(x), n);
  vstore(lanes, vload_n(p, n));
  bool right = true;
  for (int i = 0; i < LANES; i++) right = right && lanes[i] == (i < n ? x[i] : 0);
  float selected[LANES];
  vstore(selected, vselect(vmask_first(n), vset(1.0f), vzero()));
  for (int i = 0; i < LANES; i++) right = right && selected[i] == (i < n ? 1.0f : 0.0f);
  return right;
}

static void parts_touch_nothing_beyond(void) {
  size_t floats = 0;
  float *page = guarded_page(&floats);
  bool right = page != NULL;
  for (int n = 0; n <= LANES && right; n++) {
    memset(page, 0x7f, floats * sizeof(float));
    right = moves_n(page, n) && moves_n(page + floats - n, n);
    for (size_t i = (size_t)n; i < floats - (size_t)n; i++) right = right && bits_of(page[i]) == 0x7f7f7f7f;
  }
  tap_case(right, "vload_n_and_vstore_n_touch_nothing_beyond", "guard pages on both sides, 0 to %d lanes", LANES);
}

static void loads_need_no_alignment(void) {
  _Alignas(64) char bytes[sizeof(float) * (LANES + 2)];
  bool right = true;
  for (size_t offset = 0; offset <= sizeof(float); offset += sizeof(float)) {
    float *p = (float *)(bytes + offset), out[LANES];
    for (int i = 0; i < LANES; i++) p[i] = (float)i;
    vstore(out, vload(p));
    vstore(p, vadd(vload(p), vbroadcast_load(p + 1)));
    for (int i = 0; i < LANES; i++) right = right && out[i] == (float)i && p[i] == (float)(i + 1);
    vprefetch(p);
    right = right && vafter(p, vload(p)) == p && vapart(p) == p;
  }
  tap_case(right, "loads_need_no_alignment", "at multiples of 4 bytes");
}

static void vload_even_takes_every_second(void) {
  float x[2 * LANES], out[LANES];
  bool right = true;
  for (int i = 0; i < 2 * LANES; i++) x[i] = (float)i;
  vstore(out, vload_even(x));
  for (int i = 0; i < LANES; i++) right = right && out[i] == (float)(2 * i);
  tap_case(right, "vload_even_takes_every_second", "of %d", 2 * LANES);
}

static void vlane_repeats_one_lane(void) {
  float x[LANES], out[LANES];
  bool right = true;
  for (int i = 0; i < LANES; i++) x[i] = (float)(i + 1);
  for (int lane = 0; lane < LANES; lane++) {
    vstore(out, vlane(vload(x), lane));
    for (int i = 0; i < LANES; i++) right = right && out[i] == x[lane];
  }
  tap_case(right, "vlane_repeats_one_lane", "of %d", LANES);
}

static void check_lanes(const char *name, vec v, int (*wanted)(int lane)) {
  float out[LANES];
  bool right = true;
  vstore(out, v);
  for (int i = 0; i < LANES; i++) right = right && out[i] == (float)wanted(i);
  tap_case(right, name, "of %d lanes", LANES);
}

/* Of vectors whose lanes are 0, 1, 2, ... and LANES, LANES + 1, ... */
static int zipped_low(int lane) { return lane / 2 + lane % 2 * LANES; }
static int zipped_high(int lane) { return LANES / 2 + zipped_low(lane); }
static int unzipped_even(int lane) { return 2 * lane; }
static int unzipped_odd(int lane) { return 2 * lane + 1; }
static int reversed(int lane) { return LANES - 1 - lane; }

static void lanes_change_places(void) {
  float counting[2 * LANES];
  for (int i = 0; i < 2 * LANES; i++) counting[i] = (float)i;
  vec a = vload(counting), b = vload(counting + LANES);
  check_lanes("vzip_low_takes_turns", vzip_low(a, b), zipped_low);
  check_lanes("vzip_high_takes_turns", vzip_high(a, b), zipped_high);
  check_lanes("vunzip_even_takes_every_second", vunzip_even(a, b), unzipped_even);
  check_lanes("vunzip_odd_takes_the_others", vunzip_odd(a, b), unzipped_odd);
  check_lanes("vreverse_ends_with_the_first", vreverse(a), reversed);
}

static void vtranspose_swaps_rows_and_lanes(void) {
  vec rows[LANES];
  bool right = true;
  for (int i = 0; i < LANES; i++) {
    float row[LANES];
    for (int j = 0; j < LANES; j++) row[j] = (float)(i * LANES + j);
    rows[i] = vload(row);
  }
  vtranspose(rows);
  for (int i = 0; i < LANES; i++) {
    float row[LANES];
    vstore(row, rows[i]);
    for (int j = 0; j < LANES; j++) right = right && row[j] == (float)(j * LANES + i);
  }
  tap_case(right, "vtranspose_swaps_rows_and_lanes", "of %d", LANES);
}

int main(void) {
  skip_unless_isa_runs();
  for (int i = 0; i < N_OPS; i++) lanes_agree_with_plain_c(&ops[i]);
  vfma_adds_the_product();
  bounds_keep_nan();
  vscale2_multiplies_by_powers_of_two();
  exponent_and_mantissa_make_the_number();
  reductions_halve_the_vector();
  vany_sees_each_lane();
  parts_touch_nothing_beyond();
  loads_need_no_alignment();
  vload_even_takes_every_second();
  vlane_repeats_one_lane();
  lanes_change_places();
  vtranspose_swaps_rows_and_lanes();
  return tap_end();
}
