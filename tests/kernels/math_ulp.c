/* SPDX-License-Identifier: MIT */
/*
 * The bounds that simd/math.h states, checked against double precision. The activations of recurrent layers (tanh,
 * sigmoid and exp) are computed at every 16th block of BLOCK consecutive floats if ALL_FLOATS says so, with denormals
 * flushed as in a module's run; the other functions at every STRIDE-th float. With RNNCC_EXHAUSTIVE=widest in the
 * environment, all but gelu and pow are computed at all 2^32 floats there. With RNNCC_EXHAUSTIVE=1, all functions are,
 * on each ISA, with denormals flushed and kept; with RNNCC_EXHAUSTIVE=tanh, this one is.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "double_math.h"
#include "isa.h"
#include "simd/math.h"
#include "tap.h"

#ifndef STRIDE
#define STRIDE 4099
#endif

#ifndef ALL_FLOATS
#define ALL_FLOATS 0
#endif

enum { BLOCK = 256, BLOCKS_APART = 16 };

typedef struct Function {
  const char *name;
  void (*function)(const float *x, float *y);      /* of BLOCK values */
  void (*reference)(const float *x, double *want); /* likewise */
  double (*point)(double x);                       /* the reference of one value */
  double (*libm)(double x);
  double bound;    /* ULP of the true result */
  double smallest; /* smaller true results may be zero */
  bool activation; /* of recurrent layers; monotone, and smooth enough for interpolate() */
} Function;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double mish(double x) { return x * tanh(softplus(x)); }

#define FUNCTIONS(X)                                                                                                   \
  X(tanh, 4, 0x1p-126, true)                                                                                           \
  X(sigmoid, 4, 0x1p-126, true)                                                                                        \
  X(exp, 2, 0x1p-126, true)                                                                                            \
  X(expm1, 2, 0x1p-126, false)                                                                                         \
  X(log, 4, 0x1p-126, false)                                                                                           \
  X(softplus, 4, 0x1p-119, false)                                                                                      \
  X(erf, 2, 0x1p-119, false)                                                                                           \
  X(mish, 5, 0x1p-119, false)                                                                                          \
  X(sin, 1, 0x1p-126, false)                                                                                           \
  X(cos, 1, 0x1p-126, false)                                                                                           \
  X(tan, 1, 0x1p-126, false)                                                                                           \
  X(asin, 1, 0x1p-126, false)                                                                                          \
  X(acos, 1, 0x1p-126, false)                                                                                          \
  X(atan, 1, 0x1p-126, false)                                                                                          \
  X(sinh, 1, 0x1p-126, false)                                                                                          \
  X(cosh, 1, 0x1p-126, false)                                                                                          \
  X(asinh, 1, 0x1p-126, false)                                                                                         \
  X(acosh, 1, 0x1p-126, false)                                                                                         \
  X(atanh, 1, 0x1p-126, false)

#define DEFINE(name, bound, smallest, activation)                                                                      \
  static void call_##name(const float *x, float *y) {                                                                  \
    for (int i = 0; i < BLOCK; i += LANES) vstore(y + i, v##name(vload(x + i)));                                       \
  }                                                                                                                    \
  static void reference_##name(const float *x, double *want) {                                                         \
    for (int i = 0; i < BLOCK; i++) want[i] = double_##name((double)x[i]);                                             \
  }                                                                                                                    \
  static double point_##name(double x) { return double_##name(x); }
FUNCTIONS(DEFINE)

