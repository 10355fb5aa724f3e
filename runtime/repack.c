/* SPDX-License-Identifier: MIT */
/*
 * A copy is a nest of loops. Its two innermost ones are done at once: rows that are contiguous on both sides by memcpy,
 * those that turn a matrix in squares of 16 x 16 or 4 x 4, all others one by one. A square of 16 x 16 reads and writes
 * lines of the cache, each once and whole. In a large copy these lines go past the caches to memory: written in the
 * usual way each would first be read from there, a third of all that is moved.
 */
#include "repack.h"

#include <string.h>

#include "small_float.h"

#ifdef RNNCC_MUTABLE /* else nothing of it is in the module */

enum { SQUARE = 4, TILE = 16, LINE_BYTES = TILE * sizeof(float) };
enum { LARGE = 1 << 19 /* elements: more than a core's second cache has room for */ };

/* The two innermost loops. */
typedef struct Plane {
  int64_t rows, columns, from_row, from_column, to_row, to_column;
} Plane;

typedef float Four __attribute__((vector_size(16)));

static inline Four four_at(const float *at) {
  Four four;
  memcpy(&four, at, sizeof four);
  return four;
}

static inline void put_four(float *at, Four four) { memcpy(at, &four, sizeof four); }

/* Reads down, writes across. */
static inline void turn_square(const float *from, int64_t from_column, float *to, int64_t to_row) {
  Four a = four_at(from), b = four_at(from + from_column);
  Four c = four_at(from + 2 * from_column), d = four_at(from + 3 * from_column);
  Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  put_four(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  put_four(to + to_row, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  put_four(to + 2 * to_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  put_four(to + 3 * to_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

/* Rows and columns [row, row_end) x [column, column_end). */
static void copy_elements(const Plane *p, const float *from, float *to, int64_t row, int64_t row_end, int64_t column,
                          int64_t column_end) {
  for (; row < row_end; row++)
    for (int64_t c = column; c < column_end; c++)
      to[row * p->to_row + c * p->to_column] = from[row * p->from_row + c * p->from_column];
}

/* ---- squares of 16 x 16 ---- */

typedef float Line __attribute__((vector_size(LINE_BYTES)));

/* By its address: in a call, vectors of this size stand where the CPU's features say. */
static inline void put_line(float *at, const Line *line, bool past_caches) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
  if (past_caches) {
    Line *place = __builtin_assume_aligned(at, LINE_BYTES);
    __builtin_nontemporal_store(*line, place);
    return;
  }
#endif
#endif
  (void)past_caches;
  memcpy(at, line, sizeof *line);
}

/* Lines that went past the caches come before what this thread stores from now on. */
static void settle_lines(void) {
#ifdef __x86_64__
  __builtin_ia32_sfence();
#endif
}

/* Of four lines, one below the other: each group of four columns is turned where it stands. */
static inline void turn_groups(Line *v) {
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
  Line ab = LOW(v[0], v[1]), ab_high = HIGH(v[0], v[1]), cd = LOW(v[2], v[3]), cd_high = HIGH(v[2], v[3]);
  v[0] = LOW_PAIRS(ab, cd);
  v[1] = HIGH_PAIRS(ab, cd);
  v[2] = LOW_PAIRS(ab_high, cd_high);
  v[3] = HIGH_PAIRS(ab_high, cd_high);
}

/* Writes rows row, row + 4, row + 8 and row + 12: each has one group of each line. */
static inline void put_groups(const Line *v, float *to, int64_t to_row, bool past_caches) {
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
  Line even = EVEN(v[0], v[4]), even_too = EVEN(v[8], v[12]), odd = ODD(v[0], v[4]), odd_too = ODD(v[8], v[12]);
  const Line rows[] = {EVEN(even, even_too), EVEN(odd, odd_too), ODD(even, even_too), ODD(odd, odd_too)};
  for (int r = 0; r < SQUARE; r++) put_line(to + SQUARE * r * to_row, &rows[r], past_caches);
}

/* These three are no part of the loop around: its compiler would compute all their addresses ahead, on the stack. */
static __attribute__((noinline)) void turn_tile(const float *from, int64_t from_column, float *to, int64_t to_row,
                                                bool past_caches) {
  Line v[TILE];
  for (int c = 0; c < TILE; c++) memcpy(&v[c], from + c * from_column, sizeof v[c]);
  for (int c = 0; c < TILE; c += SQUARE) turn_groups(v + c);
  for (int r = 0; r < SQUARE; r++) put_groups(v + r, to + r * to_row, to_row, past_caches);
}

static __attribute__((noinline)) void turn_rest(const Plane *p, const float *from, float *to, int64_t row,
                                                int64_t row_end, int64_t column, int64_t column_end) {
  int64_t whole_rows = row_end - (row_end - row) % SQUARE, whole_columns = column_end - (column_end - column) % SQUARE;
  for (int64_t c = column; c < whole_columns; c += SQUARE)
    for (int64_t r = row; r < whole_rows; r += SQUARE)
      turn_square(from + r + c * p->from_column, p->from_column, to + r * p->to_row + c, p->to_row);
  copy_elements(p, from, to, whole_rows, row_end, column, column_end);
  copy_elements(p, from, to, row, whole_rows, whole_columns, column_end);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* May lines of the target go past the caches? */
static bool has_lines(const Plane *p, const float *to) {
  return (uintptr_t)to % LINE_BYTES == 0 && p->to_row % TILE == 0;
}

static void turn(const Plane *p, const float *from, float *to, bool large) {
  bool past_caches = large && has_lines(p, to);
  for (int64_t row = 0; row < p->rows; row += TILE)
    for (int64_t column = 0; column < p->columns; column += TILE)
      if (row + TILE <= p->rows && column + TILE <= p->columns)
        turn_tile(from + row + column * p->from_column, p->from_column, to + row * p->to_row + column, p->to_row,
                  past_caches);
      else
        turn_rest(p, from, to, row, least(row + TILE, p->rows), column, least(column + TILE, p->columns));
}

static void copy_floats(const Plane *p, const float *from, float *to, bool large) {
  if (p->from_column == 1 && p->to_column == 1) {
    for (int64_t row = 0; row < p->rows; row++)
      memcpy(to + row * p->to_row, from + row * p->from_row, (size_t)p->columns * sizeof *to);
  } else if (p->from_row == 1 && p->to_column == 1) {
    turn(p, from, to, large);
  } else {
    copy_elements(p, from, to, 0, p->rows, 0, p->columns);
  }
}

static void add_floats(const Plane *p, const float *from, float *to) {
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t c = 0; c < p->columns; c++)
      to[row * p->to_row + c * p->to_column] += from[row * p->from_row + c * p->from_column];
}

static void copy_halves(const Plane *p, const float *from, uint16_t *to, rnncc_dtype dtype) {
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t c = 0; c < p->columns; c++) {
      float number = from[row * p->from_row + c * p->from_column];
      to[row * p->to_row + c * p->to_column] = dtype == RNNCC_BF16 ? f32_to_bf16(number) : f32_to_f16(number);
    }
}

static void copy_plane(const ModuleCopy *copy, const Plane *plane, const float *source, void *target, int64_t from,
                       int64_t to, bool large) {
  if (copy->dtype != RNNCC_F32)
    copy_halves(plane, source + from, (uint16_t *)target + to, copy->dtype);
  else if (copy->adds)
    add_floats(plane, source + from, (float *)target + to);
  else
    copy_floats(plane, source + from, (float *)target + to, large);
}

/* ---- the loops around ---- */

/* The loop that workers share: the outermost one that has enough turns for all, or the longest. */
static int shared_loop(const ModuleCopy *copy, int workers) {
  int longest = 0;
  for (int i = 0; i < copy->rank; i++) {
    if (copy->extents[i] >= (int64_t)TILE * workers || (i < copy->rank - 2 && copy->extents[i] >= 4 * workers))
      return i;
    if (copy->extents[i] > copy->extents[longest]) longest = i;
  }
  return longest;
}

static Plane plane_of(const ModuleCopy *copy) {
  int last = copy->rank - 1;
  Plane plane = {.rows = 1, .columns = 1};
  if (last >= 0) {
    plane.columns = copy->extents[last];
    plane.from_column = copy->from_strides[last];
    plane.to_column = copy->to_strides[last];
  }
  if (last >= 1) {
    plane.rows = copy->extents[last - 1];
    plane.from_row = copy->from_strides[last - 1];
    plane.to_row = copy->to_strides[last - 1];
  }
  return plane;
}

/* Index `turn` of the loops around the plane, as offsets. */
static void copy_place(const ModuleCopy *copy, int64_t turn, int64_t *from, int64_t *to) {
  for (int i = copy->rank - 3; i >= 0; i--) {
    int64_t index = turn % copy->extents[i];
    turn /= copy->extents[i];
    *from += index * copy->from_strides[i];
    *to += index * copy->to_strides[i];
  }
}

static void copy_all(const ModuleCopy *copy, const float *source, void *target, bool large) {
  Plane plane = plane_of(copy);
  int64_t turns = 1;
  for (int i = 0; i < copy->rank - 2; i++) turns *= copy->extents[i];
  for (int64_t turn = 0; turn < turns; turn++) {
    int64_t from = copy->from, to = copy->to;
    copy_place(copy, turn, &from, &to);
    copy_plane(copy, &plane, source, target, from, to, large);
  }
}

static int64_t elements_of(const ModuleCopy *copy) {
  int64_t elements = 1;
  for (int i = 0; i < copy->rank; i++) elements *= copy->extents[i];
  return elements;
}

void repack(const ModuleCopy *copy, const float *source, void *target, const Team *team) {
  ModuleCopy share = *copy;
  int64_t begin = 0, end = 1;
  int loop = shared_loop(copy, team->size);
  team_share(team, copy->rank ? copy->extents[loop] : 1, &begin, &end);
  if (begin >= end) return;
  if (copy->rank) {
    share.extents[loop] = end - begin;
    share.from += begin * copy->from_strides[loop];
    share.to += begin * copy->to_strides[loop];
  }
  bool large = elements_of(copy) >= LARGE;
  copy_all(&share, source, target, large);
  if (large) settle_lines();
}

ModuleCopy repack_backwards(const ModuleCopy *copy) {
  ModuleCopy back = *copy;
  back.source = copy->target;
  back.target = copy->source;
  back.from = copy->to;
  back.to = copy->from;
  memcpy(back.from_strides, copy->to_strides, sizeof back.from_strides);
  memcpy(back.to_strides, copy->from_strides, sizeof back.to_strides);
  return back;
}
#endif
