/* SPDX-License-Identifier: MIT */
/*
 * Closer bounds of sums in which dims and rounded fractions of them meet: H - 2*floor(H / 2) is 0 or 1, whatever H is.
 * One division after another is replaced by n/c - (c-1)/c <= floor(n / c) <= n/c, and what is then left of each dim is
 * bounded by its range. Of a minimum or maximum both operands are tried in its place: S - max(0, S - T), which is the
 * smaller one of both, is at least 1 where they are. A sum that is a product of two others has the product of their
 * bounds: H*W - H*floor(W / 2) - W*floor(H / 2) + floor(H / 2)*floor(W / 2), pixels at half the resolution; and so has
 * one whose terms have a factor in common: 2*T*T - T, distances of steps from each other.
 */
#include "ir/dim_internal.h"
#include "support/numbers.h"

enum { MAX_PARTS = 16, MAX_DIVISIONS = 6, MAX_CHOICES = 3 }; /* longer sums keep the bounds of their terms */

/* (constant + sum of parts) / scale. */
typedef struct Sum {
  int64_t constant, scale;
  int n_parts;
  Term parts[MAX_PARTS];
} Sum;

static bool add_scaled(int64_t *to, int64_t a, int64_t b) {
  int64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*to, product, to);
}

static bool same_factors(const Term *a, const Term *b) {
  if (a->n_factors != b->n_factors) return false;
  for (int f = 0; f < a->n_factors; f++)
    if (a->factors[f] != b->factors[f]) return false;
  return true;
}

/* Adds `by` times the term; false if the sum grows too long or too large. */
static bool add_term(Sum *sum, const Term *term, int64_t by) {
  if (term->n_factors == 0) return add_scaled(&sum->constant, term->coefficient, by);
  int p = 0;
  while (p < sum->n_parts && !same_factors(&sum->parts[p], term)) p++;
  if (p == MAX_PARTS) return false;
  if (p == sum->n_parts) sum->parts[sum->n_parts++] = (Term){0, term->n_factors, term->factors};
  return add_scaled(&sum->parts[p].coefficient, term->coefficient, by);
}

static bool add_terms(Sum *sum, const Dim *dim, int64_t by) {
  for (int t = 0; t < dim->n_terms; t++)
    if (!add_term(sum, &dim->terms[t], by)) return false;
  return true;
}

static bool is_division_by_constant(const Term *part) {
  const Atom *atom = part->factors[0];
  return part->n_factors == 1 && atom->kind == ATOM_DIV && dim_is_const(atom->b);
}

/* Replaces a division by a bound of it from above, of the sum; false if there is none. */
static bool replace_division(Sum *sum) {
  int p = 0;
  while (p < sum->n_parts && (sum->parts[p].coefficient == 0 || !is_division_by_constant(&sum->parts[p]))) p++;
  if (p == sum->n_parts) return false;
  const Atom *division = sum->parts[p].factors[0];
  int64_t k = sum->parts[p].coefficient, c = dim_value(division->b);
  Sum next = {.n_parts = 0};
  if (!add_scaled(&next.scale, sum->scale, c) || !add_scaled(&next.constant, sum->constant, c)) return false;
  for (int i = 0; i < sum->n_parts; i++)
    if (i != p && sum->parts[i].coefficient && !add_term(&next, &sum->parts[i], c)) return false;
  if (!add_terms(&next, division->a, k) || (k < 0 && !add_scaled(&next.constant, 1 - c, k))) return false;
  *sum = next;
  return true;
}

static int64_t upper_of(const Sum *sum) {
  int64_t upper = sum->constant;
  for (int p = 0; p < sum->n_parts && upper != INT64_MAX; p++) {
    int64_t most = term_range(&sum->parts[p]).upper;
    upper = most == INT64_MAX ? most : add_saturated(upper, most);
  }
  return floor_div(upper, sum->scale);
}

/* How many of them may still be replaced. */
typedef struct Left {
  int divisions, choices;
} Left;

static int64_t upper_by_choices(Sum sum, Left left);

static int64_t upper_by_divisions(Sum sum, Left left) {
  int64_t upper = upper_of(&sum);
  if (left.divisions-- == 0 || !replace_division(&sum)) return upper;
  return min_int(upper, upper_by_choices(sum, left));
}

static bool is_choice(const Term *part) {
  AtomKind kind = part->factors[0]->kind;
  return part->coefficient && part->n_factors == 1 && (kind == ATOM_MIN || kind == ATOM_MAX);
}

/* Of the sum with an operand in the place of part p, a minimum or maximum. */
static int64_t upper_with(Sum sum, int p, const Dim *operand, Left left) {
  int64_t k = sum.parts[p].coefficient;
  sum.parts[p].coefficient = 0;
  return add_terms(&sum, operand, k) ? upper_by_choices(sum, left) : INT64_MAX;
}

