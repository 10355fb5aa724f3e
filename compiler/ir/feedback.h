/* SPDX-License-Identifier: MIT */
/*
 * Which numbers beside it make up for a rounded one. Weights w are rounded to q so that their products with some rows x
 * err little: least is sum (x (q - w))^2, not sum (q - w)^2. With H = mean of x' x = U D U', U upper triangular with a
 * diagonal of 1, that sum is the one of D[k] times the square of
 *   q[k] - (w[k] + sum over j < k of (w[j] - q[j]) U[j][k])
 * so each number is rounded once the errors before it have been added (Chee et al. 2023, QuIP, which calls it LDLQ).
 * Where a few numbers have a scale of their own, it is that one of many by which this sum grows least.
 */
#ifndef RNNCC_FEEDBACK_H
#define RNNCC_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

/* U, [depth][depth], with D in place of its diagonal, for these rows, [n][depth]; NULL: they are not finite, or too
 * many, or too long, for it to pay. */
const double *feedback_for(Arena *arena, int64_t n, int64_t depth, const float *rows);

/* The same in parts, for any number of rows. Is this depth one for which it pays? */
enum { FEEDBACK_MOST_DEPTH = 1024 };
bool feedback_fits(int64_t depth);
/* Adds to the upper triangle of x' x. */
void feedback_add(double *moments, int64_t n, int64_t depth, const float *rows);
/* Makes U of it, in its place; NULL: no row had another number than 0, or one had an infinite one, or NaN. */
const double *feedback_of(Arena *arena, double *moments, int64_t depth);

/* The integer from -most to most that, times the scale, is nearest; times the scale. */
float feedback_round(double wanted, float scale, int most);

/* Groups of up to so many numbers have scales that are looked for. Of more, the best scale differs less from any other,
 * and each takes longer. */
enum { FEEDBACK_MOST_GROUP = 16 };

/* The scale of `n` finite numbers of a channel. All point to what belongs to the first of them: its place in U's
 * diagonal, the numbers, what the errors before them add to each. 0: they are too small for one. */
float feedback_scale(const double *diagonal, int64_t depth, int64_t n, const float *numbers, const double *carried,
                     int most);

#endif
