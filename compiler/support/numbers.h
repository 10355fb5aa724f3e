/* SPDX-License-Identifier: MIT */
/* Minima, maxima, bounds, divisors and divisions that round up. */
#ifndef RNNCC_NUMBERS_H
#define RNNCC_NUMBERS_H

#include <stdint.h>

static inline int64_t min_int(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_int(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t clamp_int(int64_t least, int64_t value, int64_t most) {
  return value < least ? least : value > most ? most : value;
}
static inline double min_double(double a, double b) { return a < b ? a : b; }
static inline double max_double(double a, double b) { return a > b ? a : b; }

/* b > 0, a >= 0. */
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* The least multiple of b that is not below a. */
static inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/* The greatest, with the sign of either; of 0 and b it is b. */
static inline int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* INT64_MAX where the sum, or the product, is larger; neither operand is negative. */
static inline int64_t saturating_add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }
static inline int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

#endif
