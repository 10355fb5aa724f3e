/* SPDX-License-Identifier: MIT */
/* Dimensions as numbers and as text. Recursion is as deep as divisions nest, which dim.c limits. */
#include "ir/dim_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "support/numbers.h"

static int64_t atom_eval(const Atom *atom, const int64_t *symbols) {
  if (atom->symbol) return symbols[atom->symbol->index] / atom->symbol->multiple;
  int64_t a = dim_eval(atom->a, symbols), b = dim_eval(atom->b, symbols);
  if (atom->kind == ATOM_DIV) return floor_div(a, b);
  if (atom->kind == ATOM_MIN) return a < b ? a : b;
  return a > b ? a : b;
}

int64_t dim_eval(const Dim *dim, const int64_t *symbols) {
  int64_t sum = 0;
  for (int t = 0; t < dim->n_terms; t++) {
    int64_t product = dim->terms[t].coefficient;
    for (int f = 0; f < dim->terms[t].n_factors; f++)
      product = mul_saturated(product, atom_eval(dim->terms[t].factors[f], symbols));
    sum = add_saturated(sum, product);
  }
  return sum;
}

/* The term's coefficient in lowest terms: a factor that is a symbol stands for its value through divisor[f]. */
static int64_t coefficient_of(const Term *term, int64_t *divisor) {
  int64_t coefficient = term->coefficient;
  for (int f = 0; f < term->n_factors; f++) {
    const DimSymbol *symbol = term->factors[f]->symbol;
    int64_t common = symbol ? common_divisor(symbol->multiple, llabs(coefficient % symbol->multiple)) : 1;
    divisor[f] = symbol ? symbol->multiple / common : 1;
    coefficient /= common;
  }
  return coefficient;
}

static void print_operand(Text *out, const Dim *dim, bool of_division) {
  bool grouped = of_division && dim->n_terms > 1;
  text_add(out, grouped ? "(" : "");
  dim_print(out, dim);
  text_add(out, grouped ? ")" : "");
}

static void print_symbol(Text *out, const DimSymbol *symbol, int64_t divisor) {
  text_add(out, "%s", symbol->name);
  if (divisor > 1) text_add(out, "/%" PRId64, divisor);
}

static void print_atom(Text *out, const Atom *atom) {
  static const char *const formats[] = {[ATOM_DIV] = "floor", [ATOM_MIN] = "min", [ATOM_MAX] = "max"};
  text_add(out, "%s(", formats[atom->kind]);
  print_operand(out, atom->a, atom->kind == ATOM_DIV);
  text_add(out, atom->kind == ATOM_DIV ? " / " : ", ");
  print_operand(out, atom->b, atom->kind == ATOM_DIV);
  text_add(out, ")");
}

void dim_print(Text *out, const Dim *dim) {
  if (dim->n_terms == 0) text_add(out, "0");
  for (int t = 0; t < dim->n_terms; t++) {
    const Term *term = &dim->terms[t];
    int64_t divisor[MAX_FACTORS], coefficient = coefficient_of(term, divisor);
    bool negative = coefficient < 0;
    uint64_t size = negative ? -(uint64_t)coefficient : (uint64_t)coefficient;
    text_add(out, "%s", t == 0 ? (negative ? "-" : "") : (negative ? " - " : " + "));
    if (size != 1 || term->n_factors == 0) text_add(out, "%" PRIu64 "%s", size, term->n_factors ? "*" : "");
    for (int f = 0; f < term->n_factors; f++) {
      if (f) text_add(out, "*");
      if (term->factors[f]->symbol)
        print_symbol(out, term->factors[f]->symbol, divisor[f]);
      else
        print_atom(out, term->factors[f]);
    }
  }
}

void dims_print(Text *out, int n, const Dim *const *dims) {
  text_add(out, "[");
  for (int i = 0; i < n; i++) {
    text_add(out, "%s", i ? ", " : "");
    dim_print(out, dims[i]);
  }
  text_add(out, "]");
}

static void print_c_const(Text *out, int64_t value) {
  if (value == INT64_MIN)
    text_add(out, "INT64_MIN");
  else
    text_add(out, value < 0 ? "(-INT64_C(%" PRId64 "))" : "INT64_C(%" PRId64 ")", value < 0 ? -value : value);
}

/* C rounds towards 0. A numerator that may be negative is first raised by k * b, with the least k that makes it never
 * so, and the quotient lowered by k: (a + k*b) / b - k. */
static void print_c_division(Text *out, const Dim *a, const Dim *b) {
  int64_t lower = is_extreme(a->lower) ? INT64_MIN / 4 : a->lower;
  int64_t k = lower >= 0 ? 0 : -floor_div(lower, b->lower);
  text_add(out, "((");
  dim_print_c(out, a);
  if (k) {
    text_add(out, " + INT64_C(%" PRId64 ") * ", k);
    dim_print_c(out, b);
  }
  text_add(out, ") / ");
  dim_print_c(out, b);
  if (k) text_add(out, " - INT64_C(%" PRId64 ")", k);
  text_add(out, ")");
}

static void print_c_symbol(Text *out, const DimSymbol *symbol, int64_t divisor) {
  if (divisor == 1)
    text_add(out, "d%d", symbol->index);
  else
    text_add(out, "(d%d / INT64_C(%" PRId64 "))", symbol->index, divisor);
}

static void print_c_atom(Text *out, const Atom *atom) {
  if (atom->kind == ATOM_DIV) {
    print_c_division(out, atom->a, atom->b);
    return;
  }
  text_add(out, "(");
  dim_print_c(out, atom->a);
  text_add(out, atom->kind == ATOM_MIN ? " < " : " > ");
  dim_print_c(out, atom->b);
  text_add(out, " ? ");
  dim_print_c(out, atom->a);
  text_add(out, " : ");
  dim_print_c(out, atom->b);
  text_add(out, ")");
}

static void print_c_term(Text *out, const Term *term) {
  int64_t divisor[MAX_FACTORS], coefficient = coefficient_of(term, divisor);
  bool counted = coefficient != 1 || term->n_factors == 0;
  if (counted) print_c_const(out, coefficient);
  for (int f = 0; f < term->n_factors; f++) {
    if (f || counted) text_add(out, " * ");
    if (term->factors[f]->symbol)
      print_c_symbol(out, term->factors[f]->symbol, divisor[f]);
    else
      print_c_atom(out, term->factors[f]);
  }
}

static bool is_product(const Term *term) {
  int64_t divisor[MAX_FACTORS];
  return term->n_factors > 1 || (term->n_factors == 1 && coefficient_of(term, divisor) != 1);
}

void dim_print_c(Text *out, const Dim *dim) {
  bool grouped = dim->n_terms > 1 || (dim->n_terms == 1 && is_product(&dim->terms[0]));
  if (dim->n_terms == 0) text_add(out, "INT64_C(0)");
  if (grouped) text_add(out, "(");
  for (int t = 0; t < dim->n_terms; t++) {
    if (t) text_add(out, " + ");
    print_c_term(out, &dim->terms[t]);
  }
  if (grouped) text_add(out, ")");
}

const char *dim_c_text(Arena *arena, const Dim *dim) {
  Text text = text_new(arena);
  dim_print_c(&text, dim);
  return text.data;
}