static const Function functions[] = {
#define ROW(name, bound, smallest, activation)                                                                         \
  {"v" #name, call_##name, reference_##name, point_##name, name, bound, smallest, activation},
    FUNCTIONS(ROW)};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Distance in units of 2^(exponent of the true result - 23); infinite if only one of the two is NaN or infinite. */
static inline double ulp_error(float got, double want, double smallest) {
  double inverse_ulp = double_of_bits((2046 + 23 - (bits_of_double(want) >> 52 & 2047)) << 52);
  double difference = (double)got - want, error = fabs(difference) * inverse_ulp;
  error = fabs(want) < smallest ? (fabs((double)got) <= smallest ? 0 : INFINITY) : error;
  /* From this value on, a float rounds to infinity. */
  error = fabs(want) >= 0x1.ffffffp127 ? ((double)got == copysign(INFINITY, want) ? 0 : INFINITY) : error;
  error = got != got ? INFINITY : error;
  return want != want ? (got != got ? 0 : INFINITY) : error;
}

typedef struct Measure {
  double worst;
  float at;
} Measure;

/* A denormal argument may count as itself or as zero. */
static void look_closer(const Function *f, float x, float y, Measure *result) {
  double error = ulp_error(y, f->libm((double)x), f->smallest);
  if (error > f->bound && fabs((double)x) < 0x1p-126) {
    double from_zero = ulp_error(y, f->libm(copysign(0.0, (double)x)), f->smallest);
    error = from_zero < error ? from_zero : error;
  }
  if (error > result->worst) *result = (Measure){error, x};
}

/*
 * The reference at consecutive floats of one sign and exponent: the parabola through three of them. Half a block is
 * h <= 2^-16 |x|, and the error of the parabola is h^3 / (9 sqrt 3) times the third derivative. Relative to the
 * function it is largest for exp next to 88, where h = 2^-10: 2^-34, a thousandth of an ULP.
 */
static void interpolate(const Function *f, const float *x, double *want) {
  enum { MIDDLE = BLOCK / 2 - 1 };
  double first = f->point((double)x[0]), middle = f->point((double)x[MIDDLE]), last = f->point((double)x[2 * MIDDLE]);
  double slope = middle - first, bend = (last - 2 * middle + first) / 2;
  for (int i = 0; i < BLOCK; i++) {
    double s = i * (1.0 / MIDDLE);
    want[i] = first + s * (slope + (s - 1) * bend);
  }
}

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static bool all_equal(const float *y) {
  uint32_t differences = 0;
  for (int i = 0; i < BLOCK; i++) differences |= bits_of(y[i]) ^ bits_of(y[0]);
  return differences == 0;
}

/* References are fast but inexact, by up to this many ULP: errors near the worst are measured again. */
#define SLACK 4e-3

static void measure_against(const Function *f, const float *x, const float *y, const double *want, Measure *result) {
  double error[BLOCK], worst = 0;
  for (int i = 0; i < BLOCK; i++) error[i] = ulp_error(y[i], want[i], f->smallest);
  for (int i = 0; i < BLOCK; i++) worst = error[i] > worst ? error[i] : worst;
  if (worst < result->worst - SLACK) return;
  for (int i = 0; i < BLOCK; i++)
    if (error[i] >= result->worst - SLACK) look_closer(f, x[i], y[i], result);
}

static void measure_block(const Function *f, const float *x, Measure *result) {
  float y[BLOCK];
  double want[BLOCK];
  f->function(x, y);
  f->reference(x, want);
  measure_against(f, x, y, want, result);
}

/* Errors of an activation at consecutive floats. If all results are one float, the first or the last is the worst. */
static void measure_consecutive(const Function *f, const float *x, Measure *result) {
  float y[BLOCK];
  double want[BLOCK];
  f->function(x, y);
  if (all_equal(y)) {
    if (ulp_error(y[0], f->point((double)x[0]), f->smallest) >= result->worst - SLACK)
      look_closer(f, x[0], y[0], result);
    if (ulp_error(y[0], f->point((double)x[BLOCK - 1]), f->smallest) >= result->worst - SLACK)
      look_closer(f, x[BLOCK - 1], y[0], result);
    return;
  }
  interpolate(f, x, want);
  measure_against(f, x, y, want, result);
}

/* A case is a function in one of the modes: 0..N-1 keep denormals, N..2N-1 flush them. Threads take cases in PIECES. */
enum { N_CASES = 2 * N_FUNCTIONS, PIECES = 32 };
static atomic_int next_piece;
static Measure measures[N_CASES][PIECES];

/* Has this CPU no wider vectors than this program's? */
static bool is_widest(void) {
#if defined SIMD_AVX2
  return !cpu_has_avx512();
#else
  return true;
#endif
}

static bool is_exhaustive(void) { return getenv("RNNCC_EXHAUSTIVE"); }

static uint32_t stride_of(int i) {
  const Function *f = &functions[i % N_FUNCTIONS];
  const char *wanted = getenv("RNNCC_EXHAUSTIVE");
  if (wanted && (!strcmp(wanted, "1") || !strcmp(wanted, f->name + 1))) return 1;
  bool chosen = f->activation || (wanted && !strcmp(wanted, "widest"));
  return ALL_FLOATS && is_widest() && chosen && i >= N_FUNCTIONS ? 1 : STRIDE;
}

/* No function has a worst error below half an ULP, because results are rounded. So the search starts there. */
static Measure measure(const Function *f, uint32_t stride, int piece) {
  Measure result = {0.5, 0};
  uint64_t size = (UINT64_C(1) << 32) / PIECES, begin = piece * size, end = begin + size;
  uint32_t apart = stride == 1 && !is_exhaustive() ? BLOCKS_APART : 1;
  for (uint64_t bits = begin; bits < end; bits += (uint64_t)stride * BLOCK * apart) {
    float x[BLOCK];
    for (int i = 0; i < BLOCK; i++) x[i] = float_of((uint32_t)bits + (uint32_t)i * stride);
    bool finite = fabsf(x[0]) < INFINITY;
    (stride == 1 && f->activation && finite ? measure_consecutive : measure_block)(f, x, &result);
  }
  return result;
}

static void *work(void *unused) {
  for (int i; (i = atomic_fetch_add(&next_piece, 1)) < N_CASES * PIECES;) {
    int which = i / PIECES;
    isa_flush_denormals(which >= N_FUNCTIONS);
    measures[which][i % PIECES] = measure(&functions[which % N_FUNCTIONS], stride_of(which), i % PIECES);
    isa_flush_denormals(false);
  }
  return unused;
}

static void report(int which) {
  const Function *f = &functions[which % N_FUNCTIONS];
  Measure worst = measures[which][0];
  for (int piece = 1; piece < PIECES; piece++)
    if (measures[which][piece].worst > worst.worst) worst = measures[which][piece];
  char name[96];
  snprintf(name, sizeof name, "%s_within_%g_ulp%s%s", f->name, f->bound,
           stride_of(which) == 1 && is_exhaustive() ? "_at_all_floats" : "",
           which < N_FUNCTIONS ? "" : "_flushing_denormals");
  tap_case(worst.worst <= f->bound, name, "%.3f ULP at %a", worst.worst, (double)worst.at);
}

static void measure_all(void) {
  pthread_t helper;
  bool helped = sysconf(_SC_NPROCESSORS_ONLN) > 1 && pthread_create(&helper, NULL, work, NULL) == 0;
  work(NULL);
  if (helped) pthread_join(helper, NULL);
  for (int which = 0; which < N_CASES; which++) report(which);
}

static bool agrees(double want, double libm) {
  if (isnan(libm) || fabs(libm) >= 0x1p128) return isnan(libm) ? isnan(want) : fabs(want) >= 0x1p128 && want * libm > 0;
  return fabs(want - libm) <= 0x1p-40 * fabs(libm) || (fabs(want) < 0x1p-149 && fabs(libm) < 0x1p-149);
}

static void references_agree_with_libm(void) {
  int wrong = 0;
  float bad = 0;
  for (int k = 0; k < N_FUNCTIONS; k++)
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += UINT64_C(65537) * BLOCK) {
      float x[BLOCK];
      double want[BLOCK];
      for (int i = 0; i < BLOCK; i++) x[i] = float_of((uint32_t)(bits + (uint64_t)i * 65537));
      functions[k].reference(x, want);
      for (int i = 0; i < BLOCK; i++)
        if (!agrees(want[i], functions[k].libm((double)x[i]))) wrong++, bad = x[i];
    }
  tap_case(wrong == 0, "references_agree_with_libm", "%d wrong, last at %a", wrong, (double)bad);
}

