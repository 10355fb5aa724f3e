/* SPDX-License-Identifier: MIT */
/*
 * softmax(scale Q K' + mask) V in f32, over any number of batches, without the scores in memory.
 *
 * A block has VECTORS * LANES queries, one in each lane, so all that softmax does is done in lanes, and neither K nor V
 * need be packed: a tile of scores is ROWS keys times the transposed queries, a tile of results some columns of V times
 * the weights, which stand as a panel (panel.h) already. Keys come in blocks of KEYS whose weights stay in cache.
 * Maximum and sum run along (Milakov and Gimelshein, 2018; Dao et al., 2022): results so far are multiplied by e^(old
 * maximum - new one). A query's sums run over the keys in order, so they depend neither on other queries nor on the
 * workers.
 *
 * The narrower the blocks, the more often K and V are read; and heads that stand side by side are far apart from one
 * key to the next, each in a page of its own and many in the same sets of the cache. Then several blocks of queries are
 * in hand at once, for which a block of keys is copied to where it stands close.
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
#include "transpose.h"

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
/* Blocks of queries in hand at once, for which K and V are copied; 1: they are read where they stand.
 * legal: 1..32 */
enum { QUERY_BLOCKS = 1 };
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

enum { COPIES = QUERY_BLOCKS > 1 };

/* One matrix of each operand; an element is at row * its row + column * its column. */
typedef struct Operand {
  const float *data;
  int64_t row, column;
} Operand;

/* What all blocks of queries have in common. */
typedef struct Attend {
  Operand q, k, v, mask;
  float *y;
  int64_t y_row;
  float scale;
  int64_t queries, keys, depth, width; /* depth: columns of Q and K; width: of V */
  int64_t low, high, period;           /* of the band */
  float *weights, *copies, *blocks;    /* [KEYS] of [VECTORS][LANES]; a block of keys and values; see begin_queries() */
} Attend;

/* A block of `count` keys from number `first` on. */
typedef struct Keys {
  Operand k, v;
  int64_t first, count;
} Keys;

/* A block of queries. */
typedef struct Queries {
  int64_t first, count;
  float *panel, *tile;      /* [depth] and [width], each of [VECTORS][LANES]: scaled queries, and results */
  vec top[VECTORS];         /* of the queries in lanes: the maximum so far, */
  vec sum[VECTORS];         /* and the sum of e^(score - maximum) */
  int64_t from, to;         /* keys that some of these queries see */
  int64_t all_from, all_to; /* keys that all of them see */
  float places[WIDTH];      /* of the queries in the band */
} Queries;

/* Lanes past the last query are zeros: numbers left there by others may be slow. */
static void load_queries(const Attend *a, const Queries *q) {
  const float *from = a->q.data + q->first * a->q.row;
  for (int64_t i = 0; q->count < WIDTH && i < a->depth * WIDTH; i++) q->panel[i] = 0;
  if (a->q.column == 1) {
    transpose_floats(q->panel, WIDTH, from, a->q.row, q->count, a->depth);
  } else {
    for (int64_t lane = 0; lane < q->count; lane++)
      for (int64_t d = 0; d < a->depth; d++) q->panel[d * WIDTH + lane] = from[lane * a->q.row + d * a->q.column];
  }
  for (int64_t i = 0; i < a->depth * WIDTH; i += LANES) vstore(q->panel + i, vmul(vload(q->panel + i), vset(a->scale)));
}

/* ---- scores ---- */

/* The mask of vector v of the queries, for one key. */
SIMD_FUNCTION vec mask_of(const Attend *a, const Queries *q, int64_t key, int v) {
  const float *from = a->mask.data + key * a->mask.column;
  if (MASK == 1) return vbroadcast_load(from);
  from += (q->first + v * LANES) * a->mask.row;
  int64_t count = q->count - v * LANES;
  if (MASK == 3) return panel_load(from, count);
  _Alignas(64) float lanes[LANES] = {0};
  for (int64_t i = 0; i < LANES && i < count; i++) lanes[i] = from[i * a->mask.row];
  return vload(lanes);
}

/* The score, or -inf where the band hides the key from a query. Distances are exact below 2^24. */
SIMD_FUNCTION vec in_band(const Attend *a, const Queries *q, vec score, int64_t key, int v) {
  vec distance = vsub(vset((float)key), vload(q->places + v * LANES));
  vmask seen = vand(vge(distance, vset((float)a->low)), vle(distance, vset((float)a->high)));
  return vselect(seen, score, vset(-__builtin_inff()));
}

