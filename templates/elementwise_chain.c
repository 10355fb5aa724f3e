/* SPDX-License-Identifier: MIT */
/*
 * A chain of element-wise ops on f32, bool, u8 and i8: each operand is read once, intermediate values stay in
 * registers, and each result is written once. Operands are broadcast to the results' shape; axes that all of them share
 * were merged before.
 */
#include "chain.h"
#include "kernel.h"

/* legal: 1..8 */
enum { OPERANDS = 1 };
/* legal: 1..32 */
enum { RESULTS = 1 };
/* Axes after merging, the row's included.
 * legal: 1..8 */
enum { RANK = 1 };

/* hook: reads n of LANES elements of the operands' rows from element i on, and writes as many of the results. */
SIMD_FUNCTION void chain(const char *const *in, char *const *out, int64_t i, int n) {
  chain_store(out[0], i, n, chain_load(in[0], i, n));
}

/* Copies of the pointers, which no store can change. */
static void piece(const char *const *operands, char *const *results, int64_t i, int64_t end) {
  const char *in[OPERANDS];
  char *out[RESULTS];
  for (int k = 0; k < OPERANDS; k++) in[k] = operands[k];
  for (int k = 0; k < RESULTS; k++) out[k] = results[k];
  for (; i + LANES <= end; i += LANES) chain(in, out, i, LANES);
  if (i < end) chain(in, out, i, (int)(end - i));
}

/* Where a row is, and how far it is from each operand's start, in bytes. */
typedef struct Row {
  int64_t index[RANK], offset[OPERANDS];
} Row;

static Row row_at(int64_t number, const int64_t *shape, const int64_t *strides) {
  Row row = {{0}, {0}};
  for (int axis = RANK - 2; axis >= 0; axis--) {
    row.index[axis] = number % shape[axis];
    number /= shape[axis];
    for (int k = 0; k < OPERANDS; k++) row.offset[k] += row.index[axis] * strides[k * RANK + axis];
  }
  return row;
}

static void next_row(Row *row, const int64_t *shape, const int64_t *strides) {
  for (int axis = RANK - 2; axis >= 0; axis--) {
    bool carry = ++row->index[axis] == shape[axis];
    int64_t steps = carry ? 1 - shape[axis] : 1;
    for (int k = 0; k < OPERANDS; k++) row->offset[k] += steps * strides[k * RANK + axis];
    if (!carry) return;
    row->index[axis] = 0;
  }
}

/* shape: RANK extents. strides: in bytes, RANK for each operand. widths: the bytes of an element of each result.
 * Results are contiguous; a single result may share the memory of an operand that is not broadcast. */
static void elementwise_chain(const Team *team, const void *const *operands, void *const *results, const int64_t *shape,
                              const int64_t *strides, const int64_t *widths) {
  int64_t length = shape[RANK - 1], pieces = ceil_div(length, CHAIN_PIECE), rows = 1, item, end;
  for (int axis = 0; axis < RANK - 1; axis++) rows *= shape[axis];
  team_share(team, rows * pieces, &item, &end);
  if (item == end) return;
  Row row = row_at(item / pieces, shape, strides);
  for (int64_t number = item / pieces; item < end; number++) {
    int64_t first = item - number * pieces, last = min_i64(end - number * pieces, pieces);
    const char *in[OPERANDS];
    char *out[RESULTS];
    for (int k = 0; k < OPERANDS; k++) in[k] = (const char *)operands[k] + row.offset[k];
    for (int k = 0; k < RESULTS; k++) out[k] = (char *)results[k] + number * length * widths[k];
    piece(in, out, first * CHAIN_PIECE, min_i64(last * CHAIN_PIECE, length));
    next_row(&row, shape, strides);
    item += last - first;
  }
}
