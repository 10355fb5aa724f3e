/* SPDX-License-Identifier: MIT */
/* Symbolic dimensions compared with integers: for random expressions at random points, the value of a computed
 * expression must be what is computed from the values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/dim.h"
#include "outcome.h"

typedef struct Fixture {
  Arena *arena;
  DimTable *table;
  const Dim *T, *B, *one, *two;
} Fixture;

static Fixture fixture_new(void) {
  Fixture f = {.arena = arena_new()};
  f.table = dim_table_new(f.arena);
  f.T = dim_symbol(f.table, dim_symbol_add(f.table, "T", (DimBounds){1, 50, 400, 1}));
  f.B = dim_symbol(f.table, dim_symbol_add(f.table, "B", (DimBounds){1, 4, 8, 1}));
  f.one = dim_const(f.table, 1);
  f.two = dim_const(f.table, 2);
  return f;
}

static const char *printed(Fixture *f, const Dim *dim) {
  Text text = text_new(f->arena);
  dim_print(&text, dim);
  return text.data;
}

static const char *printed_c(Fixture *f, const Dim *dim) {
  Text text = text_new(f->arena);
  dim_print_c(&text, dim);
  return text.data;
}

static void equal_polynomials_are_one_object(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *left = dim_mul(t, dim_add(t, f.T, f.B), dim_sub(t, f.T, f.B));
  const Dim *right = dim_sub(t, dim_mul(t, f.T, f.T), dim_mul(t, f.B, f.B));
  assert_ptr_equal(left, right);
  assert_ptr_equal(dim_sub(t, left, right), dim_const(t, 0));
  assert_ptr_equal(dim_add(t, dim_sub(t, f.T, f.one), f.one), f.T);
  assert_string_equal(printed(&f, left), "T*T - B*B");
  arena_free(f.arena);
}

static void exact_division_leaves_no_remainder(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *TB = dim_mul(t, f.T, f.B), *TB64 = dim_mul(t, TB, dim_const(t, 64));
  assert_ptr_equal(dim_div(t, TB64, dim_mul(t, f.T, dim_const(t, 64))), f.B);
  assert_ptr_equal(dim_div(t, dim_mul(t, dim_add(t, f.T, f.one), f.B), dim_add(t, f.T, f.one)), f.B);
  assert_ptr_equal(dim_div(t, dim_mul(t, f.T, f.two), f.two), f.T);
  arena_free(f.arena);
}

static void strided_divisions_merge(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *half = dim_div(t, dim_add(t, f.T, f.one), f.two);
  assert_ptr_equal(dim_div(t, half, f.two), dim_div(t, dim_add(t, f.T, f.one), dim_const(t, 4)));
  assert_ptr_equal(dim_div(t, dim_mul(t, f.two, dim_add(t, f.T, f.one)), dim_const(t, 4)), half);
  assert_string_equal(printed(&f, half), "floor((T + 1) / 2)");
  arena_free(f.arena);
}

static void minimum_and_maximum_vanish_where_the_order_is_known(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  assert_ptr_equal(dim_min(t, f.T, dim_add(t, f.T, f.one)), f.T);
  assert_ptr_equal(dim_max(t, f.T, f.one), f.T);
  assert_ptr_equal(dim_min(t, f.T, dim_const(t, INT64_MAX)), f.T);
  assert_ptr_equal(dim_max(t, f.T, dim_const(t, INT64_MIN)), f.T);
  assert_ptr_equal(dim_min(t, f.T, dim_const(t, 10)), dim_min(t, dim_const(t, 10), f.T));
  assert_int_equal(dim_upper(dim_min(t, f.T, dim_const(t, 10))), 10);
  arena_free(f.arena);
}

static void fractions_of_a_multiple_are_exact(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const DimSymbol *symbol = dim_symbol_add(t, "H", (DimBounds){12, 24, 48, 12});
  const Dim *H = dim_symbol(t, symbol), *two = dim_const(t, 2), *half = dim_div(t, H, two);
  assert_ptr_equal(dim_mul(t, half, two), H);
  assert_ptr_equal(dim_div(t, half, two), dim_div(t, H, dim_const(t, 4)));
  assert_ptr_not_equal(dim_mul(t, dim_div(t, H, dim_const(t, 8)), dim_const(t, 8)), H);
  assert_ptr_equal(dim_as_symbol(H), symbol);
  assert_null(dim_as_symbol(half));
  assert_int_equal(dim_lower(half), 6);
  assert_int_equal(dim_upper(half), 24);
  assert_int_equal(dim_optimum(half), 12);
  const int64_t values[] = {0, 0, 36};
  assert_int_equal(dim_eval(H, values), 36);
  assert_int_equal(dim_eval(half, values), 18);
  assert_string_equal(printed(&f, dim_add(t, H, f.one)), "H + 1");
  assert_string_equal(printed(&f, dim_mul(t, H, dim_const(t, -3))), "-3*H");
  assert_string_equal(printed(&f, half), "H/2");
  assert_string_equal(dim_c_text(f.arena, H), "d2");
  assert_string_equal(dim_c_text(f.arena, half), "(d2 / INT64_C(2))");
  assert_string_equal(dim_c_text(f.arena, dim_mul(t, H, H)), "(d2 * d2)");
  arena_free(f.arena);
}

static void products_saturate_instead_of_wrapping(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *big = dim_const(t, INT64_C(1) << 40);
  const Dim *bomb = dim_mul(t, dim_mul(t, big, big), f.T);
  assert_true(dim_upper(bomb) == INT64_MAX);
  assert_true(dim_upper(dim_sub(t, bomb, f.one)) == INT64_MAX);
  assert_true(dim_lower(dim_sub(t, f.one, bomb)) == INT64_MIN);
  const Dim *beyond = dim_const(t, INT64_MAX), *below = dim_const(t, INT64_MIN);
  assert_ptr_equal(dim_div(t, beyond, dim_const(t, INT64_MAX - 1)), beyond);
  assert_ptr_equal(dim_div(t, below, dim_const(t, 3)), below);
  arena_free(f.arena);
}

/* A random expression and, beside it, its value at one point. */
typedef struct Sample {
  const Dim *dim;
  int64_t value;
} Sample;