static void parabolas_agree_with_references(void) {
  int wrong = 0;
  float bad = 0;
  for (int k = 0; k < N_FUNCTIONS; k++)
    for (uint64_t bits = 0; functions[k].activation && bits < UINT64_C(1) << 32;
         bits += (uint64_t)(STRIDE / 16 | 1) * BLOCK) {
      float x[BLOCK];
      double want[BLOCK], parabola[BLOCK];
      for (int i = 0; i < BLOCK; i++) x[i] = float_of((uint32_t)bits + i);
      if (fabsf(x[0]) == INFINITY || x[0] != x[0]) continue;
      functions[k].reference(x, want);
      interpolate(&functions[k], x, parabola);
      for (int i = 0; i < BLOCK; i++)
        if (ulp_error((float)want[i], parabola[i], 0x1p-126) > 0.5 + SLACK / 2) wrong++, bad = x[i];
    }
  tap_case(wrong == 0, "parabolas_agree_with_references", "%d wrong, last at %a", wrong, (double)bad);
}

/* ---- gelu ---- */

static double gelu(double x) { return x / 2 * erfc(-x * M_SQRT1_2); }
static double gelu_tanh(double x) { return x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x))); }

/* The error beside FLT_EPSILON * |x|, not the result, which falls to 0 far below zero. Denormals may count as zero. */
static void gelu_within_its_bound(const char *name, vec (*function)(vec), double (*exact)(double)) {
  const char *wanted = getenv("RNNCC_EXHAUSTIVE");
  uint32_t stride = wanted && !strcmp(wanted, "1") ? 1 : STRIDE;
  Measure worst = {0, 0};
  int lost = 0;
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)stride * LANES) {
    float x[LANES], y[LANES];
    for (int i = 0; i < LANES; i++) x[i] = float_of((uint32_t)bits + (uint32_t)i * stride);
    vstore(y, function(vload(x)));
    for (int i = 0; i < LANES; i++) {
      lost += x[i] != x[i] && y[i] == y[i];
      if (fabsf(x[i]) < 0x1p-118f || !(fabsf(x[i]) < INFINITY)) continue;
      double error = fabs((double)y[i] - exact((double)x[i])) / fabs((double)x[i]) * 0x1p23;
      lost += error != error;
      if (error > worst.worst) worst = (Measure){error, x[i]};
    }
  }
  tap_case(worst.worst <= 1 && lost == 0, name, "%.3f of FLT_EPSILON * |x| at %a, %d NaN lost or made", worst.worst,
           (double)worst.at, lost);
}

