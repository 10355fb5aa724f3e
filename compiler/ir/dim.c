/* SPDX-License-Identifier: MIT */
/*
 * Sums and products of dimensions. Every result is brought into canonical form and looked up in a hash table, so that
 * equal polynomials are one object. Division, minimum and maximum stand in dim_divide.c.
 */
#include <string.h>

#include "ir/dim_internal.h"
#include "support/diagnostics.h"
#include "support/list.h"
#include "support/numbers.h"

/* Larger than in any real network; bounds the expressions of hostile models. */
enum { MAX_TERMS = 64, MAX_DEPTH = 10, FIRST_SLOTS = 256 };

struct DimTable {
  Arena *arena;
  int n_symbols, symbol_capacity;
  const DimSymbol **symbols;
  int n_atoms, atom_capacity;
  const Atom **atoms;
  int n_dims, n_slots; /* slots: open addressing, a power of two, at most half full */
  const Dim **slots;
  Location asked_at; /* the node whose shape is inferred, for messages */
};

DimTable *dim_table_new(Arena *arena) {
  DimTable *table = ARENA_NEW(arena, DimTable);
  table->arena = arena;
  table->asked_at = LOCATION_FILE(NULL);
  table->n_slots = FIRST_SLOTS;
  table->slots = ARENA_ARRAY(arena, const Dim *, FIRST_SLOTS);
  return table;
}

void dim_table_asked_at(DimTable *table, Location where) { table->asked_at = where; }

static _Noreturn void too_large(const DimTable *table) {
  fatal_at(table->asked_at, EXIT_LIMIT,
           "a dimension's expression grows past %d terms, %d factors a term, or %d divisions deep", MAX_TERMS,
           MAX_FACTORS, MAX_DEPTH);
}

/* Named dimensions */

int dim_symbol_count(const DimTable *table) { return table->n_symbols; }
const DimSymbol *dim_symbol_at(const DimTable *table, int index) { return table->symbols[index]; }

const DimSymbol *dim_symbol_find(const DimTable *table, const char *name) {
  for (int i = 0; i < table->n_symbols; i++)
    if (!strcmp(table->symbols[i]->name, name)) return table->symbols[i];
  return NULL;
}

static const DimSymbol *add_symbol(DimTable *table, const DimSymbol *symbol) {
  const DimSymbol *added = arena_copy(table->arena, symbol, sizeof *symbol);
  return *LIST_ADD(table->arena, table->symbols, table->n_symbols, table->symbol_capacity) = added;
}

const DimSymbol *dim_symbol_add(DimTable *table, const char *name, DimBounds b) {
  if (table->n_symbols > dim_given_count(table)) bug("a given dimension after those of the compiler's own");
  return add_symbol(table, &(DimSymbol){arena_string(table->arena, name), table->n_symbols, b.min, b.opt, b.max,
                                        b.multiple, DIM_GIVEN, NULL});
}

static const DimSymbol *add_own(DimTable *table, DimKind kind, int64_t min, int64_t max, const Dim *most) {
  const char *name = arena_format(table->arena, "#%d", table->n_symbols);
  int64_t opt = min + (max - min + 1) / 2; /* nothing is known of the data */
  return add_symbol(table, &(DimSymbol){name, table->n_symbols, min, opt, max, 1, kind, most});
}

const DimSymbol *dim_symbol_own(DimTable *table, DimKind kind, int64_t min, int64_t max) {
  return add_own(table, kind, min, max, NULL);
}

const DimSymbol *dim_symbol_within(DimTable *table, int64_t min, int64_t max, const Dim *most) {
  return add_own(table, DIM_DATA_DEPENDENT, min, max, most);
}

int dim_given_count(const DimTable *table) {
  int count = 0;
  while (count < table->n_symbols && table->symbols[count]->kind == DIM_GIVEN) count++;
  return count;
}

int dim_known_count(const DimTable *table) {
  int count = table->n_symbols;
  while (count > 0 && table->symbols[count - 1]->kind == DIM_LOCAL) count--;
  return count;
}

/* Atoms */

static bool same_atom(const Atom *a, const Atom *b) {
  return a->kind == b->kind && a->symbol == b->symbol && a->a == b->a && a->b == b->b;
}

