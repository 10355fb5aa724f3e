/* SPDX-License-Identifier: MIT */
/* Functions of templates/double.h compared with long double libm and, if they are exact, with libm's own. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "double.h"
#include "isa.h"
#include "tap.h"

#ifndef DRAWS
#define DRAWS 400000
#endif

static uint64_t state = 1;
static uint64_t next_bits(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return state ^ state >> 29;
}
static double any_number(void) { return (DoubleBits){.i = next_bits() ^ next_bits() << 32}.f; }
static double between(double low, double high) { return low + (high - low) * ((double)(next_bits() >> 12) * 0x1p-52); }

static int is_same(double a, double b) { return (a == b && !signbit(a) == !signbit(b)) || (isnan(a) && isnan(b)); }
static int is_denormal(double x) { return x != 0 && fabs(x) < 0x1p-1022; }

/* In units in the last place of the true result; a denormal result may be zero. */
static double error(double got, long double want) {
  int exponent;
  double rounded = (double)want;
  if (isnan(rounded) || isinf(rounded) || isinf(got)) return is_same(got, rounded) ? 0 : INFINITY;
  if (fabs(rounded) < 0x1p-1021) return fabs(got) < 0x1p-1020 ? 0 : INFINITY;
  (void)frexp(rounded, &exponent);
  return (double)fabsl((got - want) / ldexpl(1, exponent - 53));
}

static double worst_of(double worst, double now) { return now > worst ? now : worst; }

static double base_for(int i) { return i % 3 == 0 ? any_number() : i % 3 == 1 ? between(-20, 20) : between(0.9, 1.1); }
static double exponent_for(int i, double base) {
  if (i % 5 == 0) return rint(between(-30, 30));
  return i % 5 == 1 ? any_number() : between(-700, 700) / (fabs(log(fabs(base))) + 1e-3);
}

static void check_functions(void) {
  double of_exp = 0, of_log = 0, of_tanh = 0, of_pow = 0;
  for (int i = 0; i < DRAWS; i++) {
    double x = i % 2 ? any_number() : between(-750, 750), positive = i % 4 ? fabs(any_number()) : between(0.5, 2);
    double small = i % 2 ? between(-2, 2) : any_number(), base = base_for(i), exponent = exponent_for(i, base);
    of_exp = worst_of(of_exp, error(exp_f64(x), expl(x)));
    if (!is_denormal(positive)) of_log = worst_of(of_log, error(log_f64(positive), logl(positive)));
    of_tanh = worst_of(of_tanh, error(tanh_f64(small), tanhl(small)));
    if (!is_denormal(base)) of_pow = worst_of(of_pow, error(pow_f64(base, exponent), powl(base, exponent)));
  }
  tap_case(of_exp <= 1 && of_log <= 1 && of_tanh <= 3 && of_pow <= 1, "functions_keep_their_bounds",
           "exp %.3f log %.3f tanh %.3f pow %.3f ULP", of_exp, of_log, of_tanh, of_pow);
}

static void check_exact(void) {
  int rounds = 1, remainders = 1;
  for (int i = 0; i < DRAWS; i++) {
    double x = i % 2 ? any_number() : between(-1e4, 1e4), y = i % 3 ? any_number() : between(-3, 3), rest = fmod(x, y);
    rounds &= is_same(floor_f64(x), floor(x)) && is_same(round_f64(x), rint(x));
    if (!is_denormal(y) && !is_denormal(rest) && !is_denormal(x)) remainders &= is_same(fmod_f64(x, y), rest);
  }
  tap_case(rounds, "integral_numbers_are_exact", "%d numbers", DRAWS);
  tap_case(remainders, "remainders_are_exact", "%d pairs", DRAWS);
}

static void check_special(void) {
  static const double special[] = {0, -0.0,     1,         -1,  2,     -2,     0.5,    -0.5,
                                   3, INFINITY, -INFINITY, NAN, 1e300, -1e300, 0x1p53, 0x1p53 + 2};
  enum { N = sizeof special / sizeof *special };
  int good = 1;
  for (int i = 0; i < N; i++) {
    good &= error(exp_f64(special[i]), expl(special[i])) <= 1 && error(tanh_f64(special[i]), tanhl(special[i])) <= 3;
    good &= error(log_f64(special[i]), logl(special[i])) <= 1;
    for (int k = 0; k < N; k++) good &= error(pow_f64(special[i], special[k]), powl(special[i], special[k])) <= 1;
    for (int k = 0; k < N; k++) good &= is_same(fmod_f64(special[i], special[k]), fmod(special[i], special[k]));
  }
  tap_case(good, "special_values_are_those_of_libm", "%d values and their pairs", N);
}

int main(void) {
  skip_unless_isa_runs();
  check_functions();
  check_exact();
  check_special();
  return tap_end();
}