static vec call_gelu(vec x) { return vgelu(x); }
static vec call_gelu_tanh(vec x) { return vgelu_tanh(x); }

/* ---- powers of softmax ---- */

typedef struct Shifted {
  const char *name;
  vec (*of)(vec);
  double (*exact)(double);
  float zero, most; /* the result is 0 from here down; arguments are at most so much */
  double bound;
} Shifted;

static bool is_wanted_of(const Shifted *power, float x, float y, Measure *worst) {
  if (x != x) return y != y;
  if (x <= power->zero) return y == 0;
  double error = x > power->most ? 0 : ulp_error(y, power->exact((double)x), 0x1p-126);
  if (error > worst->worst) *worst = (Measure){error, x};
  return true;
}

/* A NaN stays one, whatever its lower bits, which a power's would meet. */
static void shifted_within_its_bound(const Shifted *power) {
  Measure worst = {0, 0};
  int wrong = 0;
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)STRIDE * LANES) {
    float x[LANES], y[LANES];
    for (int i = 0; i < LANES; i++) x[i] = float_of((uint32_t)bits + (uint32_t)i * STRIDE);
    vstore(y, power->of(vload(x)));
    for (int i = 0; i < LANES; i++) wrong += !is_wanted_of(power, x[i], y[i], &worst);
  }
  tap_case(worst.worst <= power->bound && wrong == 0, power->name, "%.3f ULP at %a, %d no NaN or not 0", worst.worst,
           (double)worst.at, wrong);
}

