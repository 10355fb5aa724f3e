/* SPDX-License-Identifier: MIT */
#include "accuracy.h"

#include <math.h>

/* NaN equals NaN, an infinity itself; nothing else is near them. */
static double distance(double got, double expected) {
  if (got == expected || (isnan(got) && isnan(expected))) return 0;
  return isfinite(got) && isfinite(expected) ? fabs(got - expected) : INFINITY;
}

/* The first of the largest; of a row with NaNs the first NaN. */
static int64_t place_of_largest(const rnncc_tensor *tensor, int64_t row, int64_t length) {
  int64_t place = 0;
  double largest = any_element(tensor, row * length);
  for (int64_t i = 1; i < length && !isnan(largest); i++) {
    double next = any_element(tensor, row * length + i);
    if (next > largest || isnan(next)) largest = next, place = i;
  }
  return place;
}

static void add_choices(Accuracy *accuracy, const rnncc_tensor *got, const rnncc_tensor *expected, int64_t count) {
  int64_t length = expected->rank ? expected->shape[expected->rank - 1] : 1;
  if (!dtype_is_float(expected->dtype)) {
    accuracy->choices += count;
    for (int64_t i = 0; i < count; i++) accuracy->agree += integer_element(got, i) == integer_element(expected, i);
  } else if (length > 1) {
    accuracy->choices += count / length;
    for (int64_t row = 0; row < count / length; row++)
      accuracy->agree += place_of_largest(got, row, length) == place_of_largest(expected, row, length);
  }
}

void accuracy_add(Accuracy *accuracy, const rnncc_tensor *got, const rnncc_tensor *expected) {
  int64_t count = 1;
  for (int axis = 0; axis < expected->rank; axis++) count *= expected->shape[axis];
  for (int64_t i = 0; i < count; i++) {
    double e = any_element(expected, i), off = distance(any_element(got, i), e);
    if (off > accuracy->largest) accuracy->largest = off;
    accuracy->sum += off;
    accuracy->noise += off * off;
    if (isfinite(e)) accuracy->signal += e * e;
  }
  accuracy->elements += count;
  add_choices(accuracy, got, expected, count);
}

double accuracy_mean(const Accuracy *accuracy) {
  return accuracy->elements ? accuracy->sum / (double)accuracy->elements : 0;
}

/* 10 log10(x) of a positive number, for rnnrun is linked without libm: x = m 2^e, and ln m = 2 atanh((m - 1) / (m +
 * 1)), whose series is exact to a double after 20 terms, as |m - 1| / (m + 1) <= 1/3. */
static double decibels(double x) {
  int exponent;
  double m = frexp(x, &exponent), z = (m - 1) / (m + 1), power = z, sum = 0;
  for (int k = 1; k <= 39; k += 2, power *= z * z) sum += power / k;
  return 10 / M_LN10 * (exponent * M_LN2 + 2 * sum);
}

double accuracy_snr(const Accuracy *accuracy) {
  if (!(accuracy->noise > 0)) return INFINITY;
  double ratio = accuracy->signal / accuracy->noise;
  return ratio > 0 ? decibels(ratio) : -INFINITY;
}
