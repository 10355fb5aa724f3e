/* SPDX-License-Identifier: MIT */
/*
 * Floor division, minimum and maximum of dimensions: first the rules that make them vanish or smaller, so that shapes
 * that are equal also look equal; what is left becomes an atom.
 *
 * Division by a constant c > 0 rests on floor((c*q + r) / c) = q + floor(r / c) and
 * floor(floor(x / a) / b) = floor(x / (a*b)); both hold for all integers.
 */
#include <stdlib.h>

#include "ir/dim_internal.h"
#include "support/diagnostics.h"
#include "support/numbers.h"

static bool saturated(const Dim *dim) { return dim->lower == INT64_MIN || dim->upper == INT64_MAX; }

bool term_divide(const Term *term, const Term *divisor, Term *quotient, const Atom **factors) {
  int n = 0, d = 0;
  for (int f = 0; f < term->n_factors; f++) {
    if (d < divisor->n_factors && term->factors[f] == divisor->factors[d])
      d++;
    else
      factors[n++] = term->factors[f];
  }
  *quotient = (Term){term->coefficient / divisor->coefficient, n, factors};
  return d == divisor->n_factors && term->coefficient % divisor->coefficient == 0;
}

/* a / b if b divides a as a polynomial, by long division on the leading terms; else NULL. */
static const Dim *divide_exactly(DimTable *table, const Dim *a, const Dim *b) {
  enum { MAX_STEPS = 64 };
  const Dim *quotient = dim_const(table, 0);
  for (int step = 0; a->n_terms > 0; step++) {
    const Atom *factors[16];
    Term term;
    if (step == MAX_STEPS || saturated(a) || !term_divide(&a->terms[0], &b->terms[0], &term, factors)) return NULL;
    const Dim *part = dim_of_terms(table, &term, 1);
    quotient = dim_add(table, quotient, part);
    a = dim_sub(table, a, dim_mul(table, part, b));
  }
  return quotient;
}

/* The part of `a` that the single term of b divides, divided by it; the rest goes to *rest. */
static const Dim *divide_terms(DimTable *table, const Dim *a, const Term *divisor, const Dim **rest) {
  const Dim *quotient = dim_const(table, 0);
  *rest = quotient;
  for (int t = 0; t < a->n_terms; t++) {
    const Atom *factors[16];
    Term term;
    if (term_divide(&a->terms[t], divisor, &term, factors))
      quotient = dim_add(table, quotient, dim_of_terms(table, &term, 1));
    else
      *rest = dim_add(table, *rest, dim_of_terms(table, &a->terms[t], 1));
  }
  return quotient;
}

/* Splits each coefficient k of a into c*q + r with 0 <= r < c: a = c*quotient + rest. */
static const Dim *divide_coefficients(DimTable *table, const Dim *a, int64_t c, const Dim **rest) {
  const Dim *quotient = dim_const(table, 0);
  *rest = quotient;
  for (int t = 0; t < a->n_terms; t++) {
    Term whole = a->terms[t], part = a->terms[t];
    whole.coefficient = floor_div(whole.coefficient, c);
    part.coefficient = is_extreme(part.coefficient) ? 0 : part.coefficient - whole.coefficient * c;
    if (whole.coefficient) quotient = dim_add(table, quotient, dim_of_terms(table, &whole, 1));
    if (part.coefficient) *rest = dim_add(table, *rest, dim_of_terms(table, &part, 1));
  }
  return quotient;
}

/* The common divisor of c and all coefficients except the constant term's. */
static int64_t divisor_of_terms(const Dim *a, int64_t c) {
  for (int t = 0; t < a->n_terms; t++)
    if (a->terms[t].n_factors) c = common_divisor(c, a->terms[t].coefficient);
  return c;
}

/* floor((g*x + r) / (g*c)) = floor((x + floor(r / g)) / c); returns the new numerator. */
static const Dim *cancel(DimTable *table, const Dim *a, int64_t g) {
  const Dim *sum = dim_const(table, 0);
  for (int t = 0; t < a->n_terms; t++) {
    Term term = a->terms[t];
    term.coefficient = floor_div(term.coefficient, g);
    if (term.coefficient) sum = dim_add(table, sum, dim_of_terms(table, &term, 1));
  }
  return sum;
}

