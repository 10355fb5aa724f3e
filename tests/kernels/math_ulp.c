/* SPDX-License-Identifier: MIT */
/*
 * The bounds that simd/math.h states, against double precision. Everyday runs take every STRIDE-th float; with
 * RNNCC_EXHAUSTIVE set, all 2^32. Each function is measured with denormals kept and with denormals flushed.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isa.h"
#include "simd/math.h"
#include "tap.h"

#ifndef STRIDE
#define STRIDE 4099
#endif

typedef vec VectorFunction(vec);
typedef double Reference(double);

typedef struct Function {
  const char *name;
  VectorFunction *function;
  Reference *reference;
  double bound;    /* ULP of the true result */
  double smallest; /* true results below may be taken for zero */
} Function;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double mish(double x) { return x * tanh(softplus(x)); }

static vec call_exp(vec x) { return vexp(x); }
static vec call_expm1(vec x) { return vexpm1(x); }
static vec call_tanh(vec x) { return vtanh(x); }
static vec call_sigmoid(vec x) { return vsigmoid(x); }
static vec call_log(vec x) { return vlog(x); }
static vec call_softplus(vec x) { return vsoftplus(x); }
static vec call_erf(vec x) { return verf(x); }
static vec call_mish(vec x) { return vmish(x); }

static const Function functions[] = {
    {"vtanh", call_tanh, tanh, 4, 0x1p-126}, {"vsigmoid", call_sigmoid, sigmoid, 4, 0x1p-126},
    {"vexp", call_exp, exp, 2, 0x1p-126},    {"vexpm1", call_expm1, expm1, 2, 0x1p-126},
    {"vlog", call_log, log, 4, 0x1p-126},    {"vsoftplus", call_softplus, softplus, 4, 0x1p-119},
    {"verf", call_erf, erf, 2, 0x1p-119},    {"vmish", call_mish, mish, 5, 0x1p-119},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Distance in units of 2^(exponent of the true result - 23); infinite where the kind differs. */
static double ulp_error(float got, double want, double smallest) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf((float)want)) return got == (float)want ? 0 : INFINITY;
  if (fabs(want) < smallest) return fabs((double)got) <= smallest ? 0 : INFINITY;
  uint64_t bits;
  memcpy(&bits, &want, sizeof bits);
  uint64_t inverse_ulp = (uint64_t)(2046 + 23 - (bits >> 52 & 2047)) << 52; /* 2^(23 - exponent) */
  double scale;
  memcpy(&scale, &inverse_ulp, sizeof scale);
  return fabs((double)got - want) * scale;
}

typedef struct Measure {
  double worst;
  float at;
} Measure;

/* A denormal argument may be taken as it is, or as zero. */
static double error_at_point(const Function *f, float x, float y) {
  double error = ulp_error(y, f->reference((double)x), f->smallest);
  if (error > f->bound && fabs((double)x) < 0x1p-126) {
    double from_zero = ulp_error(y, f->reference(copysign(0.0, (double)x)), f->smallest);
    error = from_zero < error ? from_zero : error;
  }
  return error;
}

static Measure measure(const Function *f, uint32_t stride) {
  Measure result = {0, 0};
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)stride * LANES) {
    float x[LANES], y[LANES];
    for (int i = 0; i < LANES; i++) x[i] = float_of((uint32_t)(bits + (uint64_t)i * stride));
    vstore(y, f->function(vload(x)));
    for (int i = 0; i < LANES; i++) {
      double error = error_at_point(f, x[i], y[i]);
      if (error > result.worst) result = (Measure){error, x[i]};
    }
  }
  return result;
}

/* Functions are handed out to threads one by one: cases 0..N-1 keep denormals, N..2N-1 flush them. */
static atomic_int next_case;
static Measure measures[2 * N_FUNCTIONS];
static uint32_t stride = STRIDE;

static void *work(void *unused) {
  for (int i; (i = atomic_fetch_add(&next_case, 1)) < 2 * N_FUNCTIONS;) {
    isa_flush_denormals(i >= N_FUNCTIONS);
    measures[i] = measure(&functions[i % N_FUNCTIONS], stride);
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
  if (getenv("RNNCC_EXHAUSTIVE")) stride = 1;
  measure_all();
  pow_within_its_bound();
  return tap_end();
}
