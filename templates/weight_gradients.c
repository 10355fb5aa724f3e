/* SPDX-License-Identifier: MIT */
/*
 * The gradients of a recurrent layer's weights and biases. dW = gates' X and dR = gates' H are sums over all rows (a
 * sample at a time each): `gates` has the gradients of the gates' sums, H the states that the rows were given.
 *
 * The rows are cut into chunks, so that there are copies of one chunk only. The workers pack its X and H into panels,
 * whose depth is the chunk's rows. Then each transposes columns of its gates, a strip at a time, and multiplies the
 * strip with all panels while its cache has it. On the way each column is summed: the gradient of a bias. A sum runs
 * over the rows of a chunk, then over the chunks, in order, whichever worker has it. Rows beyond a sample's length
 * are zero, whatever stands there. Where that makes chunks too short, X and H take turns.
 */
#include "parts/trained_layer.h"

/* Rows of a chunk.
 * legal: 16..65536 */
enum { CHUNK = 512 };
/* Maximum columns of a strip: a multiple of LANES.
 * legal: 16..256 */
enum { STRIP = 64 };

/* 1: the panels of a chunk's H take the place of its X's, so that there is room for chunks of twice the rows, whose
 * products begin and end half as often; a strip is transposed for each of the two.
 * legal: 0 1 */
enum { IN_TURNS = 0 };

enum { PRODUCT_VECTORS = UNIT_VECTORS, SECOND_VECTORS = 0 };

#include "parts/trained_product.h"

/* A turned column; columns do not fall on each other's cache sets. */
enum { COLUMN_FLOATS = CHUNK + LANES, STRIP_VECTORS = STRIP / LANES };

typedef struct Layer {
  Extents extents;
  int64_t inputs, gates_row;
  const float *gates, *x, *y, *initial_h; /* x, y: NULL where dW, dR are not wanted, or not in this turn */
  float *x_panels, *h_panels, *r_panels;  /* h, r: of direction d at d * states_floats; r: GRU_BEFORE's reset parts */
  int64_t states_floats;
  float *turned, *tile;     /* this worker's */
  float *dw, *dr, *wb, *rb; /* wb, rb: W's and R's part of dB, [D][2][GATES][H] from there on, or NULL */
  int64_t first, count;     /* rows of the chunk */
} Layer;

static int64_t whole(int64_t columns) { return round_up(columns, PANEL_UNITS); }

/* ---- panels ---- */

/* The state that a row was given; NULL: zeros. */
static const float *state_before(const Layer *l, int64_t direction, int64_t time, int64_t sample) {
  const Extents *e = &l->extents;
  int64_t length = length_of(e, sample), step = time_of(e, direction, time, length); /* of the time, its step */
  if (step == 0) return l->initial_h ? l->initial_h + state_at(e, direction, sample) : NULL;
  return l->y + output_at(e, direction, time_of(e, direction, step - 1, length), sample);
}

typedef enum Source { SOURCE_X, SOURCE_STATE, SOURCE_RESET } Source;

/* The columns of a row of all; NULL: zeros. */
static const float *source_of(const Layer *l, Source source, int64_t direction, int64_t row) {
  const Extents *e = &l->extents;
  int64_t time = e->batch_first ? row % e->steps : row / e->batch;
  int64_t sample = e->batch_first ? row / e->steps : row % e->batch;
  if (time >= length_of(e, sample)) return NULL;
  if (source == SOURCE_X) return l->x + row * l->inputs;
  if (source == SOURCE_STATE) return state_before(l, direction, time, sample);
  return l->gates + row * l->gates_row + (direction * SAVED + GATES) * e->hidden;
}

/* Rows of the chunk from number i on, a panel at a time: what is written stands side by side. */
static void pack_rows(const Layer *l, float *panels, const float *const *from, int64_t rows, int64_t columns,
                      int64_t i) {
  for (int64_t column = 0; column < columns; column += PANEL_UNITS) {
    float *to = panels + column * l->count + i * PANEL_UNITS;
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t at = 0; at < PANEL_UNITS; at += LANES) {
        int64_t count = columns - column - at;
        vstore(to + r * PANEL_UNITS + at, from[r] ? panel_load(from[r] + column + at, count) : vzero());
      }
    }
  }
}

enum { PACKED_ROWS = 16 };

/* Rows i..end-1 of the chunk. */
static void pack_matrix(const Layer *l, float *panels, Source source, int64_t direction, int64_t columns, int64_t i,
                        int64_t end) {
  while (i < end) {
    const float *from[PACKED_ROWS];
    int64_t rows = min_i64(PACKED_ROWS, end - i);
    for (int64_t r = 0; r < rows; r++) from[r] = source_of(l, source, direction, l->first + i + r);
    pack_rows(l, panels, from, rows, columns, i);
    i += rows;
  }
}