static const Atom *intern_atom(DimTable *table, Atom wanted) {
  for (int i = 0; i < table->n_atoms; i++)
    if (same_atom(table->atoms[i], &wanted)) return table->atoms[i];
  wanted.id = table->n_atoms;
  const Atom *atom = arena_copy(table->arena, &wanted, sizeof wanted);
  *LIST_ADD(table->arena, table->atoms, table->n_atoms, table->atom_capacity) = atom;
  return atom;
}

static int atom_depth(const Atom *atom) {
  if (atom->kind == ATOM_SYMBOL) return 0;
  return 1 + (atom->a->depth > atom->b->depth ? atom->a->depth : atom->b->depth);
}

/* Bounds */

static Range range_of_products(int64_t a, int64_t b, int64_t c, int64_t d) {
  Range range = {a, a};
  const int64_t others[] = {b, c, d};
  for (int i = 0; i < 3; i++) {
    if (others[i] < range.lower) range.lower = others[i];
    if (others[i] > range.upper) range.upper = others[i];
  }
  return range;
}

Range range_mul(Range a, Range b) {
  return range_of_products(mul_saturated(a.lower, b.lower), mul_saturated(a.lower, b.upper),
                           mul_saturated(a.upper, b.lower), mul_saturated(a.upper, b.upper));
}

static Range range_div(Range a, Range b) {
  return range_of_products(floor_div(a.lower, b.lower), floor_div(a.lower, b.upper), floor_div(a.upper, b.lower),
                           floor_div(a.upper, b.upper));
}

static Range atom_range(const Atom *atom) {
  const DimSymbol *symbol = atom->symbol;
  if (symbol) return (Range){symbol->min / symbol->multiple, symbol->max / symbol->multiple};
  Range a = {atom->a->lower, atom->a->upper}, b = {atom->b->lower, atom->b->upper};
  if (atom->kind == ATOM_DIV) return range_div(a, b);
  if (atom->kind == ATOM_MIN) return (Range){min_int(a.lower, b.lower), min_int(a.upper, b.upper)};
  return (Range){max_int(a.lower, b.lower), max_int(a.upper, b.upper)};
}

static int64_t atom_optimum(const Atom *atom) {
  if (atom->symbol) return atom->symbol->opt / atom->symbol->multiple;
  int64_t a = atom->a->optimum, b = atom->b->optimum;
  if (atom->kind == ATOM_DIV) return floor_div(a, b);
  return atom->kind == ATOM_MIN ? min_int(a, b) : max_int(a, b);
}

Range term_range(const Term *term) {
  Range range = {term->coefficient, term->coefficient};
  for (int f = 0; f < term->n_factors; f++) range = range_mul(range, atom_range(term->factors[f]));
  return range;
}

static void set_bounds(const DimTable *table, Dim *dim) {
  for (int t = 0; t < dim->n_terms; t++) {
    const Term *term = &dim->terms[t];
    Range range = term_range(term);
    int64_t optimum = term->coefficient;
    for (int f = 0; f < term->n_factors; f++) {
      optimum = mul_saturated(optimum, atom_optimum(term->factors[f]));
      dim->depth = (int)max_int(dim->depth, atom_depth(term->factors[f]));
    }
    dim->lower = range.lower == INT64_MIN ? INT64_MIN : add_saturated(dim->lower, range.lower);
    dim->upper = range.upper == INT64_MAX ? INT64_MAX : add_saturated(dim->upper, range.upper);
    dim->optimum = add_saturated(dim->optimum, optimum);
  }
  if (dim->depth > MAX_DEPTH) too_large(table);
  dim_bound_closer(dim);
}

/* Terms, and the polynomials they make */

/* Higher degree first, then by the factors' ids. */
static int term_compare(const Term *a, const Term *b) {
  if (a->n_factors != b->n_factors) return a->n_factors > b->n_factors ? -1 : 1;
  for (int f = 0; f < a->n_factors; f++)
    if (a->factors[f] != b->factors[f]) return a->factors[f]->id < b->factors[f]->id ? -1 : 1;
  return 0;
}