/* If `a` is one division by a constant plus a constant: the division, and *offset; else NULL. */
static const Atom *only_division(const Dim *a, int64_t *offset) {
  *offset = a->n_terms == 2 ? a->terms[1].coefficient : 0;
  if (a->n_terms == 0 || a->n_terms > 2 || (a->n_terms == 2 && a->terms[1].n_factors)) return NULL;
  const Term *term = &a->terms[0];
  if (term->coefficient != 1 || term->n_factors != 1 || term->factors[0]->kind != ATOM_DIV) return NULL;
  return dim_is_const(term->factors[0]->b) ? term->factors[0] : NULL;
}

static const Dim *divide_by_const(DimTable *table, const Dim *a, int64_t c) {
  const Dim *rest;
  const Dim *quotient = divide_coefficients(table, a, c, &rest);
  int64_t g = divisor_of_terms(rest, c);
  rest = cancel(table, rest, g);
  c /= g;
  int64_t offset, inner_times_c, shift;
  const Atom *inner = only_division(rest, &offset);
  if (inner && !__builtin_mul_overflow(dim_value(inner->b), c, &inner_times_c) &&
      !__builtin_mul_overflow(dim_value(inner->b), offset, &shift)) {
    const Dim *numerator = dim_add(table, inner->a, dim_const(table, shift));
    return dim_add(table, quotient, dim_div(table, numerator, dim_const(table, inner_times_c)));
  }
  int64_t lower = floor_div(rest->lower, c);
  if (!saturated(rest) && lower == floor_div(rest->upper, c)) return dim_add(table, quotient, dim_const(table, lower));
  return dim_add(table, quotient, dim_of_atom(table, ATOM_DIV, NULL, rest, dim_const(table, c)));
}

const Dim *dim_div_exact(DimTable *table, const Dim *a, const Dim *b) {
  return b->n_terms ? divide_exactly(table, a, b) : NULL;
}

const Dim *dim_div(DimTable *table, const Dim *a, const Dim *b) {
  if (b->lower <= 0 && b->upper >= 0) bug("division by a dimension that may be 0");
  if (b->upper < 0) {
    const Dim *zero = dim_const(table, 0);
    return dim_div(table, dim_sub(table, zero, a), dim_sub(table, zero, b));
  }
  if (dim_is_const(b)) return dim_value(b) == 1 ? a : divide_by_const(table, a, dim_value(b));
  const Dim *quotient = divide_exactly(table, a, b), *rest = a;
  if (quotient) return quotient;
  quotient = dim_const(table, 0);
  if (b->n_terms == 1) quotient = divide_terms(table, a, &b->terms[0], &rest);
  if (!saturated(rest) && rest->lower >= 0 && rest->upper < b->lower) return quotient;
  return dim_add(table, quotient, dim_of_atom(table, ATOM_DIV, NULL, rest, b));
}

enum { MAX_TERMS = 16 }; /* longer expressions are not tried */

/* `a` without one of its divisions, times *divisor, that one's: n/c - (c-1)/c <= floor(n / c) <= n/c gives a bound from
 * below, or from above. NULL if it has none by a constant. */
static const Dim *without_division(DimTable *table, const Dim *a, bool above, int64_t *divisor) {
  for (int t = 0; t < a->n_terms; t++) {
    const Term *term = &a->terms[t];
    const Atom *atom = term->n_factors == 1 ? term->factors[0] : NULL;
    if (!atom || atom->kind != ATOM_DIV || !dim_is_const(atom->b)) continue;
    if (a->n_terms + atom->a->n_terms > MAX_TERMS) return NULL;
    const Dim *c = atom->b, *k = dim_const(table, term->coefficient), *bound = atom->a;
    if ((term->coefficient > 0) != above) bound = dim_sub(table, bound, dim_sub(table, c, dim_const(table, 1)));
    const Dim *rest = dim_sub(table, a, dim_of_terms(table, term, 1));
    *divisor = dim_value(c);
    return dim_add(table, dim_mul(table, rest, c), dim_mul(table, bound, k));
  }
  return NULL;
}

