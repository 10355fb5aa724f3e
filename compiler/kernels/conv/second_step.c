/* SPDX-License-Identifier: MIT */
/*
 * Factors are tried: of y and the residual, a byte each, there are 65536 pairs. The ratios of the scales give the same
 * results except, at times, for pairs whose exact result lies so near to a half that roundings decide. There are few of
 * these, so a change of the factors' last bits is found that puts each on the right side.
 */
#include "kernels/conv/second_step.h"

#include <math.h>
#include <stdlib.h>

/* Changes of each factor, by up to so many units in the last place, and of the addend, by so many ADDEND_UNITs. */
enum { MOST_UNITS = 2, MOST_ADDEND_UNITS = 8 };
static const double ADDEND_UNIT = 0x1p-19;
/* Close pairs that are looked at before all others. */
enum { FIRST_PAIRS = 64 };

typedef struct Pair {
  int y, residual;
} Pair;

/* The ratios of the scales, and pairs so close to a half that roundings may decide. */
typedef struct Search {
  const SecondStep *step;
  double of_y, of_residual, addend;
  double distance; /* from a half, of close pairs */
  int first_residual, last_residual;
  int n_first;
  Pair first[FIRST_PAIRS];
} Search;

static double rounded(double x) { return (float)x; }

/* Doubles hold products of floats, and sums and quotients of theirs round to the same floats. */
static double quotient(const SecondStep *s, Pair p) {
  double sum = rounded((double)p.y * s->y_scale);
  if (s->has_residual) sum = rounded(sum + rounded((double)(p.residual - s->residual_zero) * s->residual_scale));
  return rounded(rounded(sum / s->scale) + s->before_rounding);
}

static double saturated(const SecondStep *s, double x) { return fmin(fmax(rint(x), s->least), s->most); }

static bool agrees(const SecondStep *s, const SecondFactors *f, Pair p) {
  double due = saturated(s, quotient(s, p));
  float y = (float)p.y, residual = (float)p.residual;
  float fused = fmaf(y, f->of_y, s->has_residual ? fmaf(residual, f->of_residual, f->addend) : f->addend);
  double rest = s->has_residual ? rounded(rounded((double)residual * f->of_residual) + f->addend) : f->addend;
  double apart = rounded(rest + rounded((double)y * f->of_y));
  return saturated(s, fused) == due && saturated(s, apart) == due;
}

static bool is_close(const Search *search, Pair p) {
  double x = p.y * search->of_y + p.residual * search->of_residual + search->addend;
  double part = x - (double)(int)x;
  return fabs(fabs(part) - 0.5) < search->distance;
}

static bool all_agree(const Search *search, const SecondFactors *f) {
  for (int i = 0; i < search->n_first; i++)
    if (!agrees(search->step, f, search->first[i])) return false;
  for (int y = search->step->y_least; y <= search->step->y_most; y++)
    for (int r = search->first_residual; r <= search->last_residual; r++)
      if (is_close(search, (Pair){y, r}) && !agrees(search->step, f, (Pair){y, r})) return false;
  return true;
}

static int larger(int a, int b) { return abs(a) > abs(b) ? abs(a) : abs(b); }

/* False: some result might leave i32, or all are as inexact as halves. */
static bool begin(Search *search) {
  const SecondStep *s = search->step;
  search->of_y = (double)s->y_scale / s->scale;
  search->of_residual = s->has_residual ? (double)s->residual_scale / s->scale : 0;
  search->addend = s->before_rounding - s->residual_zero * search->of_residual;
  double most = larger(s->y_least, s->y_most) * search->of_y + fabs((double)s->before_rounding) +
                2 * larger(s->residual_least, s->residual_most) * search->of_residual;
  search->distance = most * 0x1p-20; /* each of at most six roundings is 2^-24, a factor's change twice that */
  if (!(search->of_y > 0 && search->of_residual >= 0 && search->distance < 0.25)) return false;
  search->first_residual = s->has_residual ? s->residual_least : 0;
  search->last_residual = s->has_residual ? s->residual_most : 0;
  for (int y = s->y_least; y <= s->y_most; y++)
    for (int r = search->first_residual; r <= search->last_residual && search->n_first < FIRST_PAIRS; r++)
      if (is_close(search, (Pair){y, r})) search->first[search->n_first++] = (Pair){y, r};
  return true;
}

/* 0, 1, -1, 2, -2, ... */
static int change(int i) { return i % 2 ? (i + 1) / 2 : -i / 2; }

static float moved(double x, int units) {
  float f = (float)x, to = units > 0 ? INFINITY : -INFINITY;
  for (int i = abs(units); i > 0; i--) f = nextafterf(f, to);
  return f;
}

bool second_step_factors(const SecondStep *s, SecondFactors *factors) {
  Search search = {.step = s};
  if (!begin(&search)) return false;
  for (int a = 0; a <= 2 * MOST_ADDEND_UNITS; a++)
    for (int i = 0; i <= 2 * MOST_UNITS; i++)
      for (int j = 0; j <= (s->has_residual ? 2 * MOST_UNITS : 0); j++) {
        *factors = (SecondFactors){.of_y = moved(search.of_y, change(i)),
                                   .of_residual = moved(search.of_residual, change(j)),
                                   .addend = (float)(search.addend + change(a) * ADDEND_UNIT)};
        if (all_agree(&search, factors)) return true;
      }
  return false;
}