static uint64_t hash_terms(const Term *terms, int n) {
  uint64_t hash = 1469598103934665603u; /* FNV-1a over coefficients and atom ids */
  for (int t = 0; t < n; t++) {
    hash = (hash ^ (uint64_t)terms[t].coefficient) * 1099511628211u;
    for (int f = 0; f < terms[t].n_factors; f++)
      hash = (hash ^ (uint64_t)(terms[t].factors[f]->id + 1)) * 1099511628211u;
  }
  return hash ^ hash >> 29;
}

static bool same_terms(const Dim *dim, const Term *terms, int n) {
  if (dim->n_terms != n) return false;
  for (int t = 0; t < n; t++)
    if (dim->terms[t].coefficient != terms[t].coefficient || term_compare(&dim->terms[t], &terms[t])) return false;
  return true;
}

static const Dim **slot_of(DimTable *table, const Term *terms, int n) {
  uint64_t index = hash_terms(terms, n);
  for (;; index++) {
    const Dim **slot = &table->slots[index & (uint64_t)(table->n_slots - 1)];
    if (!*slot || same_terms(*slot, terms, n)) return slot;
  }
}

static void grow_slots(DimTable *table) {
  const Dim **old = table->slots;
  int n_old = table->n_slots;
  table->n_slots *= 2;
  table->slots = ARENA_ARRAY(table->arena, const Dim *, table->n_slots);
  for (int i = 0; i < n_old; i++)
    if (old[i]) *slot_of(table, old[i]->terms, old[i]->n_terms) = old[i];
}

/* floor((T + 1) / 2), of a T of 49 or 50. */
static bool has_one_value(const Dim *dim) {
  return !dim_is_const(dim) && dim->lower == dim->upper && !is_extreme(dim->lower);
}

/* The dimension of these canonical terms, which are copied. A constant, if they have only one value. */
const Dim *dim_of_terms(DimTable *table, const Term *terms, int n) {
  const Dim **slot = slot_of(table, terms, n);
  if (*slot) return *slot;
  Dim *dim = ARENA_NEW(table->arena, Dim);
  dim->n_terms = n;
  dim->terms = arena_copy(table->arena, terms, (size_t)n * sizeof *terms);
  for (int t = 0; t < n; t++)
    dim->terms[t].factors = arena_copy(table->arena, terms[t].factors, (size_t)terms[t].n_factors * sizeof(Atom *));
  set_bounds(table, dim);
  if (has_one_value(dim)) return dim_const(table, dim->lower);
  dim->id = table->n_dims++;
  *slot = dim;
  if (table->n_dims * 2 > table->n_slots) grow_slots(table);
  return dim;
}

const Dim *dim_of_atom(DimTable *table, AtomKind kind, const DimSymbol *symbol, const Dim *a, const Dim *b) {
  const Atom *atom = intern_atom(table, (Atom){.kind = kind, .symbol = symbol, .a = a, .b = b});
  Term term = {1, 1, &atom};
  return dim_of_terms(table, &term, 1);
}

const Dim *dim_const(DimTable *table, int64_t value) {
  Term term = {value, 0, NULL};
  return dim_of_terms(table, &term, value != 0);
}

/* Merges two canonical sums; the second is scaled by `scale`. */
static const Dim *add_scaled(DimTable *table, const Dim *a, const Dim *b, int64_t scale) {
  Term sum[2 * MAX_TERMS];
  int n = 0, i = 0, j = 0;
  while (i < a->n_terms || j < b->n_terms) {
    int order = i == a->n_terms ? 1 : j == b->n_terms ? -1 : term_compare(&a->terms[i], &b->terms[j]);
    Term term = order <= 0 ? a->terms[i] : b->terms[j];
    int64_t first = order <= 0 ? a->terms[i++].coefficient : 0;
    int64_t second = order >= 0 ? mul_saturated(b->terms[j++].coefficient, scale) : 0;
    term.coefficient = add_saturated(first, second);
    if (term.coefficient != 0) sum[n++] = term;
  }
  if (n > MAX_TERMS) too_large(table);
  return dim_of_terms(table, sum, n);
}