/* Scores of `rows` keys, from the block's key `at` on. The maximum may forget a NaN, the sum of weights will not. */
SIMD_FUNCTION void score_tile(const Attend *a, const Queries *q, const Keys *keys, vec *top, int64_t at, int rows) {
  PanelRow sums[PANEL_ROWS];
  panel_load_sums(sums, NULL, rows, VECTORS);
  int64_t column = COPIES ? 1 : keys->k.column;
  panel_multiply(sums, rows, VECTORS, keys->k.data + at * keys->k.row, keys->k.row, column, q->panel, a->depth);
  int64_t key = keys->first + at;
  bool edge = BAND && (key < q->all_from || key + rows > q->all_to);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      vec score = MASK ? vadd(sums[m][v], mask_of(a, q, key + m, v)) : sums[m][v];
      if (BAND && edge) score = in_band(a, q, score, key + m, v);
      top[v] = vmax_bound(score, top[v]);
      vstore(a->weights + (at + m) * WIDTH + v * LANES, score);
    }
  }
}

static void score_rows(const Attend *a, const Queries *q, const Keys *keys, vec *top, int64_t at, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) score_tile(a, q, keys, top, at, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) score_tile(a, q, keys, top, at, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) score_tile(a, q, keys, top, at, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) score_tile(a, q, keys, top, at, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) score_tile(a, q, keys, top, at, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) score_tile(a, q, keys, top, at, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) score_tile(a, q, keys, top, at, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) score_tile(a, q, keys, top, at, 8);
}

/* ---- weights ---- */

/* e^(score - shift), where no score is above the shift. */
SIMD_FUNCTION vec weight_of(vec score, vec shift) { return vexp2_shifted(vmul(vsub(score, shift), vlog2e())); }

/* Scores of keys begin .. end of a block become weights. change: what results so far are multiplied by. */
static void weigh(const Attend *a, Queries *q, const vec *top, int64_t begin, int64_t end, vec *change) {
  vec shift[VECTORS], sum[VECTORS];
  for (int v = 0; v < VECTORS; v++) {
    shift[v] = vselect(veq(top[v], vset(-__builtin_inff())), vzero(), top[v]);
    change[v] = weight_of(q->top[v], shift[v]);
    q->top[v] = top[v];
    sum[v] = vmul(q->sum[v], change[v]);
  }
  for (int64_t i = begin; i < end; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      float *at = a->weights + i * WIDTH + v * LANES;
      vec weight = weight_of(vload(at), shift[v]);
      sum[v] = vadd(sum[v], weight);
      vstore(at, weight);
    }
  }
  for (int v = 0; v < VECTORS; v++) q->sum[v] = sum[v];
}

/* ---- results ---- */

/* Columns first .. first + rows of V, for the block's keys begin .. end. */
SIMD_FUNCTION void result_tile(const Attend *a, const Queries *q, const Keys *keys, const vec *change, int64_t begin,
                               int64_t end, int64_t first, int rows) {
  PanelRow sums[PANEL_ROWS];
  float *tile = q->tile + first * WIDTH;
  bool more = BAND ? keys->first / KEYS > q->from / KEYS : keys->first > 0; /* than this block */
  panel_load_sums(sums, more ? tile : NULL, rows, VECTORS);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = vmul(sums[m][v], change[v]);
  }
  int64_t column = COPIES ? 1 : keys->v.column;
  panel_multiply(sums, rows, VECTORS, keys->v.data + begin * keys->v.row + first * column, column, keys->v.row,
                 a->weights + begin * WIDTH, end - begin);
  panel_store_sums(tile, sums, rows, VECTORS);
}

static void result_rows(const Attend *a, const Queries *q, const Keys *keys, const vec *change, int64_t begin,
                        int64_t end, int64_t first, int64_t rows) {
  if (MIN_OUT_ROWS <= 1 && 1 <= OUT_ROWS && rows == 1) result_tile(a, q, keys, change, begin, end, first, 1);
  if (MIN_OUT_ROWS <= 2 && 2 <= OUT_ROWS && rows == 2) result_tile(a, q, keys, change, begin, end, first, 2);
  if (MIN_OUT_ROWS <= 3 && 3 <= OUT_ROWS && rows == 3) result_tile(a, q, keys, change, begin, end, first, 3);
  if (MIN_OUT_ROWS <= 4 && 4 <= OUT_ROWS && rows == 4) result_tile(a, q, keys, change, begin, end, first, 4);
  if (MIN_OUT_ROWS <= 5 && 5 <= OUT_ROWS && rows == 5) result_tile(a, q, keys, change, begin, end, first, 5);
  if (MIN_OUT_ROWS <= 6 && 6 <= OUT_ROWS && rows == 6) result_tile(a, q, keys, change, begin, end, first, 6);
  if (MIN_OUT_ROWS <= 7 && 7 <= OUT_ROWS && rows == 7) result_tile(a, q, keys, change, begin, end, first, 7);
  if (MIN_OUT_ROWS <= 8 && 8 <= OUT_ROWS && rows == 8) result_tile(a, q, keys, change, begin, end, first, 8);
}

