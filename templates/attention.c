/* SPDX-License-Identifier: MIT */
/*
 * softmax(scale Q K' + mask) V in f32, over any number of batches, without the scores in memory.
 *
 * A block has VECTORS * LANES queries, one in each lane, so all that softmax does is done in lanes, and neither K nor V
 * is packed: a tile of scores is ROWS keys times the transposed queries, a tile of results some columns of V times the
 * weights, which stand as a panel (panel.h) already. Keys come in blocks of KEYS whose weights stay in cache. Maximum
 * and sum run along (Milakov and Gimelshein, 2018; Dao et al., 2022): results so far are multiplied by e^(old maximum -
 * new one). A query's sums run over the keys in order, so they depend neither on other queries nor on the workers.
 *
 * As in Softmax, a query whose scores are all -inf has weights of NaN, and so has one with a score of NaN or +inf.
 *
 * Where a query sees a band of the keys, as in causal attention, tiles of keys that no query of the block sees are left
 * out. They would add zeros: what is left out changes no bit, unless a key or value is infinite or NaN.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* Vectors of queries in a block.
 * legal: 1..4 */
enum { VECTORS = 4 };
/* Maximum and minimum keys of a tile of scores.
 * legal: 1..8 */
enum { ROWS = 6 };
/* legal: 1..8 */
enum { MIN_ROWS = 1 };
/* Maximum and minimum columns of V in a tile of results.
 * legal: 1..8 */
enum { OUT_ROWS = 6 };
/* legal: 1..8 */
enum { MIN_OUT_ROWS = 1 };
/* Keys of a block.
 * legal: 1..4096 */
enum { KEYS = 256 };
/* What is added to the scores. 0: nothing; 1: a number for each key; 2: one for each query and key, by strides; 3: the
 * same, with queries side by side.
 * legal: 0 1 2 3 */
enum { MASK = 0 };

/* 1: a query whose weights are not numbers gets 0.
 * legal: 0 1 */
enum { BLIND_ZERO = 0 };

/* 1: a query sees keys place + low .. place + high alone, where place is its number modulo `period`.
 * legal: 0 1 */
enum { BAND = 0 };

enum { WIDTH = VECTORS * LANES };

/* One matrix of each operand; an element is at row * its row + column * its column. */
typedef struct Operand {
  const float *data;
  int64_t row, column;
} Operand;

typedef struct Attend {
  Operand q, k, v, mask;
  float *y;
  int64_t y_row;
  float scale;
  int64_t queries, keys, depth, width; /* depth: columns of Q and K; width: of V */
  float *panel, *weights, *tile;       /* [depth], [KEYS], [width], each of [VECTORS][LANES] */
  int64_t first, count;                /* queries of this block */
  int64_t low, high, period;           /* of the band */
  int64_t from, to;                    /* keys that some query of this block sees */
  int64_t all_from, all_to;            /* keys that all of them see */
  const float *places;                 /* of this block's queries */
} Attend;

/* Of the queries in lanes: the maximum and the sum of e^(score - maximum) so far. */
typedef struct Running {
  vec top[VECTORS], sum[VECTORS];
} Running;

static void load_queries(const Attend *a) {
  for (int64_t lane = 0; lane < a->count; lane++) {
    const float *q = a->q.data + (a->first + lane) * a->q.row;
    for (int64_t d = 0; d < a->depth; d++) a->panel[d * WIDTH + lane] = q[d * a->q.column] * a->scale;
  }
  for (int64_t lane = a->count; lane < WIDTH; lane++)
    for (int64_t d = 0; d < a->depth; d++) a->panel[d * WIDTH + lane] = 0;
}

/* ---- scores ---- */

/* The mask of vector v of the queries, for one key. */
SIMD_FUNCTION vec mask_of(const Attend *a, int64_t key, int v) {
  const float *from = a->mask.data + key * a->mask.column;
  if (MASK == 1) return vbroadcast_load(from);
  from += (a->first + v * LANES) * a->mask.row;
  int64_t count = a->count - v * LANES;
  if (MASK == 3) return panel_load(from, count);
  _Alignas(64) float lanes[LANES] = {0};
  for (int64_t i = 0; i < LANES && i < count; i++) lanes[i] = from[i * a->mask.row];
  return vload(lanes);
}

/* The score, or -inf where the band hides the key from a query. Distances are exact below 2^24. */
SIMD_FUNCTION vec in_band(const Attend *a, vec score, int64_t key, int v) {
  vec distance = vsub(vset((float)key), vload(a->places + v * LANES));
  vmask seen = vand(vge(distance, vset((float)a->low)), vle(distance, vset((float)a->high)));
  return vselect(seen, score, vset(-__builtin_inff()));
}

