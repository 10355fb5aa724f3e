/* SPDX-License-Identifier: MIT */
/*
 * Copies a box of RANK axes from one place to another, each with its own strides: Concat, Split, Slice, Transpose,
 * Expand and the constant parts of Pad are this, with axes merged where memory allows. The caller's pointers stand at
 * the first element of the box; a stride may be 0 (broadcast) or negative (backwards).
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/simd.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* legal: 1..8 */
enum { RANK = 3 };
/* INNER_ANY, ...
 * legal: 0 1 2 3 */
enum { INNER = INNER_CONTIGUOUS };
/* Elements of the innermost axis that are one piece of work.
 * legal: 8..1048576 */
enum { PIECE = 4096 };
/* The side of a tile, which is one piece of work.
 * legal: 4..64 */
enum { TILE = 32 };

enum { TILED = INNER == INNER_TILED ? 2 : 1, OUTER = RANK - TILED };

typedef struct Box {
  const T *in;
  T *out;
  const int64_t *shape, *in_stride, *out_stride;
  int64_t pieces; /* in the innermost axis or, with tiles, axes */
} Box;

/* One row's piece: elements begin..end-1 of the innermost axis. */
static void copy_row(const Box *b, const T *restrict in, T *restrict out, int64_t begin, int64_t end) {
  if (INNER == INNER_CONTIGUOUS) {
    for (int64_t i = begin; i < end; i++) out[i] = in[i];
  } else if (INNER == INNER_FILL) {
    for (int64_t i = begin; i < end; i++) out[i] = *in;
  } else {
    int64_t from = b->in_stride[RANK - 1], to = b->out_stride[RANK - 1];
    for (int64_t i = begin; i < end; i++) out[i * to] = in[i * from];
  }
}

typedef T quad __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T octet __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));

/* Passed by address only: how a type wider than the CPU's vectors is passed by value depends on the CPU. */
SIMD_FUNCTION const quad *quad_at(const T *p) { return (const quad *)p; }
SIMD_FUNCTION const octet *octet_at(const T *p) { return (const octet *)p; }

/* Four rows of four, `from` apart, become the columns of `out`, whose rows are `to` apart. */
SIMD_FUNCTION void turn_quads(const T *in, int64_t from, T *out, int64_t to) {
  quad a = *quad_at(in), b = *quad_at(in + from), c = *quad_at(in + 2 * from), d = *quad_at(in + 3 * from);
  quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  quad ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(quad *)out = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(quad *)(out + to) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(quad *)(out + 2 * to) = __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5);
  *(quad *)(out + 3 * to) = __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7);
}

/* The same in each half of four rows of eight: columns 0, 4; 1, 5; 2, 6; 3, 7. */
SIMD_FUNCTION void turn_halves(const T *in, int64_t from, octet columns[4]) {
  octet a = *octet_at(in), b = *octet_at(in + from), c = *octet_at(in + 2 * from), d = *octet_at(in + 3 * from);
  octet ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
  octet cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
  octet ab_end = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  octet cd_end = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
  columns[0] = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[1] = __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
  columns[2] = __builtin_shufflevector(ab_end, cd_end, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[3] = __builtin_shufflevector(ab_end, cd_end, 2, 3, 10, 11, 6, 7, 14, 15);
}

SIMD_FUNCTION void turn_octets(const T *in, int64_t from, T *out, int64_t to) {
  octet upper[4], lower[4];
  turn_halves(in, from, upper);
  turn_halves(in + 4 * from, from, lower);
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; i++) {
    *(octet *)(out + i * to) = __builtin_shufflevector(upper[i], lower[i], 0, 1, 2, 3, 8, 9, 10, 11);
    *(octet *)(out + (i + 4) * to) = __builtin_shufflevector(upper[i], lower[i], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/* Side of the squares that are transposed in registers: with short vectors blocks of channels are short too. */
enum { SIDE = LANES < 8 ? 4 : 8 };

SIMD_FUNCTION void turn_square(const T *in, int64_t from, T *out, int64_t to) {
  if (SIDE == 4)
    turn_quads(in, from, out, to);
  else
    turn_octets(in, from, out, to);
}

/* Columns that stand `from` apart in `in` become those of `out`, whose rows are `to` apart. */
SIMD_FUNCTION void turn(const T *restrict in, int64_t from, T *restrict out, int64_t to, int64_t rows,
                        int64_t columns) {
  int64_t in_squares = rows - rows % SIDE, c = 0;
  for (; c + SIDE <= columns; c += SIDE) {
    for (int64_t r = 0; r < in_squares; r += SIDE) turn_square(in + c * from + r, from, out + r * to + c, to);
    for (int64_t r = in_squares; r < rows; r++)
      for (int64_t k = c; k < c + SIDE; k++) out[r * to + k] = in[k * from + r];
  }
  for (; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) out[r * to + c] = in[c * from + r];
}

/* Interleaves a few columns: with a constant number clang vectorises the loop. */
SIMD_FUNCTION void weave(const T *restrict in, int64_t from, T *restrict out, int64_t rows, int columns) {
  for (int64_t r = 0; r < rows; r++) {
#pragma clang loop unroll(full)
    for (int c = 0; c < columns; c++) out[r * columns + c] = in[c * from + r];
  }
}
SIMD_FUNCTION void part(const T *restrict in, T *restrict out, int64_t to, int rows, int64_t columns) {
  for (int64_t c = 0; c < columns; c++) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; r++) out[r * to + c] = in[c * rows + r];
  }
}

/* For images with so few channels that all are in the tile. */
static bool turn_few(const T *restrict in, int64_t from, T *restrict out, int64_t to, int64_t rows, int64_t columns) {
  if (columns == 2 && to == 2)
    weave(in, from, out, rows, 2);
  else if (columns == 3 && to == 3)
    weave(in, from, out, rows, 3);
  else if (columns == 4 && to == 4)
    weave(in, from, out, rows, 4);
  else if (rows == 2 && from == 2)
    part(in, out, to, 2, columns);
  else if (rows == 3 && from == 3)
    part(in, out, to, 3, columns);
  else
    return false;
  return true;
}

/* Through a buffer: rows of the output that are whole pages apart map to the same few cache lines, which squares would
 * evict repeatedly. */
static void turn_buffered(const T *restrict in, int64_t from, T *restrict out, int64_t to, int64_t rows,
                          int64_t columns) {
  T turned[TILE][TILE + SIDE];
  turn(in, from, &turned[0][0], TILE + SIDE, rows, columns);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) out[r * to + c] = turned[r][c];
}

