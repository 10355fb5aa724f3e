/* SPDX-License-Identifier: MIT */
/* How templates/fourier.c runs a transform: what of it is set before a kernel is chosen. */
#ifndef RNNCC_FOURIER_PLAN_H
#define RNNCC_FOURIER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { FOURIER_HALVES = 2, FOURIER_RADICES = 4, MAX_FOURIER_RADIX = 31 };

typedef struct FourierPlan {
  int64_t points;                /* transformed as complex numbers */
  int64_t half[FOURIER_HALVES];  /* N1 and N2, whose product they are */
  int64_t round[FOURIER_HALVES]; /* of whole vectors */
  int radices[FOURIER_HALVES][FOURIER_RADICES];
  double arithmetic, moves; /* vector instructions of a row: on registers; loads and stores */
} FourierPlan;

/* Points that are transformed, of `length` real ones or complex ones: an even number of real ones are paired. */
int64_t fourier_points(int64_t length, bool real);
/* Does such a transform have a plan, on vectors of any length? */
bool fourier_has_plan(int64_t length, bool real);
/* The plan of the fewest instructions on vectors of so many lanes; false if a prime factor is too large. */
bool fourier_plan(int64_t points, int lanes, FourierPlan *plan);

#endif
