/* SPDX-License-Identifier: MIT */
#include "reroll/cell_weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* First column of an input in x; -1 for h. */
static int64_t first_column(const Cell *cell, int input) {
  int64_t column = 0;
  if (input == cell->hidden) return -1;
  for (int i = 0; i < input; i++)
    if (i != cell->hidden) column += cell->inputs[i].count;
  return column;
}

static void add_gate(const Cell *cell, int gate, CellWeights *weights) {
  int64_t H = cell->units, I = cell_columns(cell), first_unit = gate * H;
  const Affine *affine = &cell->gates[gate];
  for (int i = 0; i < affine->n_products; i++) {
    const Product *product = &affine->products[i];
    int64_t column = first_column(cell, cell_input(cell, product));
    if (column < 0)
      product_weights(product, H, H, weights->hidden + first_unit * H);
    else
      product_weights(product, H, I, weights->input + first_unit * I + column);
  }
}

static void add_bias(const Affine *affine, int64_t units, float *bias) {
  for (int64_t unit = 0; unit < units; unit++) bias[unit] = (float)affine_bias(affine, unit);
}

CellWeights cell_weights(Arena *arena, const Cell *cell) {
  int gates = cell->kind->gates;
  int64_t H = cell->units, rows = gates * H;
  CellWeights weights = {ARENA_ARRAY(arena, float, rows *cell_columns(cell)), ARENA_ARRAY(arena, float, rows *H),
                         ARENA_ARRAY(arena, float, 2 * rows)};
  for (int gate = 0; gate < gates; gate++) {
    add_gate(cell, gate, &weights);
    add_bias(&cell->gates[gate], H, weights.bias + gate * H);
  }
  add_bias(&cell->reset_bias, H, weights.bias + 2 * rows - H);
  return weights;
}

/* ---- comparing ---- */

static bool same_product(const Cell *a, const Product *of_a, const Cell *b, const Product *of_b) {
  return first_column(a, cell_input(a, of_a)) == first_column(b, cell_input(b, of_b)) && of_a->row == of_b->row &&
         of_a->column == of_b->column && of_a->transposed == of_b->transposed && of_a->scale == of_b->scale &&
         same_constant(of_a->weights, of_b->weights);
}

static bool same_addends(const Affine *a, const Affine *b) {
  if (a->n_addends != b->n_addends) return false;
  for (int i = 0; i < a->n_addends; i++) {
    const Addend *mine = &a->addends[i], *other = &b->addends[i];
    if (mine->scale != other->scale || mine->numbers.first != other->numbers.first ||
        mine->numbers.count != other->numbers.count || !same_constant(mine->numbers.value, other->numbers.value))
      return false;
  }
  return true;
}

static bool same_gate(const Cell *a, const Cell *b, int gate) {
  const Affine *mine = &a->gates[gate], *other = &b->gates[gate];
  if (mine->n_products != other->n_products || !same_addends(mine, other)) return false;
  for (int i = 0; i < mine->n_products; i++)
    if (!same_product(a, &mine->products[i], b, &other->products[i])) return false;
  return true;
}

/* Spelt alike, of the same constants: the usual case, at no cost. */
static bool same_spelling(const Cell *a, const Cell *b) {
  for (int gate = 0; gate < a->kind->gates; gate++)
    if (!same_gate(a, b, gate)) return false;
  return same_addends(&a->reset_bias, &b->reset_bias);
}

/* Constants may have been added in another order, by a folded step or by us: each sum is off by less than an ULP of the
 * largest intermediate result, and there are but a few. */
static bool nearly_equal(const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabsf(a[i] - b[i]) <= 4 * FLT_EPSILON * fmaxf(fabsf(a[i]), fabsf(b[i])))) return false;
  return true;
}

static bool same_numbers(const Cell *a, const Cell *b) {
  Arena *arena = arena_new();
  int64_t rows = a->kind->gates * a->units;
  CellWeights mine = cell_weights(arena, a), other = cell_weights(arena, b);
  bool without_h = a->hidden == NO_INPUT || b->hidden == NO_INPUT;
  bool same = nearly_equal(mine.bias, other.bias, 2 * rows) &&
              !memcmp(mine.input, other.input, (size_t)(rows * cell_columns(a)) * sizeof(float)) &&
              (without_h || !memcmp(mine.hidden, other.hidden, (size_t)(rows * a->units) * sizeof(float)));
  arena_free(arena);
  return same;
}

/* The parts of x, of the same widths in the same order. */
static bool same_parts(const Cell *a, const Cell *b) {
  int i = 0, k = 0;
  for (;; i++, k++) {
    i += i == a->hidden;
    k += k == b->hidden;
    if (i >= a->n_inputs || k >= b->n_inputs) return i >= a->n_inputs && k >= b->n_inputs;
    if (a->inputs[i].count != b->inputs[k].count) return false;
  }
}

bool cells_share_weights(const Cell *a, const Cell *b) {
  return a->kind == b->kind && a->relu == b->relu && a->reset_after == b->reset_after &&
         a->input_forget == b->input_forget && a->units == b->units && same_parts(a, b) &&
         (same_spelling(a, b) || same_numbers(a, b));
}
