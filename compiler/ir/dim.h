/* SPDX-License-Identifier: MIT */
/*
 * Symbolic dimensions: integer expressions over the model's named dims (T, B, ...), each with a range. Expressions are
 * kept in a canonical form (a polynomial with integer coefficients over named dims and opaque floor-divisions, minima
 * and maxima) and interned, so two dimensions are equal exactly when their pointers are.
 */
#ifndef RNNCC_DIM_H
#define RNNCC_DIM_H

#include "support/arena.h"
#include "support/diagnostics.h"
#include "support/text.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct Dim Dim; /* immutable; belongs to its DimTable */

/* What a named dimension gets its value from. */
typedef enum DimKind {
  DIM_GIVEN,          /* the shapes of the run's inputs; `{"T": {"min": 1, "opt": 50, "max": 400}}` in the model */
  DIM_DATA_DEPENDENT, /* a kernel that counts elements of the data (NonZero) */
  DIM_LOCAL,          /* a loop of the schedule, inside its body: the steps of a chunk. After all others */
} DimKind;

/* The values of a named dimension: multiples of `multiple`, which divides the three others. */
typedef struct DimBounds {
  int64_t min, opt, max, multiple;
} DimBounds;

/* A named dimension. Those that are given come first. */
typedef struct DimSymbol {
  const char *name;
  int index; /* position in the model's list; d<index> in emitted C */
  int64_t min, opt, max, multiple;
  DimKind kind;
  const Dim
      *most; /* never more than this, either, where it has a value: a loop's counter, what a branch sets; or NULL */
} DimSymbol;

typedef struct DimTable DimTable;

DimTable *dim_table_new(Arena *arena);
/* Where messages about expressions that grow too large point from now on; before: nowhere. */
void dim_table_asked_at(DimTable *table, Location where);
int dim_symbol_count(const DimTable *table);
const DimSymbol *dim_symbol_at(const DimTable *table, int index);
/* NULL if there is none. */
const DimSymbol *dim_symbol_find(const DimTable *table, const char *name);
const DimSymbol *dim_symbol_add(DimTable *table, const char *name, DimBounds bounds);
/* A symbol of the compiler, from min to max. */
const DimSymbol *dim_symbol_own(DimTable *table, DimKind kind, int64_t min, int64_t max);
/* One that depends on data, and is never more than `most`, either; NULL: nothing is known of that. */
const DimSymbol *dim_symbol_within(DimTable *table, int64_t min, int64_t max, const Dim *most);
int dim_given_count(const DimTable *table);
int dim_known_count(const DimTable *table); /* all but local ones: they have a value at the end of the run */

const Dim *dim_const(DimTable *table, int64_t value);
/* A constant, if the symbol has only one value. */
const Dim *dim_symbol(DimTable *table, const DimSymbol *symbol);
const Dim *dim_add(DimTable *table, const Dim *a, const Dim *b);
const Dim *dim_sub(DimTable *table, const Dim *a, const Dim *b);
const Dim *dim_mul(DimTable *table, const Dim *a, const Dim *b);
/* floor(a / b); b's range must exclude 0. Exact where b divides a as a polynomial. */
const Dim *dim_div(DimTable *table, const Dim *a, const Dim *b);
/* ceil(a / b); b's range is above 0. */
const Dim *dim_ceil_div(DimTable *table, const Dim *a, const Dim *b);
/* The q with a = q * b where b divides a as a polynomial; else NULL. b may be 0 in a run, but not always. */
const Dim *dim_div_exact(DimTable *table, const Dim *a, const Dim *b);
const Dim *dim_min(DimTable *table, const Dim *a, const Dim *b);
const Dim *dim_max(DimTable *table, const Dim *a, const Dim *b);

/* Can a <= b be proved for all values of the named dims? */
bool dim_at_most(DimTable *table, const Dim *a, const Dim *b);

bool dim_is_const(const Dim *dim);
int64_t dim_value(const Dim *dim); /* of a constant; bug() otherwise */
static inline bool dim_equals(const Dim *dim, int64_t value) { return dim_is_const(dim) && dim_value(dim) == value; }
/* The symbol, if the dim is one; else NULL. */
const DimSymbol *dim_as_symbol(const Dim *dim);
/* Does its value depend on that symbol? */
bool dim_mentions(const Dim *dim, const DimSymbol *symbol);
/* Marks the symbols that its value depends on, by index. */
void dim_mark_symbols(const Dim *dim, bool *marks);
/* Does it depend on DIM_GIVEN symbols only? */
bool dim_is_given(const Dim *dim);

/* Bounds over all values of the named dims, by interval arithmetic; saturate at INT64_MIN / INT64_MAX. */
int64_t dim_lower(const Dim *dim);
int64_t dim_upper(const Dim *dim);
int64_t dim_optimum(const Dim *dim); /* at every named dim's `opt` */
/* At the given values of the named dims, by index. */
int64_t dim_eval(const Dim *dim, const int64_t *symbols);

/* `2*T + 1`, for people; `INT64_C(2)*d0 + 1`, for C, with named dims d0, d1, ... in scope, fully parenthesised. */
void dim_print(Text *out, const Dim *dim);
void dims_print(Text *out, int n, const Dim *const *dims); /* "[2*T + 1, 4]" */
void dim_print_c(Text *out, const Dim *dim);
const char *dim_c_text(Arena *arena, const Dim *dim); /* what dim_print_c() prints */

#endif
