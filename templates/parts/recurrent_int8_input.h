/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of the input's part of a recurrent layer of integers: what they multiply. The template says
 * before it how products are made, FORM of panel_int8.h.
 */

/* All rows have one range, which is given.
 * legal: 0 1 */
enum { FIXED = 0 };

typedef struct Product {
  const uint8_t *a;
  const int8_t *weights;
  const RowScale *rows;
  const float *scales, *bias;
  const int32_t *totals;
  float *gates;
  int64_t depth, panels, a_row, gates_row;
} Product;

/* Quantises this worker's share of x, [rows][inputs], to rows of int8_row(inputs) bytes. least, most: the range, if
 * FIXED. */
static void quantise_share(const Team *team, const float *x, uint8_t *quantised, RowScale *scales, float least,
                           float most, int64_t rows, int64_t inputs) {
  int64_t begin, end, row = int8_row(inputs);
  team_share(team, rows, &begin, &end);
  FixedRange range = {0};
  if (FIXED) range = fixed_range(least, most);
  for (int64_t i = begin; i < end; i++)
    scales[i] = FIXED ? quantise_row_by(x + i * inputs, inputs, int8_row_at(quantised, i, row, FORM), FORM, &range)
                      : quantise_row(x + i * inputs, inputs, int8_row_at(quantised, i, row, FORM), FORM);
}