static int64_t upper_by_choices(Sum sum, Left left) {
  int64_t upper = upper_by_divisions(sum, left);
  int p = 0;
  while (p < sum.n_parts && !is_choice(&sum.parts[p])) p++;
  if (p == sum.n_parts || left.choices-- == 0) return upper;
  const Atom *choice = sum.parts[p].factors[0];
  bool is_larger = (choice->kind == ATOM_MAX) == (sum.parts[p].coefficient > 0);
  int64_t a = upper_with(sum, p, choice->a, left), b = upper_with(sum, p, choice->b, left);
  return min_int(upper, is_larger ? max_int(a, b) : min_int(a, b));
}

/* An upper bound of `sign` times the sum of the terms. */
static int64_t closer_upper(const Term *terms, int n, int64_t sign) {
  Sum sum = {.scale = 1};
  for (int t = 0; t < n; t++)
    if (!add_term(&sum, &terms[t], sign)) return INT64_MAX;
  return upper_by_choices(sum, (Left){MAX_DIVISIONS, MAX_CHOICES});
}

/* A sum of terms, and room for their factors. */
typedef struct Parts {
  int n;
  Term terms[MAX_PARTS];
  const Atom *factors[MAX_PARTS][MAX_FACTORS];
} Parts;

/* Those of the terms that the divisor divides, divided by it. */
static void divide_all(const Term *terms, int n, const Term *divisor, Parts *quotients) {
  quotients->n = 0;
  for (int t = 0; t < n; t++)
    if (term_divide(&terms[t], divisor, &quotients->terms[quotients->n], quotients->factors[quotients->n]))
      quotients->n++;
}

/* Returns the divisor. */
static int64_t divide_by_common_divisor(Parts *parts) {
  int64_t divisor = 0;
  for (int t = 0; t < parts->n; t++) divisor = common_divisor(divisor, parts->terms[t].coefficient);
  for (int t = 0; t < parts->n; t++) parts->terms[t].coefficient /= divisor;
  return divisor;
}

static bool same_parts(const Parts *a, const Parts *b) {
  if (a->n != b->n) return false;
  for (int t = 0; t < a->n; t++)
    if (a->terms[t].coefficient != b->terms[t].coefficient || !same_factors(&a->terms[t], &b->terms[t])) return false;
  return true;
}

static bool share_factors(const Parts *a, const Term *term) {
  Parts multiples;
  for (int f = 0; f < term->n_factors; f++) {
    divide_all(a->terms, a->n, &(Term){1, 1, &term->factors[f]}, &multiples);
    if (multiples.n) return true;
  }
  return false;
}

/* Finds sums that have no factor in common, whose product the terms are; false if there are none. Right is what the
 * first factor of all has beside it. */
static bool split_product(const Term *terms, int n, Parts *left, Parts *right) {
  Parts beside;
  divide_all(terms, n, &(Term){1, 1, &terms[0].factors[0]}, right);
  divide_by_common_divisor(right);
  if (right->terms[0].n_factors == 0) return false;
  divide_all(terms, n, &right->terms[0], left);
  for (int t = 0; t < left->n; t++) {
    divide_all(terms, n, &left->terms[t], &beside);
    if (!same_parts(&beside, right) || share_factors(right, &left->terms[t])) return false;
  }
  return left->n * right->n == n;
}

/* Finds a factor that all terms have, and what they have beside it; false if there is none. */
static bool split_factor(const Term *terms, int n, Term *factor, Parts *rest) {
  for (int f = 0; f < terms[0].n_factors; f++) {
    *factor = (Term){1, 1, &terms[0].factors[f]};
    divide_all(terms, n, factor, rest);
    if (rest->n == n) return true;
  }
  return false;
}

static Range closer_range(const Term *terms, int n);

static Range both(Range a, Range b) { return (Range){max_int(a.lower, b.lower), min_int(a.upper, b.upper)}; }

/* The product of a factor that all terms have and of their rest, which is a sum. */
static Range range_by_factor(const Term *terms, int n, Range range) {
  Term factor;
  Parts rest;
  if (!split_factor(terms, n, &factor, &rest)) return range;
  return both(range, range_mul(term_range(&factor), closer_range(rest.terms, rest.n)));
}

/* Of a sum of at most MAX_PARTS terms, which are not all constant. */
static Range closer_range(const Term *terms, int n) {
  Parts left, right;
  int64_t upper = closer_upper(terms, n, 1), minus_lower = closer_upper(terms, n, -1);
  Range range = {is_extreme(minus_lower) ? INT64_MIN : -minus_lower, upper};
  if (!split_product(terms, n, &left, &right)) return n < 2 ? range : range_by_factor(terms, n, range);
  int64_t scale = divide_by_common_divisor(&left);
  Range scaled = range_mul((Range){scale, scale}, closer_range(left.terms, left.n));
  return both(range, range_mul(scaled, closer_range(right.terms, right.n)));
}

void dim_bound_closer(Dim *dim) {
  if (dim->n_terms < 2 || dim->n_terms > MAX_PARTS || is_extreme(dim->lower) || is_extreme(dim->upper)) return;
  Range range = closer_range(dim->terms, dim->n_terms);
  if (!is_extreme(range.upper) && range.upper < dim->upper) dim->upper = range.upper;
  if (!is_extreme(range.lower) && range.lower > dim->lower) dim->lower = range.lower;
}