enum { PAGE = 4096 };

static void copy_tile(const Box *b, const T *restrict in, T *restrict out, int64_t row, int64_t column) {
  int64_t rows = min_i64(TILE, b->shape[OUTER] - row), columns = min_i64(TILE, b->shape[RANK - 1] - column);
  int64_t from = b->in_stride[RANK - 1], to = b->out_stride[OUTER];
  in += column * from + row;
  out += row * to + column;
  if (turn_few(in, from, out, to, rows, columns)) return;
  if (to * (int64_t)sizeof(T) % PAGE == 0)
    turn_buffered(in, from, out, to, rows, columns);
  else
    turn(in, from, out, to, rows, columns);
}

static void copy_piece(const Box *b, const T *in, T *out, int64_t piece) {
  if (INNER == INNER_TILED) {
    int64_t across = ceil_div(b->shape[RANK - 1], TILE);
    copy_tile(b, in, out, piece / across * TILE, piece % across * TILE);
  } else {
    int64_t begin = piece * PIECE;
    copy_row(b, in, out, begin, min_i64(b->shape[RANK - 1], begin + PIECE));
  }
}

/* The work between `item` and `end`, in the order (outer axes, piece): the outer position goes on like an odometer. */
static void copy_share(const Box *b, int64_t item, int64_t end) {
  int64_t index[RANK] = {0}, piece = item % b->pieces, outer = item / b->pieces;
  const T *in = b->in;
  T *out = b->out;
  for (int axis = OUTER - 1; axis >= 0; axis--) {
    index[axis] = outer % b->shape[axis];
    outer /= b->shape[axis];
    in += index[axis] * b->in_stride[axis];
    out += index[axis] * b->out_stride[axis];
  }
  for (; item < end; item++) {
    copy_piece(b, in, out, piece);
    if (++piece < b->pieces) continue;
    piece = 0;
    for (int axis = OUTER - 1; axis >= 0; axis--) {
      in += b->in_stride[axis];
      out += b->out_stride[axis];
      if (++index[axis] < b->shape[axis]) break;
      in -= index[axis] * b->in_stride[axis];
      out -= index[axis] * b->out_stride[axis];
      index[axis] = 0;
    }
  }
}

/* shape, in_stride, out_stride: RANK values each, strides in elements. */
static void copy_strided(const Team *team, const T *in, T *out, const int64_t *shape, const int64_t *in_stride,
                         const int64_t *out_stride) {
  Box box = {in, out, shape, in_stride, out_stride, ceil_div(shape[RANK - 1], PIECE)};
  if (INNER == INNER_TILED) box.pieces = ceil_div(shape[OUTER], TILE) * ceil_div(shape[RANK - 1], TILE);
  int64_t items = box.pieces, begin, end;
  for (int axis = 0; axis < OUTER; axis++) items *= shape[axis];
  team_share(team, items, &begin, &end);
  if (begin < end) copy_share(&box, begin, end);
}
