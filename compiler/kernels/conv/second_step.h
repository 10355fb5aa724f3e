/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a quantised result y before it is stored: it is taken from its scale to another one, maybe with a
 * residual added, each operation rounded to f32:
 *   rint((y * y_scale + (residual - residual_zero) * residual_scale) / scale + before_rounding).
 */
#ifndef RNNCC_SECOND_STEP_H
#define RNNCC_SECOND_STEP_H

#include <stdbool.h>

typedef struct SecondStep {
  int y_least, y_most; /* less its zero point */
  float y_scale;
  bool has_residual;
  int residual_least, residual_most, residual_zero;
  float residual_scale;
  float scale, before_rounding; /* of the result; its zero point, if it is added before the result is rounded */
  int least, most;              /* what the result saturates to */
} SecondStep;

/* rint(y * of_y + (residual * of_residual + addend)). */
typedef struct SecondFactors {
  float of_y, of_residual, addend;
} SecondFactors;

/* Factors that give the same result for all numbers of both, whether or not multiply-adds round their products.
 * False: there are none near the ratios of the scales. */
bool second_step_factors(const SecondStep *step, SecondFactors *factors);

#endif