/* Scores of `rows` keys from `key` on; `at`: that key's place in its block. */
SIMD_FUNCTION void score_tile(const Attend *a, vec *top, int64_t key, int64_t at, int rows) {
  PanelRow sums[PANEL_ROWS];
  panel_load_sums(sums, NULL, rows, VECTORS);
  panel_multiply(sums, rows, VECTORS, a->k.data + key * a->k.row, a->k.row, a->k.column, a->panel, a->depth);
  bool edge = BAND && (key < a->all_from || key + rows > a->all_to);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      vec score = MASK ? vadd(sums[m][v], mask_of(a, key + m, v)) : sums[m][v];
      if (BAND && edge) score = in_band(a, score, key + m, v);
      top[v] = vmax(top[v], score);
      vstore(a->weights + (at + m) * WIDTH + v * LANES, score);
    }
  }
}

static void score_rows(const Attend *a, vec *top, int64_t key, int64_t at, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) score_tile(a, top, key, at, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) score_tile(a, top, key, at, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) score_tile(a, top, key, at, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) score_tile(a, top, key, at, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) score_tile(a, top, key, at, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) score_tile(a, top, key, at, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) score_tile(a, top, key, at, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) score_tile(a, top, key, at, 8);
}

/* ---- weights ---- */

/* Scores of keys begin .. end of a block become weights. change: what results so far are multiplied by. */
static void weigh(const Attend *a, Running *running, const vec *top, int64_t begin, int64_t end, vec *change) {
  vec shift[VECTORS];
  for (int v = 0; v < VECTORS; v++) {
    shift[v] = vselect(veq(top[v], vset(-__builtin_inff())), vzero(), top[v]);
    change[v] = vexp(vsub(running->top[v], shift[v]));
    running->top[v] = top[v];
    running->sum[v] = vmul(running->sum[v], change[v]);
  }
  for (int64_t i = begin; i < end; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      float *at = a->weights + i * WIDTH + v * LANES;
      vec weight = vexp(vsub(vload(at), shift[v]));
      running->sum[v] = vadd(running->sum[v], weight);
      vstore(at, weight);
    }
  }
}

/* ---- results ---- */

/* Columns first .. first + rows of V, for `keys` keys from `key` on. */
SIMD_FUNCTION void result_tile(const Attend *a, const vec *change, int64_t key, int64_t keys, int64_t first, int rows) {
  PanelRow sums[PANEL_ROWS];
  float *tile = a->tile + first * WIDTH;
  bool more = BAND ? key / KEYS > a->from / KEYS : key > 0; /* than this block */
  panel_load_sums(sums, more ? tile : NULL, rows, VECTORS);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = vmul(sums[m][v], change[v]);
  }
  panel_multiply(sums, rows, VECTORS, a->v.data + key * a->v.row + first * a->v.column, a->v.column, a->v.row,
                 a->weights + (BAND ? key % KEYS * WIDTH : 0), keys);
  panel_store_sums(tile, sums, rows, VECTORS);
}

static void result_rows(const Attend *a, const vec *change, int64_t key, int64_t keys, int64_t first, int64_t rows) {
  if (MIN_OUT_ROWS <= 1 && 1 <= OUT_ROWS && rows == 1) result_tile(a, change, key, keys, first, 1);
  if (MIN_OUT_ROWS <= 2 && 2 <= OUT_ROWS && rows == 2) result_tile(a, change, key, keys, first, 2);
  if (MIN_OUT_ROWS <= 3 && 3 <= OUT_ROWS && rows == 3) result_tile(a, change, key, keys, first, 3);
  if (MIN_OUT_ROWS <= 4 && 4 <= OUT_ROWS && rows == 4) result_tile(a, change, key, keys, first, 4);
  if (MIN_OUT_ROWS <= 5 && 5 <= OUT_ROWS && rows == 5) result_tile(a, change, key, keys, first, 5);
  if (MIN_OUT_ROWS <= 6 && 6 <= OUT_ROWS && rows == 6) result_tile(a, change, key, keys, first, 6);
  if (MIN_OUT_ROWS <= 7 && 7 <= OUT_ROWS && rows == 7) result_tile(a, change, key, keys, first, 7);
  if (MIN_OUT_ROWS <= 8 && 8 <= OUT_ROWS && rows == 8) result_tile(a, change, key, keys, first, 8);
}

/* The results over the sums, from lanes to rows. */
static void store_results(const Attend *a, const Running *running) {
  for (int v = 0; v < VECTORS; v++) {
    vec inverse = vdiv(vset(1.0f), running->sum[v]);
    vmask seeing = vgt(running->sum[v], vzero());
    for (int64_t e = 0; e < a->width; e++) {
      float *at = a->tile + e * WIDTH + v * LANES;
      vec result = vmul(vload(at), inverse);
      vstore(at, BLIND_ZERO ? vselect(seeing, result, vzero()) : result);
    }
  }
  for (int64_t lane = 0; lane < a->count; lane++) {
    float *y = a->y + (a->first + lane) * a->y_row;
    for (int64_t e = 0; e < a->width; e++) y[e] = a->tile[e * WIDTH + lane];
  }
}

