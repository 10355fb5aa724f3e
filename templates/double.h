/* SPDX-License-Identifier: MIT */
/*
 * Functions of single f64 numbers, in place of libm's. Errors, as tests/kernels/double_check.c has them: tanh 3 ULP,
 * exp, log and pow 1, the others exact. Denormal numbers may be taken and given as zero.
 */
#ifndef DOUBLE_H
#define DOUBLE_H

#include <stdint.h>

typedef union DoubleBits {
  double f;
  uint64_t i;
} DoubleBits;

/* The first part of log 2 has so few bits that its product with any exponent is exact. */
#define DOUBLE_LN2_HI 0x1.62e42feep-1
#define DOUBLE_LN2_LO 0x1.a39ef35793c76p-33

/* ---- to integral numbers, exactly ---- */

static inline double round_f64(double x) { /* halves to even */
  double magnitude = __builtin_fabs(x), rounded = (magnitude + 0x1p52) - 0x1p52;
  return magnitude < 0x1p52 ? __builtin_copysign(rounded, x) : x;
}

static inline double floor_f64(double x) {
  double rounded = round_f64(x);
  return __builtin_copysign(rounded > x ? rounded - 1 : rounded, x);
}

/* x * 2^n, by two factors: n may be the exponent of infinity. */
static inline double double_scale(double x, int n) {
  int half = n >> 1;
  DoubleBits first = {.i = (uint64_t)(1023 + half) << 52}, second = {.i = (uint64_t)(1023 + n - half) << 52};
  return x * first.f * second.f;
}

/* ---- remainders, exactly ---- */

/* A finite number's magnitude is mantissa * 2^exponent. */
static inline uint64_t double_mantissa(double x, int *exponent) {
  DoubleBits bits = {.f = x};
  int biased = (int)(bits.i >> 52 & 2047);
  uint64_t fraction = bits.i & 0xfffffffffffff;
  *exponent = (biased ? biased : 1) - 1075;
  return biased ? fraction | UINT64_C(1) << 52 : fraction;
}

/* C's fmod, with the sign of a: long division in base 2^11, all that fits beside 53 bits. */
static inline double fmod_f64(double a, double b) {
  double infinity = __builtin_inf(), magnitude = __builtin_fabs(a), divisor = __builtin_fabs(b);
  if (!(magnitude < infinity) || b != b || divisor == 0) return __builtin_nan("");
  if (magnitude < divisor) return a;
  int ea, eb;
  uint64_t rest = double_mantissa(a, &ea), by = double_mantissa(b, &eb);
  if (by == 0) return __builtin_nan("");
  rest %= by;
  for (int left = ea - eb; left > 0; left -= 11) rest = (rest << (left < 11 ? left : 11)) % by;
  return __builtin_copysign(double_scale((double)rest, eb), a);
}