static void pack_chunk(const Layer *l, const Team *team) {
  int64_t H = l->extents.hidden, i, end;
  team_share(team, l->count, &i, &end);
  if (l->x) pack_matrix(l, l->x_panels, SOURCE_X, 0, l->inputs, i, end);
  for (int64_t d = 0; l->y && d < l->extents.directions; d++) {
    pack_matrix(l, l->h_panels + d * l->states_floats, SOURCE_STATE, d, H, i, end);
    if (CELL == CELL_GRU_BEFORE) pack_matrix(l, l->r_panels + d * l->states_floats, SOURCE_RESET, d, H, i, end);
  }
}

/* ---- strips ---- */

/* LANES rows from number i on, of one vector of columns, of which there are `width`; `sums` grows by them. */
SIMD_FUNCTION vec turn_square(const Layer *l, const float *from, float *to, int64_t i, int64_t width, vec sums) {
  int64_t count = l->count - i;
  vec square[LANES];
#pragma clang loop unroll(full)
  for (int k = 0; k < LANES; k++) {
    square[k] = k < count ? panel_load(from + (i + k) * l->gates_row, width) : vzero();
    sums = vadd(sums, square[k]);
  }
  vtranspose(square);
#pragma clang loop unroll(full)
  for (int k = 0; k < LANES; k++) vstore(to + k * COLUMN_FLOATS + i, square[k]);
  return sums;
}

/* Rows far ahead of i, which lie too far apart to be foreseen. */
static void fetch_rows(const Layer *l, const float *from, int64_t columns, int64_t i) {
  enum { ROWS_AHEAD = 16 };
  int64_t first = i + ROWS_AHEAD, end = min_i64(first + LANES, l->count);
  for (int64_t row = first; row < end; row++)
    for (int64_t at = 0; at < columns; at += PANEL_LINE) prefetch_later(from + row * l->gates_row + at);
}

/* sums, and same_sums: of the columns over all chunks so far, or NULL. */
static void turn_strip(const Layer *l, const float *from, int64_t columns, float *sums, float *same_sums) {
  int64_t vectors = ceil_div(columns, LANES);
  const float *begun = !l->first ? NULL : sums ? sums : same_sums;
  vec totals[STRIP_VECTORS];
  for (int64_t v = 0; v < vectors; v++)
    totals[v] = begun ? panel_load(begun + v * LANES, columns - v * LANES) : vzero();
  for (int64_t i = 0; i < l->count; i += LANES) {
    fetch_rows(l, from, columns, i);
    for (int64_t v = 0; v < vectors; v++)
      totals[v] =
          turn_square(l, from + v * LANES, l->turned + v * LANES * COLUMN_FLOATS, i, columns - v * LANES, totals[v]);
  }
  for (int64_t v = 0; v < vectors; v++) {
    if (sums) panel_store(sums + v * LANES, totals[v], columns - v * LANES);
    if (same_sums) panel_store(same_sums + v * LANES, totals[v], columns - v * LANES);
  }
}

/* Adds the tile to the panel's part of a gradient, `width` columns of it, or in the first chunk writes it there. */
SIMD_FUNCTION void give_columns(const Layer *l, float *to, int64_t to_row, int64_t rows, int64_t width) {
  bool adds = l->first > 0;
  for (int64_t m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < UNIT_VECTORS; v++) {
      float *at = to + m * to_row + v * LANES;
      vec sum = vload(l->tile + (m * UNIT_VECTORS + v) * LANES);
      int64_t count = width - v * LANES;
      panel_store(at, adds ? vadd(panel_load(at, count), sum) : sum, count);
    }
  }
}
static void give_tile(const Layer *l, float *to, int64_t to_row, int64_t rows, int64_t width) {
  if (width >= PANEL_UNITS)
    give_columns(l, to, to_row, rows, PANEL_UNITS);
  else
    give_columns(l, to, to_row, rows, width);
}

static void fetch_tile(float *to, int64_t to_row, int64_t rows, int64_t width) {
  for (int64_t m = 0; m < rows; m++)
    for (int64_t at = 0; at < min_i64(width, PANEL_UNITS); at += LANES) prefetch_later(to + m * to_row + at);
}

/* The turned strip times all panels of a matrix of so many columns. */
static void multiply_strip(const Layer *l, const float *panels, float *to, int64_t rows, int64_t columns) {
  int64_t floats = l->count * PANEL_UNITS;
  for (int64_t column = 0; column < columns; column += PANEL_UNITS) {
    const float *panel = panels + column * l->count;
    bool last = column + PANEL_UNITS >= columns;
    if (l->first) fetch_tile(to + column, columns, rows, columns - column);
    multiply_panel(panel, last ? panels : panel + floats, l->count, l->turned, COLUMN_FLOATS, l->tile, rows, false);
    give_tile(l, to + column, columns, rows, columns - column);
  }
}