/* The results over the sums, from lanes to rows. */
static void store_results(const Attend *a, const Queries *q) {
  for (int v = 0; v < VECTORS; v++) {
    vec inverse = vdiv(vset(1.0f), q->sum[v]);
    vmask seeing = vgt(q->sum[v], vzero());
    for (int64_t e = 0; e < a->width; e++) {
      float *at = q->tile + e * WIDTH + v * LANES;
      vec result = vmul(vload(at), inverse);
      vstore(at, BLIND_ZERO ? vselect(seeing, result, vzero()) : result);
    }
  }
  transpose_floats(a->y + q->first * a->y_row, a->y_row, q->tile, WIDTH, a->width, q->count);
}

static void key_block(const Attend *a, Queries *q, const Keys *keys) {
  vec top[VECTORS], change[VECTORS];
  int64_t tiles = ceil_div(keys->count, ROWS), out_tiles = ceil_div(a->width, OUT_ROWS), begin = 0, end = keys->count;
  for (int v = 0; v < VECTORS; v++) top[v] = q->top[v];
  for (int64_t i = 0; i < tiles; i++) {
    int64_t at = i * keys->count / tiles, past = (i + 1) * keys->count / tiles;
    if (BAND && keys->first + past <= q->from) {
      begin = past;
    } else if (BAND && keys->first + at >= q->to) {
      end = at;
      break;
    } else {
      score_rows(a, q, keys, top, at, past - at);
    }
  }
  weigh(a, q, top, begin, end, change);
  for (int64_t i = 0; i < out_tiles; i++) {
    int64_t first = i * a->width / out_tiles;
    result_rows(a, q, keys, change, begin, end, first, (i + 1) * a->width / out_tiles - first);
  }
}

/* ---- blocks of queries ---- */

/* Which keys the block's queries see; the first of them sees one at least, or a tile is left that is hidden. */
static void find_band(const Attend *a, Queries *q) {
  int64_t last = q->first + q->count - 1, least = q->first % a->period, most = last % a->period;
  if (q->first / a->period != last / a->period) {
    least = 0;
    most = a->period - 1;
  }
  q->from = min_i64(max_i64(least + a->low, 0), a->keys - 1);
  q->to = max_i64(min_i64(most + a->high + 1, a->keys), q->from + 1);
  q->all_from = most + a->low;
  q->all_to = least + a->high + 1;
  for (int64_t lane = 0; lane < WIDTH; lane++) q->places[lane] = (float)((q->first + lane) % a->period);
}

/* Queries first .. first + count, as number `index` of the blocks in hand. */
static void begin_queries(const Attend *a, Queries *q, int64_t index, int64_t first, int64_t count) {
  q->first = first;
  q->count = count;
  q->panel = a->blocks + index * (a->depth + a->width) * WIDTH;
  q->tile = q->panel + a->depth * WIDTH;
  q->from = 0;
  q->to = a->keys;
  for (int v = 0; v < VECTORS; v++) {
    q->top[v] = vset(-__builtin_inff());
    q->sum[v] = vzero();
  }
  if (BAND) find_band(a, q);
  load_queries(a, q);
}

/* Floats from one row of a copy to the next: an odd number of the cache's lines, so that rows use all of its sets. */
static inline int64_t copied_row(int64_t columns) { return (ceil_div(columns, PANEL_LINE) | 1) * PANEL_LINE; }