/* The remainder with the divisor's sign, as in Python. */
static inline double mod_f64(double a, double b) {
  double rest = fmod_f64(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* ---- exponentials ---- */

/* r^2/2! + r^3/3! + ..., |r| <= log(2)/2 */
static inline double double_exp_tail(double r) {
  double p = 1.0 / 87178291200 * r + 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  return p * r * r;
}

/* e^(x + low), |low| < 2^-40 |x|. The sum 1 + r keeps what it rounds off. */
static inline double double_exp(double x, double low) {
  double bounded = x > 710.0 ? 710.0 : x >= -746.0 ? x : -746.0; /* -746 for NaN, too: its n would not be an integer */
  double n = round_f64(bounded * 0x1.71547652b82fep+0);
  double first = bounded - n * DOUBLE_LN2_HI, second = n * DOUBLE_LN2_LO;
  double r = first - second, rest = ((first - r) - second) + (bounded == x ? low : 0);
  double sum = 1.0 + r, lost = (1.0 - sum) + r, tail = double_exp_tail(r);
  double power = double_scale(sum + (lost + tail + rest * (sum + tail)), (int)n);
  return x != x ? x : power;
}

static inline double exp_f64(double x) { return double_exp(x, 0); }

/* (e^2|x| - 1) / (e^2|x| + 1) */
static inline double tanh_f64(double x) {
  double twice = 2 * __builtin_fabs(x), bounded = twice > 44.0 ? 44.0 : twice;
  double less_one = bounded < 0.34 ? bounded + double_exp_tail(bounded) : exp_f64(bounded) - 1;
  return x != x ? x : __builtin_copysign(less_one / (less_one + 2), x);
}

/* ---- logarithms ---- */

/* x = 2^*exponent * result, the result in [sqrt(1/2), sqrt(2)); of a normal x > 0. */
static inline double double_split(double x, double *exponent) {
  DoubleBits bits = {.f = x}, mantissa;
  uint64_t biased = bits.i - UINT64_C(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
  *exponent = (double)(int)((int64_t)biased >> 52);
  mantissa.i = (biased & 0xfffffffffffff) + UINT64_C(0x3fe6a09e667f3bcd);
  return mantissa.f;
}

/* 2/5 + 2/7 z + 2/9 z^2 + ..., z <= 0.0295: atanh(s) = s + s^3/3 + s^5/2 * this, z = s^2 */
static inline double double_log_tail(double z) {
  double p = 2.0 / 29 * z + 2.0 / 27;
  p = p * z + 2.0 / 25;
  p = p * z + 2.0 / 23;
  p = p * z + 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  return p * z + 2.0 / 5;
}

/* log(1 + f) = 2 atanh(f / (2 + f)), written as f and a small correction. */
static inline double log_f64(double x) {
  double k, f = double_split(x, &k) - 1, s = f / (2 + f), z = s * s;
  double half = 0.5 * f * f, tail = z * (2.0 / 3 + z * double_log_tail(z));
  double result = k * DOUBLE_LN2_HI - ((half - (s * (half + tail) + k * DOUBLE_LN2_LO)) - f);
  if (x == __builtin_inf() || x != x) result = x;
  if (x == 0) result = -__builtin_inf();
  return x < 0 ? __builtin_nan("") : result;
}

/* ---- powers ---- */

/* A sum of two doubles, the second of which is less than half a unit of the first's last place. */
typedef struct DoublePair {
  double hi, lo;
} DoublePair;

static inline DoublePair double_sum(double a, double b) {
  double sum = a + b, of_b = sum - a;
  return (DoublePair){sum, (a - (sum - of_b)) + (b - of_b)};
}

/* Dekker, A floating-point technique for extending the available precision, 1971: without an FMA. */
static inline DoublePair double_product(double a, double b) {
  double product = a * b, a_big = a * 0x1.0000002p27, b_big = b * 0x1.0000002p27;
  double a_hi = a_big - (a_big - a), b_hi = b_big - (b_big - b), a_lo = a - a_hi, b_lo = b - b_hi;
  return (DoublePair){product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo};
}

/* log x with a relative error of about 2^-65: below one rounding even times the largest exponent. */
static inline DoublePair double_log_pair(double x) {
  double k, m = double_split(x, &k), f = m - 1;
  DoublePair g = double_sum(m, 1);
  double s = f / g.hi;
  DoublePair back = double_product(s, g.hi);
  double s_lo = ((f - back.hi) - back.lo - s * g.lo) / g.hi;
  DoublePair z = double_product(s, s);
  z.lo += 2 * s * s_lo;
  DoublePair cube = double_product(s, z.hi);
  cube.lo += s * z.lo + s_lo * z.hi;
  DoublePair third = double_product(cube.hi, 0x1.5555555555555p-1);
  third.lo += cube.hi * 0x1.5555555555555p-55 + cube.lo * 0x1.5555555555555p-1;
  DoublePair of_m = double_sum(2 * s, third.hi), all = double_sum(k * DOUBLE_LN2_HI, of_m.hi);
  double rest = s * z.hi * z.hi * double_log_tail(z.hi);
  return double_sum(all.hi, all.lo + (of_m.lo + (2 * s_lo + third.lo + rest + k * DOUBLE_LN2_LO)));
}

/* Special cases are those of C's pow: x^0 and 1^y are 1 even of NaN. An exponent beyond 2^70 is treated as infinite. */
static inline double pow_f64(double x, double y) {
  double magnitude = __builtin_fabs(x), size = __builtin_fabs(y), infinity = __builtin_inf();
  if (x == 1 || y == 0 || (x == -1 && size == infinity)) return 1;
  if (x != x || y != y) return x + y;
  int integral = size >= 0x1p53 || round_f64(size) == size;
  int odd = integral && size < 0x1p53 && 2 * round_f64(size / 2) != size;
  double power;
  if (magnitude == 0 || magnitude == infinity) {
    power = (magnitude == 0) == (y > 0) ? 0 : infinity;
  } else {
    double exponent = size > 0x1p70 ? __builtin_copysign(0x1p70, y) : y;
    DoublePair logarithm = double_log_pair(magnitude), product = double_product(exponent, logarithm.hi);
    if (x < 0 && !integral) return __builtin_nan("");
    power = double_exp(product.hi, product.lo + exponent * logarithm.lo);
  }
  return odd && __builtin_signbit(x) ? -power : power;
}

#endif