static int64_t floor_of(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static Sample leaf(Fixture *f, const int64_t *point) {
  int choice = rand() % 4;
  if (choice == 0) return (Sample){f->T, point[0]};
  if (choice == 1) return (Sample){f->B, point[1]};
  int64_t number = rand() % 13 - 4;
  return (Sample){dim_const(f->table, number), number};
}

static Sample combine(Fixture *f, Sample a, Sample b) {
  DimTable *t = f->table;
  switch (rand() % 6) {
  case 0:
    return (Sample){dim_add(t, a.dim, b.dim), a.value + b.value};
  case 1:
    return (Sample){dim_sub(t, a.dim, b.dim), a.value - b.value};
  case 2:
    return (Sample){dim_mul(t, a.dim, b.dim), a.value * b.value};
  case 3:
    return (Sample){dim_min(t, a.dim, b.dim), a.value < b.value ? a.value : b.value};
  case 4:
    return (Sample){dim_max(t, a.dim, b.dim), a.value > b.value ? a.value : b.value};
  default:
    break;
  }
  if (dim_lower(b.dim) <= 0 && dim_upper(b.dim) >= 0) return a;
  return (Sample){dim_div(t, a.dim, b.dim), floor_of(a.value, b.value)};
}

static Sample grow(Fixture *f, const int64_t *point, int depth) {
  if (depth == 0) return leaf(f, point);
  Sample a = grow(f, point, depth - 1), b = grow(f, point, rand() % depth);
  return combine(f, a, b);
}

/* This can fail: a wrong floor or a lost term changes some of the values compared here. */
static void random_expressions_have_the_value_of_their_parts(void **state) {
  (void)state;
  srand(1);
  for (int round = 0; round < 200; round++) {
    Fixture f = fixture_new();
    for (int i = 0; i < 100; i++) {
      int64_t point[] = {1 + rand() % 400, 1 + rand() % 8};
      Sample sample = grow(&f, point, 3);
      assert_true(dim_eval(sample.dim, point) == sample.value);
      assert_true(dim_lower(sample.dim) <= sample.value);
      assert_true(sample.value <= dim_upper(sample.dim));
    }
    arena_free(f.arena);
  }
}

static void divisions_are_compared_with_what_they_divide(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *two = dim_const(t, 2), *half = dim_div(t, f.T, two), *above = dim_sub(t, f.T, half);
  assert_true(dim_at_most(t, half, f.T));
  assert_true(dim_at_most(t, dim_mul(t, half, two), f.T));
  assert_true(dim_at_most(t, half, above)); /* rounded down, and up */
  assert_false(dim_at_most(t, above, half));
  assert_false(dim_at_most(t, f.T, dim_mul(t, half, two)));
  assert_ptr_equal(dim_min(t, half, f.T), half);
  const Dim *quarter = dim_div(t, half, two), *whole = dim_mul(t, quarter, two);
  assert_true(dim_at_most(t, whole, half)); /* by less than 1, as a fraction */
  assert_ptr_equal(dim_min(t, half, whole), whole);
  assert_false(dim_at_most(t, half, whole));
  const Dim *bytes = dim_const(t, 64);
  assert_true(dim_at_most(t, dim_mul(t, whole, bytes), dim_mul(t, half, bytes)));
  arena_free(f.arena);
}

static void fractions_bound_sums_with_what_they_divide(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *four = dim_const(t, 4), *zero = dim_const(t, 0), *most = dim_mul(t, f.T, dim_const(t, 3));
  const Dim *odd = dim_sub(t, f.T, dim_mul(t, dim_div(t, f.T, f.two), f.two));
  assert_int_equal(dim_lower(odd), 0);
  assert_int_equal(dim_upper(odd), 1);
  const Dim *up = dim_sub(t, zero, dim_div(t, dim_sub(t, zero, f.T), four)); /* ceil(T / 4) */
  assert_ptr_equal(up, dim_sub(t, f.T, dim_div(t, most, four)));
  assert_int_equal(dim_lower(up), 1);
  assert_int_equal(dim_upper(up), 100);
  const Dim *both = dim_add(t, odd, dim_mul(t, f.B, up)); /* a product keeps the bounds of its factors */
  assert_true(dim_lower(both) <= 1 && dim_upper(both) >= 801);
  arena_free(f.arena);
}

static void a_product_of_sums_has_the_bounds_of_its_factors(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *H = dim_symbol(t, dim_symbol_add(t, "H", (DimBounds){160, 224, 288, 1}));
  const Dim *four = dim_const(t, 4), *three = dim_const(t, 3);
  const Dim *width = dim_sub(t, f.T, dim_div(t, dim_mul(t, f.T, three), four)); /* ceil(T / 4) */
  const Dim *height = dim_sub(t, H, dim_div(t, dim_mul(t, H, three), four));
  const Dim *pixels = dim_mul(t, height, width), *all = dim_mul(t, dim_mul(t, pixels, f.B), three);
  assert_int_equal(dim_lower(pixels), 40);
  assert_int_equal(dim_upper(pixels), 72 * 100);
  assert_int_equal(dim_lower(all), 3 * 40);
  assert_int_equal(dim_upper(all), 3 * 8 * 72 * 100);
  const Dim *distances = dim_sub(t, dim_mul(t, dim_const(t, 2), dim_mul(t, f.T, f.T)), f.T); /* T (2 T - 1) */
  assert_int_equal(dim_lower(distances), 1);
  assert_int_equal(dim_upper(distances), 400 * 799);
  arena_free(f.arena);
}

static void operands_bound_sums_with_their_minimum_or_maximum(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *zero = dim_const(t, 0), *apart = dim_sub(t, f.T, f.B);
  const Dim *smaller = dim_sub(t, f.T, dim_max(t, zero, apart)), *larger = dim_sub(t, f.T, dim_min(t, zero, apart));
  assert_int_equal(dim_lower(smaller), 1);
  assert_int_equal(dim_upper(smaller), 8);
  assert_int_equal(dim_lower(larger), 1);
  assert_int_equal(dim_upper(larger), 400);
  arena_free(f.arena);
}

static void at_most_holds_at_every_point(void **state) {
  (void)state;
  srand(3);
  int shown = 0;
  for (int round = 0; round < 4000; round++) {
    Fixture f = fixture_new();
    int64_t point[] = {1 + rand() % 400, 1 + rand() % 8};
    Sample a = grow(&f, point, 2), b = grow(&f, point, 2);
    if (dim_at_most(f.table, a.dim, b.dim)) {
      assert_true(a.value <= b.value);
      shown++;
    }
    arena_free(f.arena);
  }
  assert_true(shown > 400);
}

/* In a loop of T - 1 iterations, and one of n within it, of which the counter says all that is known. */
static void a_counter_is_below_what_counts(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  const Dim *i = dim_symbol(t, dim_symbol_within(t, 0, 398, dim_sub(t, f.T, f.two)));
  const Dim *k = dim_symbol(t, dim_symbol_within(t, 0, 400, i)), *next = dim_add(t, i, f.one);
  assert_true(dim_at_most(t, next, f.T) && dim_at_most(t, dim_add(t, next, f.one), f.T));
  assert_false(dim_at_most(t, dim_add(t, next, f.two), f.T) || dim_at_most(t, f.T, i));
  assert_true(dim_at_most(t, k, dim_sub(t, f.T, f.two))); /* by two counters */
  assert_ptr_equal(dim_sub(t, dim_min(t, next, f.T), dim_min(t, i, f.T)), f.one);
  arena_free(f.arena);
}

static void algebra_laws_hold_as_pointer_equality(void **state) {
  (void)state;
  srand(2);
  const int64_t point[] = {7, 3};
  for (int round = 0; round < 500; round++) {
    Fixture f = fixture_new();
    DimTable *t = f.table;
    const Dim *a = grow(&f, point, 2).dim, *b = grow(&f, point, 2).dim, *c = grow(&f, point, 1).dim;
    assert_ptr_equal(dim_add(t, a, b), dim_add(t, b, a));
    assert_ptr_equal(dim_mul(t, a, b), dim_mul(t, b, a));
    assert_ptr_equal(dim_add(t, dim_add(t, a, b), c), dim_add(t, a, dim_add(t, b, c)));
    assert_ptr_equal(dim_mul(t, dim_mul(t, a, b), c), dim_mul(t, a, dim_mul(t, b, c)));
    assert_ptr_equal(dim_mul(t, a, dim_add(t, b, c)), dim_add(t, dim_mul(t, a, b), dim_mul(t, a, c)));
    assert_ptr_equal(dim_min(t, a, b), dim_min(t, b, a));
    assert_ptr_equal(dim_sub(t, a, a), dim_const(t, 0));
    arena_free(f.arena);
  }
}

/* Reads what dim_print_c writes, as a C compiler would: its division rounds towards 0. */
typedef struct Reader {
  const char *at;
  const int64_t *point;
} Reader;

static int64_t read_expression(Reader *reader);

static bool accept(Reader *reader, const char *token) {
  while (*reader->at == ' ') reader->at++;
  if (strncmp(reader->at, token, strlen(token)) != 0) return false;
  reader->at += strlen(token);
  return true;
}

static int64_t read_number(Reader *reader) { return strtoll(reader->at, (char **)&reader->at, 10); }

static int64_t read_factor(Reader *reader) {
  if (accept(reader, "-")) return -read_factor(reader);
  if (accept(reader, "d")) return reader->point[read_number(reader)];
  bool number = accept(reader, "INT64_C");
  assert_true(accept(reader, "("));
  int64_t value = number ? read_number(reader) : read_expression(reader);
  assert_true(accept(reader, ")"));
  return value;
}

static int64_t read_product(Reader *reader) {
  int64_t value = read_factor(reader);
  for (;;) {
    if (accept(reader, "*"))
      value *= read_factor(reader);
    else if (accept(reader, "/"))
      value /= read_factor(reader);
    else
      return value;
  }
}

static int64_t read_sum(Reader *reader) {
  int64_t value = read_product(reader);
  for (;;) {
    if (accept(reader, "+"))
      value += read_product(reader);
    else if (accept(reader, "-"))
      value -= read_product(reader);
    else
      return value;
  }
}

static int64_t read_expression(Reader *reader) {
  int64_t left = read_sum(reader);
  bool less = accept(reader, "<");
  if (!less && !accept(reader, ">")) return left;
  int64_t right = read_sum(reader);
  assert_true(accept(reader, "?"));
  int64_t yes = read_sum(reader);
  assert_true(accept(reader, ":"));
  int64_t no = read_sum(reader);
  return (less ? left < right : left > right) ? yes : no;
}

static void c_text_computes_the_same_value(void **state) {
  (void)state;
  srand(3);
  for (int round = 0; round < 100; round++) {
    Fixture f = fixture_new();
    for (int i = 0; i < 30; i++) {
      int64_t point[] = {1 + rand() % 400, 1 + rand() % 8};
      Sample sample = grow(&f, point, 3);
      Reader reader = {printed_c(&f, sample.dim), point};
      assert_true(read_expression(&reader) == sample.value);
      assert_string_equal(reader.at, "");
    }
    arena_free(f.arena);
  }
}

static void c_text_is_parenthesised_and_rounds_down(void **state) {
  (void)state;
  Fixture f = fixture_new();
  DimTable *t = f.table;
  assert_string_equal(printed_c(&f, f.T), "d0");
  assert_string_equal(printed_c(&f, dim_const(t, 5)), "INT64_C(5)");
  assert_string_equal(printed_c(&f, dim_sub(t, dim_mul(t, f.two, f.T), f.one)), "(INT64_C(2) * d0 + (-INT64_C(1)))");
  assert_string_equal(printed_c(&f, dim_div(t, dim_add(t, f.T, f.one), f.two)), "(((d0 + INT64_C(1))) / INT64_C(2))");
  const Dim *smaller = dim_min(t, f.B, f.two);
  assert_string_equal(printed_c(&f, smaller), "(d1 < INT64_C(2) ? d1 : INT64_C(2))");
  arena_free(f.arena);
}

/* A shape that a chain of slices shrinks step by step must make neither the table's search slow nor the expression
 * long.
 */
static void many_dimensions_are_found_again(void **state) {
  (void)state;
  Fixture f = fixture_new();
  for (int64_t i = 0; i < 20000; i++) dim_add(f.table, f.T, dim_const(f.table, i));
  for (int64_t i = 0; i < 20000; i += 997)
    assert_ptr_equal(dim_add(f.table, dim_const(f.table, i), f.T), dim_add(f.table, f.T, dim_const(f.table, i)));
  arena_free(f.arena);
}

typedef struct Growth {
  Fixture *f;
  const Dim *(*step)(Fixture *f, const Dim *dim, int n);
} Growth;

static void grow_without_end(void *argument) {
  const Growth *growth = argument;
  const Dim *dim = growth->f->T;
  for (int n = 1; n < 1000; n++) dim = growth->step(growth->f, dim, n);
}

static const Dim *another_factor(Fixture *f, const Dim *dim, int n) {
  (void)n;
  return dim_mul(f->table, dim, f->T);
}

static const Dim *another_division(Fixture *f, const Dim *dim, int n) {
  (void)n;
  return dim_div(f->table, dim_add(f->table, dim_mul(f->table, dim, dim_const(f->table, 5)), f->one), f->two);
}

static const Dim *another_term(Fixture *f, const Dim *dim, int n) {
  return dim_add(f->table, dim, dim_div(f->table, f->T, dim_const(f->table, n + 1)));
}

/* Shapes of a model may be made to grow without end. */
static void an_expression_that_grows_without_end_is_refused(void **state) {
  (void)state;
  const Dim *(*const steps[])(Fixture *, const Dim *, int) = {another_factor, another_division, another_term};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    Fixture f = fixture_new();
    Growth growth = {&f, steps[i]};
    Outcome outcome = outcome_of(grow_without_end, &growth);
    expect_outcome(&outcome, 4, "a dimension's expression grows past 64 terms", NULL);
    arena_free(f.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_polynomials_are_one_object),
      cmocka_unit_test(exact_division_leaves_no_remainder),
      cmocka_unit_test(strided_divisions_merge),
      cmocka_unit_test(minimum_and_maximum_vanish_where_the_order_is_known),
      cmocka_unit_test(fractions_of_a_multiple_are_exact),
      cmocka_unit_test(products_saturate_instead_of_wrapping),
      cmocka_unit_test(random_expressions_have_the_value_of_their_parts),
      cmocka_unit_test(divisions_are_compared_with_what_they_divide),
      cmocka_unit_test(fractions_bound_sums_with_what_they_divide),
      cmocka_unit_test(a_product_of_sums_has_the_bounds_of_its_factors),
      cmocka_unit_test(operands_bound_sums_with_their_minimum_or_maximum),
      cmocka_unit_test(at_most_holds_at_every_point),
      cmocka_unit_test(a_counter_is_below_what_counts),
      cmocka_unit_test(algebra_laws_hold_as_pointer_equality),
      cmocka_unit_test(c_text_computes_the_same_value),
      cmocka_unit_test(c_text_is_parenthesised_and_rounds_down),
      cmocka_unit_test(many_dimensions_are_found_again),
      cmocka_unit_test(an_expression_that_grows_without_end_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
