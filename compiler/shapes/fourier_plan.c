/* SPDX-License-Identifier: MIT */
#include "shapes/fourier_plan.h"

#include "support/numbers.h"

enum { MAX_HALF = 4096 };

static bool is_radix(int64_t radix) {
  return radix == 2 || radix == 4 || radix == 8 || (radix % 2 && radix <= MAX_FOURIER_RADIX);
}

/* Instructions on a vector of `radix` points. An odd radix pairs j and n - j: a sum and a difference of both parts, and
 * for each pair of results four products with each pair. Its points do not stay in registers if they are many. */
static double radix_arithmetic(int radix) {
  int pairs = radix / 2;
  return radix == 2 ? 4 : radix == 4 ? 16 : radix == 8 ? 60 : 4 * pairs * pairs + 10 * pairs;
}
static double radix_moves(int radix) { return (radix % 2 && radix > 7 ? 8 : 4) * (double)radix; }
static double twiddle_arithmetic(int radix) { return 4 * (double)(radix - 1); }

typedef struct Passes {
  int radices[FOURIER_RADICES];
  double arithmetic, moves; /* of all points, one a vector */
} Passes;

static double total(const Passes *p) { return p->arithmetic + p->moves; }

/* The best passes for n points with at most `left` radices, none above `most`. */
static bool best_passes(int64_t n, int left, int most, Passes *best) {
  bool found = n == 1;
  *best = (Passes){.radices = {1, 1, 1, 1}};
  for (int radix = most; n > 1 && left && radix > 1; radix--) {
    Passes rest;
    if (n % radix || !is_radix(radix) || !best_passes(n / radix, left - 1, radix, &rest)) continue;
    double butterflies = 1 / (double)radix, arithmetic = radix_arithmetic(radix);
    if (n > radix) arithmetic += twiddle_arithmetic(radix);
    rest.arithmetic += arithmetic * butterflies;
    rest.moves += radix_moves(radix) * butterflies;
    for (int k = FOURIER_RADICES - 1; k > 0; k--) rest.radices[k] = rest.radices[k - 1];
    rest.radices[0] = radix;
    if (!found || total(&rest) < total(best)) *best = rest;
    found = true;
  }
  return found;
}

/* Between the halves a point is multiplied, and moved log2(lanes) times in registers; both parts, beside its factors.
 */
static double transposition(int lanes) {
  double steps = 0;
  for (int k = 1; k < lanes; k *= 2) steps++;
  return 4 + 2 * steps;
}

static bool split(int64_t n1, int64_t n2, int lanes, FourierPlan *plan) {
  const int64_t halves[FOURIER_HALVES] = {n1, n2};
  *plan = (FourierPlan){.points = n1 * n2};
  for (int h = 0; h < FOURIER_HALVES; h++) {
    Passes passes;
    if (halves[h] > MAX_HALF || !best_passes(halves[h], FOURIER_RADICES, MAX_FOURIER_RADIX, &passes)) return false;
    double vectors = (double)halves[h] * (double)ceil_div(halves[1 - h], lanes);
    plan->half[h] = halves[h];
    plan->round[h] = ceil_div(halves[h], lanes) * lanes;
    for (int k = 0; k < FOURIER_RADICES; k++) plan->radices[h][k] = passes.radices[k];
    plan->arithmetic += vectors * passes.arithmetic;
    plan->moves += vectors * passes.moves;
  }
  double square = (double)plan->round[0] * (double)plan->round[1] / lanes, ends = (double)ceil_div(n1 * n2, lanes);
  plan->arithmetic += square * transposition(lanes) + ends * 16;
  plan->moves += square * 10 + ends * 12;
  return true;
}

int64_t fourier_points(int64_t length, bool real) { return real && length % 2 == 0 ? length / 2 : length; }

bool fourier_has_plan(int64_t length, bool real) {
  FourierPlan plan;
  return fourier_plan(fourier_points(length, real), 1, &plan);
}

bool fourier_plan(int64_t points, int lanes, FourierPlan *plan) {
  bool found = false;
  for (int64_t n1 = 1; n1 <= points && n1 <= MAX_HALF; n1++) {
    FourierPlan tried;
    if (points % n1 || !split(n1, points / n1, lanes, &tried)) continue;
    if (!found || tried.arithmetic + tried.moves < plan->arithmetic + plan->moves) *plan = tried;
    found = true;
  }
  return found;
}
