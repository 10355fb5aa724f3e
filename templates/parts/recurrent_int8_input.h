/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of the input's part of a recurrent layer of integers: what they multiply.
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
