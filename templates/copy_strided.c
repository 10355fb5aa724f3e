/* SPDX-License-Identifier: MIT */
/*
 * Copies a box of RANK axes from one place to another, each with its own strides: Concat, Split, Slice, Transpose,
 * Expand and the constant parts of Pad are this, with axes merged where memory allows. The caller's pointers stand at
 * the first element of the box; a stride may be 0 (broadcast) or negative (backwards).
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* legal: 1..8 */
enum { RANK = 3 };
/* What the innermost axes look like. 0: any strides; 1: both sides contiguous; 2: the input does not move (a fill);
 * 3: the output runs along the last axis, the input along the one before: a transposition, done in square tiles.
 * legal: 0 1 2 3 */
enum { INNER = 1 };
/* Elements of the innermost axis that are one piece of work.
 * legal: 8..1048576 */
enum { PIECE = 4096 };
/* The side of a tile, which is one piece of work.
 * legal: 4..64 */
enum { TILE = 32 };

enum { TILED = INNER == 3 ? 2 : 1, OUTER = RANK - TILED };

typedef struct Box {
  const T *in;
  T *out;
  const int64_t *shape, *in_stride, *out_stride;
  int64_t pieces; /* in the innermost axis or, with tiles, axes */
} Box;

/* One row's piece: elements begin..end-1 of the innermost axis. */
static void copy_row(const Box *b, const T *restrict in, T *restrict out, int64_t begin, int64_t end) {
  if (INNER == 1) {
    for (int64_t i = begin; i < end; i++) out[i] = in[i];
  } else if (INNER == 2) {
    for (int64_t i = begin; i < end; i++) out[i] = *in;
  } else {
    int64_t from = b->in_stride[RANK - 1], to = b->out_stride[RANK - 1];
    for (int64_t i = begin; i < end; i++) out[i * to] = in[i * from];
  }
}

enum { QUAD = 4 };
typedef T quad __attribute__((vector_size(QUAD * sizeof(T)), aligned(sizeof(T)), may_alias));

static inline quad load_quad(const T *p) { return *(const quad *)p; }
static inline void store_quad(T *p, quad v) { *(quad *)p = v; }

/* QUAD rows of QUAD, `from` apart, become the columns of `out`, whose rows are `to` apart. */
static inline void turn_quads(const T *in, int64_t from, T *out, int64_t to) {
  quad a = load_quad(in), b = load_quad(in + from), c = load_quad(in + 2 * from), d = load_quad(in + 3 * from);
  quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  quad ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_quad(out, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store_quad(out + to, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  store_quad(out + 2 * to, __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5));
  store_quad(out + 3 * to, __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7));
}

/* Turns the tile in a buffer of its own, so that memory is read and written along what is contiguous there: a store a
 * row of the output would meet the same few lines of the cache again and again. */
static void copy_tile(const Box *b, const T *restrict in, T *restrict out, int64_t row, int64_t column) {
  T turned[TILE][TILE + QUAD];
  int64_t rows = min_i64(TILE, b->shape[OUTER] - row), columns = min_i64(TILE, b->shape[RANK - 1] - column);
  int64_t from = b->in_stride[RANK - 1], quads = rows - rows % QUAD, c = 0;
  in += column * from + row;
  for (; c + QUAD <= columns; c += QUAD) {
    for (int64_t r = 0; r < quads; r += QUAD) turn_quads(in + c * from + r, from, &turned[r][c], TILE + QUAD);
    for (int64_t r = quads; r < rows; r++)
      for (int64_t k = c; k < c + QUAD; k++) turned[r][k] = in[k * from + r];
  }
  for (; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) turned[r][c] = in[c * from + r];
  for (int64_t r = 0; r < rows; r++)
    for (c = 0; c < columns; c++) out[(row + r) * b->out_stride[OUTER] + column + c] = turned[r][c];
}

static void copy_piece(const Box *b, const T *in, T *out, int64_t piece) {
  if (INNER == 3) {
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
  if (INNER == 3) box.pieces = ceil_div(shape[OUTER], TILE) * ceil_div(shape[RANK - 1], TILE);
  int64_t items = box.pieces, begin, end;
  for (int axis = 0; axis < OUTER; axis++) items *= shape[axis];
  team_share(team, items, &begin, &end);
  if (begin < end) copy_share(&box, begin, end);
}
