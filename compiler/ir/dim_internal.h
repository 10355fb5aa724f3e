/* SPDX-License-Identifier: MIT */
/*
 * How dimensions are represented: a sum of terms, each a coefficient times a product of atoms. An atom is a named
 * dimension, or a floor-division, minimum or maximum of two dimensions that no rule simplifies further.
 */
#ifndef RNNCC_DIM_INTERNAL_H
#define RNNCC_DIM_INTERNAL_H

#include "ir/dim.h"

typedef enum AtomKind { ATOM_SYMBOL, ATOM_DIV, ATOM_MIN, ATOM_MAX } AtomKind;

typedef struct Atom {
  AtomKind kind;
  int id;                  /* in order of creation: the order of factors in a term */
  const DimSymbol *symbol; /* the atom is the symbol's value through its `multiple` */
  const Dim *a, *b;        /* operands of the others; a divisor is positive */
} Atom;

typedef struct Term {
  int64_t coefficient;  /* not 0 */
  int n_factors;        /* 0: the constant term */
  const Atom **factors; /* by id; a power is a repetition */
} Term;

struct Dim {
  int id;    /* in order of creation */
  int depth; /* of atoms within atoms */
  int n_terms;
  Term *terms; /* by term_compare: highest degree first, the constant last; no two with the same factors */
  int64_t lower, upper, optimum;
};

/* Of a term; larger than in any real network. */
enum { MAX_FACTORS = 16 };

/* Saturating arithmetic: INT64_MIN and INT64_MAX mean everything beyond, and are kept. */
static inline bool is_extreme(int64_t a) { return a == INT64_MIN || a == INT64_MAX; }

static inline int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  if (is_extreme(a)) return a;
  if (is_extreme(b)) return b;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t mul_saturated(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  if (!is_extreme(a) && !is_extreme(b) && !__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

/* Rounds towards minus infinity; b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b) { return is_extreme(a) ? a : a / b - (a % b < 0); }

/* All values that a term may have. */
typedef struct Range {
  int64_t lower, upper;
} Range;
Range range_mul(Range a, Range b);
Range term_range(const Term *term);
/* Closer bounds than those of the terms, where divisions meet what they divide. */
void dim_bound_closer(Dim *dim);

/* Removes `divisor`'s factors from `term`'s; false if they are not all there. `factors` has room for term's. */
bool term_divide(const Term *term, const Term *divisor, Term *quotient, const Atom **factors);
/* The dimension of canonical terms, which are copied. */
const Dim *dim_of_terms(DimTable *table, const Term *terms, int n);
const Dim *dim_of_atom(DimTable *table, AtomKind kind, const DimSymbol *symbol, const Dim *a, const Dim *b);

#endif