const Dim *dim_ceil_div(DimTable *table, const Dim *a, const Dim *b) {
  return dim_div(table, dim_add(table, a, dim_sub(table, b, dim_const(table, 1))), b);
}

/* The x with a = g*x + r, r constant, for which a <= 0 is x <= 0: the least integers that say the same. */
static const Dim *without_factor(DimTable *table, const Dim *a) {
  int64_t g = llabs(divisor_of_terms(a, 0));
  if (g <= 1) return a;
  const Dim *constant = dim_const(table, g - 1); /* r/g is rounded up */
  return cancel(table, dim_add(table, a, constant), g);
}

/* Is a <= 0, by the ranges of its symbols? What is below 1 as a fraction is an integer of at most 0. */
static bool is_none_positive(DimTable *table, const Dim *a) {
  enum { MAX_DIVISIONS = 6 };
  int64_t scale = 1, divisor = 1; /* the bound is of a * scale */
  a = without_factor(table, a);
  for (int i = 0; a && i < MAX_DIVISIONS && !saturated(a); i++) {
    if (a->upper < scale) return true;
    a = without_division(table, a, true, &divisor);
    if (__builtin_mul_overflow(scale, divisor, &scale)) return false;
  }
  return false;
}

/* The same or more: with what a symbol is never more than in its place; or NULL. */
static const Dim *without_bounded(DimTable *table, const Dim *a) {
  for (int t = 0; t < a->n_terms; t++) {
    const Term *term = &a->terms[t];
    const DimSymbol *symbol = term->n_factors == 1 ? term->factors[0]->symbol : NULL;
    if (!symbol || !symbol->most || term->coefficient < 0) continue;
    if (a->n_terms + symbol->most->n_terms > MAX_TERMS) return NULL;
    const Dim *most = dim_mul(table, symbol->most, dim_const(table, term->coefficient));
    return dim_add(table, dim_sub(table, a, dim_of_terms(table, term, 1)), most);
  }
  return NULL;
}

/* Can a <= 0, or a >= 0, be proved? */
static bool never_positive(DimTable *table, const Dim *a) {
  enum { MAX_BOUNDED = 4 };
  for (int i = 0; a && i <= MAX_BOUNDED; i++) {
    if (is_none_positive(table, a)) return true;
    a = without_bounded(table, a);
  }
  return false;
}

static bool never_negative(DimTable *table, const Dim *a) {
  return never_positive(table, dim_sub(table, dim_const(table, 0), a));
}

bool dim_at_most(DimTable *table, const Dim *a, const Dim *b) {
  return a == b || a->upper <= b->lower || never_positive(table, dim_sub(table, a, b));
}

/* -1: a <= b always; 1: a >= b always; 0: not known. */
static int order(DimTable *table, const Dim *a, const Dim *b) {
  if (a == b || a->upper <= b->lower) return -1;
  if (a->lower >= b->upper) return 1;
  const Dim *difference = dim_sub(table, a, b);
  return never_positive(table, difference) ? -1 : never_negative(table, difference) ? 1 : 0;
}

static const Dim *choose(DimTable *table, AtomKind kind, const Dim *a, const Dim *b) {
  if (a->id > b->id) {
    const Dim *swap = a;
    a = b;
    b = swap;
  }
  return dim_of_atom(table, kind, NULL, a, b);
}

const Dim *dim_min(DimTable *table, const Dim *a, const Dim *b) {
  int known = order(table, a, b);
  return known < 0 ? a : known > 0 ? b : choose(table, ATOM_MIN, a, b);
}

const Dim *dim_max(DimTable *table, const Dim *a, const Dim *b) {
  int known = order(table, a, b);
  return known < 0 ? b : known > 0 ? a : choose(table, ATOM_MAX, a, b);
}
