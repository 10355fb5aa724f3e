/* SPDX-License-Identifier: MIT */
/*
 * Which numbers beside it make up for a rounded one. Weights w are rounded to q so that their products with some rows x
 * err little: least is sum (x (q - w))^2, not sum (q - w)^2. With H = mean of x' x = U D U', U upper triangular with a
 * diagonal of 1, that sum is the one of D[k] times the square of
 *   q[k] - (w[k] + sum over j < k of (w[j] - q[j]) U[j][k])
 * so each number is rounded once the errors before it have been added (Chee et al. 2023, QuIP, which calls it LDLQ).
 */
#ifndef RNNCC_FEEDBACK_H
#define RNNCC_FEEDBACK_H

#include <stdint.h>

#include "support/arena.h"

/* U, [depth][depth], for these rows, [n][depth]; NULL: they are not finite, or too many, or too long, for it to pay. */
const double *feedback_for(Arena *arena, int64_t n, int64_t depth, const float *rows);

#endif