static void key_block(const Attend *a, Running *running, int64_t key, int64_t keys) {
  vec top[VECTORS], change[VECTORS];
  int64_t tiles = ceil_div(keys, ROWS), out_tiles = ceil_div(a->width, OUT_ROWS), begin = 0, end = keys;
  for (int v = 0; v < VECTORS; v++) top[v] = running->top[v];
  for (int64_t i = 0; i < tiles; i++) {
    int64_t at = i * keys / tiles, past = (i + 1) * keys / tiles;
    if (BAND && key + past <= a->from) {
      begin = past;
    } else if (BAND && key + at >= a->to) {
      end = at;
      break;
    } else {
      score_rows(a, top, key + at, at, past - at);
    }
  }
  weigh(a, running, top, begin, end, change);
  for (int64_t i = 0; i < out_tiles; i++) {
    int64_t first = i * a->width / out_tiles;
    result_rows(a, change, key + begin, end - begin, first, (i + 1) * a->width / out_tiles - first);
  }
}

/* Which keys the block's queries see; the first of them sees one at least, or a tile is left that is hidden. */
static void find_band(Attend *a, float *places) {
  int64_t last = a->first + a->count - 1, least = a->first % a->period, most = last % a->period;
  if (a->first / a->period != last / a->period) {
    least = 0;
    most = a->period - 1;
  }
  a->from = min_i64(max_i64(least + a->low, 0), a->keys - 1);
  a->to = max_i64(min_i64(most + a->high + 1, a->keys), a->from + 1);
  a->all_from = most + a->low;
  a->all_to = least + a->high + 1;
  for (int64_t lane = 0; lane < WIDTH; lane++) places[lane] = (float)((a->first + lane) % a->period);
  a->places = places;
}

static void query_block(Attend *a) {
  _Alignas(64) float places[WIDTH];
  Running running;
  for (int v = 0; v < VECTORS; v++) {
    running.top[v] = vset(-__builtin_inff());
    running.sum[v] = vzero();
  }
  if (BAND) find_band(a, places);
  load_queries(a);
  int64_t key = BAND ? a->from / KEYS * KEYS : 0, end = BAND ? a->to : a->keys;
  for (; key < end; key += KEYS) key_block(a, &running, key, min_i64(KEYS, a->keys - key));
  store_results(a, &running);
}

/* ---- batches ---- */

/* strides: [q, k, v, mask, y][rank], in elements. */
static Attend at_batch(const Attend *all, int64_t index, int64_t rank, const int64_t *dims, const int64_t *strides) {
  Attend a = *all;
  for (int64_t axis = rank - 1; axis >= 0; axis--) {
    int64_t i = index % dims[axis];
    index /= dims[axis];
    a.q.data += i * strides[axis];
    a.k.data += i * strides[rank + axis];
    a.v.data += i * strides[2 * rank + axis];
    if (MASK) a.mask.data += i * strides[3 * rank + axis];
    a.y += i * strides[4 * rank + axis];
  }
  return a;
}

/* scratch: `slots` workers' slots, `slot` floats apart: the block's queries, weights and results. Workers without one
 * have nothing to do. No extent is zero. */
static void attention(const Team *team, const float *q, const float *k, const float *v, const float *mask, float *y,
                      float *scratch, float scale, int64_t queries, int64_t keys, int64_t depth, int64_t width,
                      int64_t q_row, int64_t q_column, int64_t k_row, int64_t k_column, int64_t v_row, int64_t v_column,
                      int64_t mask_row, int64_t mask_column, int64_t y_row, int64_t batch_rank,
                      const int64_t *batch_dims, const int64_t *strides, int64_t low, int64_t high, int64_t period,
                      int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), blocks = ceil_div(queries, WIDTH), batches = 1;
  if (team->rank >= workers) return;
  float *own = scratch + team->rank * slot;
  Attend all = {.q = {q, q_row, q_column},
                .k = {k, k_row, k_column},
                .v = {v, v_row, v_column},
                .mask = {mask, mask_row, mask_column},
                .y = y,
                .y_row = y_row,
                .scale = scale,
                .queries = queries,
                .keys = keys,
                .depth = depth,
                .width = width,
                .low = low,
                .high = high,
                .period = period,
                .panel = own,
                .weights = own + depth * WIDTH,
                .tile = own + (depth + KEYS) * WIDTH};
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  int64_t item = share_begin(batches * blocks, team->rank, workers);
  int64_t end = share_begin(batches * blocks, team->rank + 1, workers);
  for (; item < end; item++) {
    Attend a = at_batch(&all, item / blocks, batch_rank, batch_dims, strides);
    int64_t block = item % blocks;
    if (BAND) block = block % 2 ? blocks - 1 - block / 2 : block / 2; /* so that equal shares see as many keys */
    a.first = block * queries / blocks;
    a.count = (block + 1) * queries / blocks - a.first;
    query_block(&a);
  }
}