/* Rows whose elements stand side by side; rows that lie far apart are fetched ahead. */
static void copy_close(float *restrict to, int64_t to_row, const float *restrict from, int64_t from_row, int64_t rows,
                       int64_t columns) {
  enum { ROWS_AHEAD = 8 };
  for (int64_t i = 0; i < rows; i++) {
    const float *ahead = from + min_i64(i + ROWS_AHEAD, rows - 1) * from_row, *p = from + i * from_row;
    float *copy = to + i * to_row;
    int64_t j = 0;
    for (; j < columns; j += PANEL_LINE) prefetch_later(ahead + j);
    for (j = 0; j + LANES <= columns; j += LANES) vstore(copy + j, vload(p + j));
    for (; j < columns; j++) copy[j] = p[j];
  }
}

static Operand copy_rows(float *to, Operand from, int64_t rows, int64_t columns) {
  int64_t row = copied_row(columns);
  if (from.column == 1) {
    copy_close(to, row, from.data, from.row, rows, columns);
  } else if (from.row == 1) {
    transpose_floats(to, row, from.data, from.column, columns, rows);
  } else {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) to[i * row + j] = from.data[i * from.row + j * from.column];
  }
  return (Operand){to, row, 1};
}

static Keys keys_at(const Attend *a, int64_t first) {
  Keys keys = {.k = a->k, .v = a->v, .first = first, .count = min_i64(KEYS, a->keys - first)};
  keys.k.data += first * a->k.row;
  keys.v.data += first * a->v.row;
  if (!COPIES) return keys;
  keys.k = copy_rows(a->copies, keys.k, keys.count, a->depth);
  keys.v = copy_rows(a->copies + KEYS * copied_row(a->depth), keys.v, keys.count, a->width);
  return keys;
}

/* The results of the blocks in hand, of which there are `count`. */
static void attend(const Attend *a, Queries *queries, int64_t count) {
  int64_t key = a->keys, end = 0;
  for (int64_t i = 0; i < count; i++) {
    key = min_i64(key, queries[i].from);
    end = max_i64(end, queries[i].to);
  }
  for (key = key / KEYS * KEYS; key < end; key += KEYS) {
    Keys keys = keys_at(a, key);
    for (int64_t i = 0; i < count; i++)
      if (!BAND || (queries[i].from < key + keys.count && key < queries[i].to)) key_block(a, &queries[i], &keys);
  }
  for (int64_t i = 0; i < count; i++) store_results(a, &queries[i]);
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

/* Blocks first .. end of the queries of one batch, of `blocks`. */
static void attend_blocks(const Attend *a, int64_t first, int64_t end, int64_t blocks) {
  Queries queries[QUERY_BLOCKS];
  int64_t turns = ceil_div(end - first, QUERY_BLOCKS);
  for (int64_t turn = 0; turn < turns; turn++) {
    int64_t item = first + turn * (end - first) / turns, past = first + (turn + 1) * (end - first) / turns, count = 0;
    for (; item < past; item++, count++) {
      int64_t block = item;
      if (BAND) block = item % 2 ? blocks - 1 - item / 2 : item / 2; /* so that equal shares see as many keys */
      int64_t query = block * a->queries / blocks;
      begin_queries(a, &queries[count], count, query, (block + 1) * a->queries / blocks - query);
    }
    attend(a, queries, count);
  }
}

/* scratch: `slots` workers' slots, `slot` floats apart: the weights, the copies if there are any, the blocks in hand.
 * Workers without one have nothing to do. No extent is zero. */
static void attention(const Team *team, const float *q, const float *k, const float *v, const float *mask, float *y,
                      float *scratch, float scale, int64_t queries, int64_t keys, int64_t depth, int64_t width,
                      int64_t q_row, int64_t q_column, int64_t k_row, int64_t k_column, int64_t v_row, int64_t v_column,
                      int64_t mask_row, int64_t mask_column, int64_t y_row, int64_t batch_rank,
                      const int64_t *batch_dims, const int64_t *strides, int64_t low, int64_t high, int64_t period,
                      int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), blocks = ceil_div(queries, WIDTH), batches = 1;
  if (team->rank >= workers) return;
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
                .weights = scratch + team->rank * slot};
  all.copies = all.weights + KEYS * WIDTH;
  all.blocks = all.copies + (COPIES ? KEYS * (copied_row(depth) + copied_row(width)) : 0);
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  int64_t item = share_begin(batches * blocks, team->rank, workers);
  int64_t end = share_begin(batches * blocks, team->rank + 1, workers);
  while (item < end) {
    Attend a = at_batch(&all, item / blocks, batch_rank, batch_dims, strides);
    int64_t first = item % blocks, past = min_i64(blocks, first + end - item);
    attend_blocks(&a, first, past, blocks);
    item += past - first;
  }
}