/* `count` units of a gate. What is added to a GRU_AFTER's product of the candidate with R has another gradient than
 * what is added to that with W; all other gates have one. */
static void add_strip(const Layer *l, int64_t direction, int64_t gate, int64_t unit, int64_t count) {
  int64_t H = l->extents.hidden, first = (direction * GATES + gate) * H + unit;
  bool candidate = GATES == 3 && gate == GATES - 1, apart = CELL == CELL_GRU_AFTER && candidate;
  const float *from = l->gates + l->first * l->gates_row + (direction * SAVED + gate) * H + unit;
  int64_t sums = direction * GATES * H + first;
  float *wb = l->wb ? l->wb + sums : NULL, *rb = l->rb ? l->rb + sums : NULL;
  const float *states = CELL == CELL_GRU_BEFORE && candidate ? l->r_panels : l->h_panels;
  if (!apart || wb || l->dw) turn_strip(l, from, count, wb, apart ? NULL : rb);
  if (l->dw) multiply_strip(l, l->x_panels, l->dw + first * l->inputs, count, l->inputs);
  if (apart && (rb || l->dr)) turn_strip(l, from + H, count, rb, NULL);
  if (l->dr) multiply_strip(l, states + direction * l->states_floats, l->dr + first * H, count, H);
}

/* This worker's gates: vectors of units, gate by gate. */
static void add_chunk(const Layer *l, int64_t worker, int64_t workers) {
  int64_t H = l->extents.hidden, vectors = ceil_div(H, LANES), gates = l->extents.directions * GATES;
  int64_t item = share_begin(gates * vectors, worker, workers), end = share_begin(gates * vectors, worker + 1, workers);
  while (item < end) {
    int64_t gate = item / vectors, vector = item % vectors;
    int64_t count = min_i64(min_i64(STRIP_VECTORS, vectors - vector), end - item);
    add_strip(l, gate / GATES, gate % GATES, vector * LANES, min_i64(count * LANES, H - vector * LANES));
    item += count;
  }
}

/* Of the chunk, what this turn is of. */
static void take_turn(Team *team, const Layer *l, int64_t workers) {
  pack_chunk(l, team);
  team_barrier(team);
  if (team->rank < workers) add_chunk(l, team->rank, workers);
}

/* gates: [T * B][D][SAVED][H], see recurrent_gradient.c. panels: CHUNK * (I + D * H, of GRU_BEFORE twice; I and H
 * padded to panels) floats, I's only with dw, H's only with dr; IN_TURNS, the larger part. slots: of `workers` workers,
 * STRIP * (CHUNK + LANES + UNIT_VECTORS * LANES) floats each; others rest. dw, dr, db, initial_h and lengths may be
 * NULL; IN_TURNS, dw and dr are not. */
static void weight_gradients(Team *team, const float *gates, const float *x, const float *y, const float *initial_h,
                             const Length *lengths, float *panels, float *slots, float *dw, float *dr, float *db,
                             int64_t workers, int64_t inputs, int64_t steps, int64_t batch, int64_t hidden,
                             int64_t directions, int64_t reverse, int64_t batch_first) {
  int64_t rows = steps * batch, states = CHUNK * whole(hidden);
  Layer l = {.extents = {steps, batch, hidden, directions, lengths, reverse, batch_first}, .inputs = inputs};
  l.gates = gates;
  l.gates_row = directions * SAVED * hidden;
  l.x = x;
  l.y = y;
  l.initial_h = initial_h;
  l.dw = dw;
  l.dr = dr;
  l.wb = db;
  l.rb = db ? db + GATES * hidden : NULL;
  l.x_panels = panels;
  l.h_panels = panels + (dw && !IN_TURNS ? CHUNK * whole(inputs) : 0);
  l.r_panels = l.h_panels + directions * states;
  l.states_floats = states;
  l.turned = slots + team->rank * STRIP * (COLUMN_FLOATS + PANEL_UNITS);
  l.tile = l.turned + STRIP * COLUMN_FLOATS;
  workers = min_i64(workers, team->size);
  do { /* once even without rows */
    l.count = min_i64(CHUNK, rows - l.first);
    if (l.first) team_barrier(team); /* the panels are not read any more */
    Layer now = l;
    if (IN_TURNS) {
      now.y = NULL, now.dr = now.rb = NULL;
      take_turn(team, &now, workers);
      team_barrier(team);
      now = l;
      now.x = NULL, now.dw = now.wb = NULL;
    }
    take_turn(team, &now, workers);
    l.first += CHUNK;
  } while (l.first < rows);
}
