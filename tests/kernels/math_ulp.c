/* SPDX-License-Identifier: MIT */
/*
 * The bounds that simd/math.h states, against double precision. Everyday runs take every STRIDE-th float, and once more
 * with denormals flushed; with RNNCC_EXHAUSTIVE set, all 2^32 are taken.
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

enum { BLOCK = 256 };

typedef struct Function {
  const char *name;
  void (*function)(const float *x, float *y);      /* of BLOCK values */
  void (*reference)(const float *x, double *want); /* likewise */
  double (*libm)(double x);
  double bound;    /* ULP of the true result */
  double smallest; /* true results below may be taken for zero */
} Function;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double mish(double x) { return x * tanh(softplus(x)); }

#define FUNCTIONS(X)                                                                                                   \
  X(tanh, 4, 0x1p-126)                                                                                                 \
  X(sigmoid, 4, 0x1p-126)                                                                                              \
  X(exp, 2, 0x1p-126)                                                                                                  \
  X(expm1, 2, 0x1p-126)                                                                                                \
  X(log, 4, 0x1p-126)                                                                                                  \
  X(softplus, 4, 0x1p-119)                                                                                             \
  X(erf, 2, 0x1p-119)                                                                                                  \
  X(mish, 5, 0x1p-119)

#define DEFINE(name, bound, smallest)                                                                                  \
  static void call_##name(const float *x, float *y) {                                                                  \
    for (int i = 0; i < BLOCK; i += LANES) vstore(y + i, v##name(vload(x + i)));                                       \
  }                                                                                                                    \
  static void reference_##name(const float *x, double *want) {                                                         \
    for (int i = 0; i < BLOCK; i++) want[i] = double_##name((double)x[i]);                                             \
  }
FUNCTIONS(DEFINE)

static const Function functions[] = {
#define ROW(name, bound, smallest) {"v" #name, call_##name, reference_##name, name, bound, smallest},
    FUNCTIONS(ROW)};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Distance in units of 2^(exponent of the true result - 23); infinite where the kind differs. */
static inline double ulp_error(float got, double want, double smallest) {
  double inverse_ulp = double_of_bits((2046 + 23 - (bits_of_double(want) >> 52 & 2047)) << 52);
  double difference = (double)got - want, error = fabs(difference) * inverse_ulp;
  error = fabs(want) < smallest ? (fabs((double)got) <= smallest ? 0 : INFINITY) : error;
  /* From here on a float rounds to infinity. */
  error = fabs(want) >= 0x1.ffffffp127 ? ((double)got == copysign(INFINITY, want) ? 0 : INFINITY) : error;
  error = got != got ? INFINITY : error;
  return want != want ? (got != got ? 0 : INFINITY) : error;
}

typedef struct Measure {
  double worst;
  float at;
} Measure;

/* A denormal argument may be taken as it is, or as zero. */
static void look_closer(const Function *f, float x, float y, Measure *result) {
  double error = ulp_error(y, f->libm((double)x), f->smallest);
  if (error > f->bound && fabs((double)x) < 0x1p-126) {
    double from_zero = ulp_error(y, f->libm(copysign(0.0, (double)x)), f->smallest);
    error = from_zero < error ? from_zero : error;
  }
  if (error > result->worst) *result = (Measure){error, x};
}

/* References are fast but 2^-40 off, so what comes near the worst is measured again. */
static void measure_block(const Function *f, const float *x, Measure *result) {
  float y[BLOCK];
  double want[BLOCK], error[BLOCK], worst = 0;
  f->function(x, y);
  f->reference(x, want);
  for (int i = 0; i < BLOCK; i++) error[i] = ulp_error(y[i], want[i], f->smallest);
  for (int i = 0; i < BLOCK; i++) worst = error[i] > worst ? error[i] : worst;
  if (worst < result->worst - 1e-3) return;
  for (int i = 0; i < BLOCK; i++)
    if (error[i] >= result->worst - 1e-3) look_closer(f, x[i], y[i], result);
}

static Measure measure(const Function *f, uint32_t stride) {
  Measure result = {0, 0};
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)stride * BLOCK) {
    float x[BLOCK];
    for (int i = 0; i < BLOCK; i++) x[i] = float_of((uint32_t)(bits + (uint64_t)i * stride));
    measure_block(f, x, &result);
  }
  return result;
}

/* Functions are handed out to threads one by one: cases 0..N-1 keep denormals, N..2N-1 flush them. */
static atomic_int next_case;
static Measure measures[2 * N_FUNCTIONS];
static uint32_t keeping_stride = STRIDE;

static void *work(void *unused) {
  for (int i; (i = atomic_fetch_add(&next_case, 1)) < 2 * N_FUNCTIONS;) {
    bool flush = i >= N_FUNCTIONS;
    isa_flush_denormals(flush);
    measures[i] = measure(&functions[i % N_FUNCTIONS], flush ? STRIDE : keeping_stride);
    isa_flush_denormals(false);
  }
  return unused;
}

static void measure_all(void) {
  pthread_t helper;
  bool helped = sysconf(_SC_NPROCESSORS_ONLN) > 1 && pthread_create(&helper, NULL, work, NULL) == 0;
  work(NULL);
  if (helped) pthread_join(helper, NULL);
  for (int i = 0; i < 2 * N_FUNCTIONS; i++) {
    const Function *f = &functions[i % N_FUNCTIONS];
    char name[64];
    snprintf(name, sizeof name, "%s_within_%g_ulp%s", f->name, f->bound, i < N_FUNCTIONS ? "" : "_flushing_denormals");
    tap_case(measures[i].worst <= f->bound, name, "%.3f ULP at %a", measures[i].worst, (double)measures[i].at);
  }
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
  if (!isa_runs_here()) return puts("1..0 # SKIP this CPU lacks the instructions"), 0;
  if (getenv("RNNCC_EXHAUSTIVE")) keeping_stride = 1;
  references_agree_with_libm();
  measure_all();
  pow_within_its_bound();
  return tap_end();
}