static vec call_exp_shifted(vec x) { return vexp_shifted(x); }
static vec call_exp2_shifted(vec y) { return vexp2_shifted(y); }
static const Shifted exp_shifted = {"vexp_shifted_within_2_ulp", call_exp_shifted, exp, -88, 0, 2};
static const Shifted exp2_shifted = {"vexp2_shifted_within_3_ulp", call_exp2_shifted, exp2, -127, 1, 3};

/* ---- pow ---- */

static const float pow_points[] = {0.0f,
                                   -0.0f,
                                   1.0f,
                                   -1.0f,
                                   2.0f,
                                   -2.0f,
                                   3.0f,
                                   -3.0f,
                                   0.5f,
                                   -0.5f,
                                   1.5f,
                                   -1.5f,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   1e30f,
                                   -1e30f,
                                   8388607.0f,
                                   8388608.0f,
                                   8388609.0f,
                                   16777215.0f,
                                   16777216.0f,
                                   -16777215.0f,
                                   1e-30f,
                                   8388607.5f,
                                   4194303.5f,
                                   0x1.fffffep0f,
                                   0x1.fffffep-1f,
                                   -0x1.fffffep-1f,
                                   1e38f};
enum { N_POW_POINTS = sizeof pow_points / sizeof *pow_points, N_POW_RANDOM = 1 << 19 };

static uint64_t random_bits(void) { /* xorshift64 */
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void pow_arguments(int i, float *x, float *y) {
  if (i < N_POW_POINTS * N_POW_POINTS) {
    *x = pow_points[i / N_POW_POINTS];
    *y = pow_points[i % N_POW_POINTS];
    return;
  }
  uint64_t bits = random_bits();
  *x = i % 4 == 1 ? 1 + (float)(int32_t)bits * 0x1p-34f : float_of((uint32_t)bits);
  *y = i % 3 == 0 ? float_of((uint32_t)(bits >> 32)) : (float)((int32_t)(bits >> 32) >> (i % 32)) * 0x1p-4f;
  if (i % 5 == 2) *x = fabsf(*x);
  if (fabsf(*x) < 0x1p-126f) *x = 0;
}

static void pow_within_its_bound(void) {
  double worst = 0, at_x = 0, at_y = 0;
  for (int i = 0; i < N_POW_POINTS * N_POW_POINTS + N_POW_RANDOM; i++) {
    float x, y, z[LANES];
    pow_arguments(i, &x, &y);
    vstore(z, vpow(vset(x), vset(y)));
    double want = pow((double)x, (double)y), error = ulp_error(z[LANES - 1], want, 0x1p-126);
    if (want == 0 && (z[0] != 0 || signbit(z[0]) != signbit(want))) error = INFINITY;
    if (error > worst) worst = error, at_x = (double)x, at_y = (double)y;
  }
  tap_case(worst <= 1, "vpow_within_1_ulp", "%.3f ULP at %a ^ %a", worst, at_x, at_y);
}

int main(void) {
  skip_unless_isa_runs();
  references_agree_with_libm();
  parabolas_agree_with_references();
  measure_all();
  pow_within_its_bound();
  shifted_within_its_bound(&exp_shifted);
  shifted_within_its_bound(&exp2_shifted);
  gelu_within_its_bound("vgelu_within_its_bound", call_gelu, gelu);
  gelu_within_its_bound("vgelu_tanh_within_its_bound", call_gelu_tanh, gelu_tanh);
  return tap_end();
}