const Dim *dim_add(DimTable *table, const Dim *a, const Dim *b) { return add_scaled(table, a, b, 1); }
const Dim *dim_sub(DimTable *table, const Dim *a, const Dim *b) { return add_scaled(table, a, b, -1); }

/* a's terms times one term; products may be equal or out of order, so they are summed. */
static const Dim *mul_term(DimTable *table, const Dim *a, const Term *by) {
  const Dim *sum = dim_const(table, 0);
  for (int t = 0; t < a->n_terms; t++) {
    const Term *term = &a->terms[t];
    const Atom *factors[2 * MAX_FACTORS];
    Term product = {mul_saturated(term->coefficient, by->coefficient), term->n_factors + by->n_factors, factors};
    if (product.n_factors > MAX_FACTORS) too_large(table);
    for (int f = 0, i = 0, j = 0; f < product.n_factors; f++) {
      bool first = j == by->n_factors || (i < term->n_factors && term->factors[i]->id <= by->factors[j]->id);
      factors[f] = first ? term->factors[i++] : by->factors[j++];
    }
    sum = dim_add(table, sum, dim_of_terms(table, &product, 1));
  }
  return sum;
}

const Dim *dim_mul(DimTable *table, const Dim *a, const Dim *b) {
  const Dim *sum = dim_const(table, 0);
  for (int t = 0; t < b->n_terms; t++) sum = dim_add(table, sum, mul_term(table, a, &b->terms[t]));
  return sum;
}

const Dim *dim_symbol(DimTable *table, const DimSymbol *symbol) {
  if (symbol->min == symbol->max) return dim_const(table, symbol->max);
  const Dim *atom = dim_of_atom(table, ATOM_SYMBOL, symbol, NULL, NULL);
  return symbol->multiple == 1 ? atom : dim_mul(table, atom, dim_const(table, symbol->multiple));
}

bool dim_is_const(const Dim *dim) { return dim->n_terms == 0 || (dim->n_terms == 1 && dim->terms[0].n_factors == 0); }

int64_t dim_value(const Dim *dim) {
  if (!dim_is_const(dim)) bug("the value of a dimension that is not constant");
  return dim->n_terms ? dim->terms[0].coefficient : 0;
}

const DimSymbol *dim_as_symbol(const Dim *dim) {
  if (dim->n_terms != 1 || dim->terms[0].n_factors != 1) return NULL;
  const DimSymbol *symbol = dim->terms[0].factors[0]->symbol;
  return symbol && dim->terms[0].coefficient == symbol->multiple ? symbol : NULL;
}

static bool any_symbol(const Dim *dim, bool (*test)(const DimSymbol *, const DimSymbol *), const DimSymbol *with) {
  for (int t = 0; t < dim->n_terms; t++)
    for (int f = 0; f < dim->terms[t].n_factors; f++) {
      const Atom *atom = dim->terms[t].factors[f];
      if (atom->kind == ATOM_SYMBOL ? test(atom->symbol, with)
                                    : any_symbol(atom->a, test, with) || any_symbol(atom->b, test, with))
        return true;
    }
  return false;
}

static bool is_same(const DimSymbol *symbol, const DimSymbol *with) { return symbol == with; }
static bool is_own(const DimSymbol *symbol, const DimSymbol *with) { return (void)with, symbol->kind != DIM_GIVEN; }

bool dim_mentions(const Dim *dim, const DimSymbol *symbol) { return any_symbol(dim, is_same, symbol); }

void dim_mark_symbols(const Dim *dim, bool *marks) {
  for (int t = 0; t < dim->n_terms; t++)
    for (int f = 0; f < dim->terms[t].n_factors; f++) {
      const Atom *atom = dim->terms[t].factors[f];
      if (atom->kind == ATOM_SYMBOL) {
        marks[atom->symbol->index] = true;
      } else {
        dim_mark_symbols(atom->a, marks);
        dim_mark_symbols(atom->b, marks);
      }
    }
}

bool dim_is_given(const Dim *dim) { return !any_symbol(dim, is_own, NULL); }

int64_t dim_lower(const Dim *dim) { return dim->lower; }
int64_t dim_upper(const Dim *dim) { return dim->upper; }
int64_t dim_optimum(const Dim *dim) { return dim->optimum; }
