/* SPDX-License-Identifier: MIT */
/*
 * Convolution of quantised tensors of stride 1 by Winograd's minimal filtering in integers (winograd_int8.h), with
 * bytes blocked by channels, [N][ceil(C / LANES)][H][W][LANES]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero), as templates/conv_direct_int8.c computes it, bit for bit.
 *
 * Tiles, blocks of them, parts of a block, and workers are those of templates/conv_winograd.c. Transformed inputs and
 * weights are of 16 bits, two channels to a lane, and their products are added up in i32, modulo 2^32. What comes out
 * are the sums times 3^i 2^j: the odd factor is divided out by its inverse modulo 2^32, and what is left, shifted to
 * the right, is the sum, where that has 32 - j bits at most: the compiler proves it of each layer.
 *
 *   transformed input    [point][part of the block][channel block][tile of the part][LANES], s16
 *   transformed weights  [point of a row of points][pair of channels][OC_VECTORS][LANES][2], s16
 *   products             [OC_VECTORS][point][tile of the block][LANES], i32
 *
 * Weights are bytes in memory, [group][pair of channels][R][S][OC_VECTORS][LANES][2]. They are transformed for each
 * block of tiles, a group and a row of points at a time, so that they stay in the second level of the cache.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/simd.h"
#include "winograd_int8.h"

/* Outputs of a tile along each axis; 1 where the window is 1.
 * legal: 1 2 4 */
enum { TILE_H = 4 };
/* legal: 1 2 4 */
enum { TILE_W = 4 };
/* R and S.
 * legal: 1 3 */
enum { WINDOW_H = 3 };
/* legal: 1 3 */
enum { WINDOW_W = 3 };
/* legal: 1..268435456 */
enum { IN_H = 14 };
/* legal: 1..268435456 */
enum { IN_W = 14 };
/* legal: 1..268435456 */
enum { OUT_H = 14 };
/* legal: 1..268435456 */
enum { OUT_W = 14 };
/* Rows of padding above the input.
 * legal: 0..2 */
enum { PAD_TOP = 1 };
/* legal: 0..2 */
enum { PAD_LEFT = 1 };
/* Vectors of output channels in a group.
 * legal: 1..4 */
enum { OC_VECTORS = 2 };
/* Vectors of the last group, if fewer; else 0.
 * legal: 0..3 */
enum { OC_TAIL = 0 };
/* Maximum tiles of a part: PART_TILES * OC_VECTORS sums are in registers.
 * legal: 1..14 */
enum { PART_TILES = 6 };
/* Minimum tiles of a part.
 * legal: 1..14 */
enum { MIN_TILES = 1 };
/* 1: workers own groups of output channels; 0: blocks of tiles.
 * legal: 0 1 */
enum { BY_GROUPS = 0 };
/* x is of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_X = 0 };
/* y and the residual are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_Y = 0 };
/* 1: y is bounded before it is rounded: what it rounds to may exceed i32.
 * legal: 0 1 */
enum { BOUNDS = 0 };
/* What becomes of y: nothing; or it is taken to another scale, by factors or divided (requantise.h).
 * legal: 0..2 */
enum { STEP = 0 };
/* 1: STEP adds residual, of y's shape.
 * legal: 0 1 */
enum { RESIDUAL = 0 };

enum { EXTENT_H = TILE_H + WINDOW_H - 1, EXTENT_W = TILE_W + WINDOW_W - 1, POINTS = EXTENT_H * EXTENT_W };
enum { TILES_H = (OUT_H + TILE_H - 1) / TILE_H, TILES_W = (OUT_W + TILE_W - 1) / TILE_W };
enum { IMAGE_TILES = TILES_H * TILES_W };
enum { IN_PLANE = IN_H * IN_W * LANES, OUT_PLANE = OUT_H * OUT_W * LANES };
enum { TAPS = WINDOW_H * WINDOW_W, BLOCK_PAIRS = LANES / 2 };
enum { SHIFT = WINOGRAD_TWOS(EXTENT_H) + WINOGRAD_TWOS(EXTENT_W) };
enum { LINE = 64, LINES_A_PAIR = (TAPS * OC_VECTORS * LANES * 2 + LINE - 1) / LINE };

typedef struct Convolution {
  const uint8_t *x, *residual;
  const int8_t *w;
  const int32_t *start;
  const float *scale;
  uint8_t *y;
  Finish finish;
  int16_t *input, *weights; /* this worker's working memory */
  int32_t *products;
  int x_zero;
  int64_t pairs, channel_blocks, groups;
  int64_t x_image, residual_image, y_image; /* bytes from one image to the next */
  int64_t input_point, product_point;       /* numbers from one point to the next */
} Convolution;

/* Consecutive tiles of all images. */
typedef struct Block {
  int64_t first, tiles, parts;
} Block;

/* A tile among all images. */
typedef struct Place {
  int64_t image, row, column;
} Place;

static Place place_of(int64_t tile) {
  int64_t in_image = tile % IMAGE_TILES;
  return (Place){tile / IMAGE_TILES, in_image / TILES_W, in_image % TILES_W};
}

static Place next_place(Place p) {
  if (++p.column < TILES_W) return p;
  p.column = 0;
  if (++p.row < TILES_H) return p;
  p.row = 0;
  p.image++;
  return p;
}

/* The first tile of a part; the end for the one past the last. */
static inline int64_t part_begin(const Block *b, int64_t part) { return b->tiles * part / b->parts; }

/* ---- input transform ---- */

/* The input of a tile; `row`: bytes from one row of it to the next. */
typedef struct Source {
  const uint8_t *at;
  int64_t row;
} Source;

/* The input of a tile that reaches beyond the plane, with the zero point there. row and column may be outside. */
static void copy_border(const Convolution *c, uint8_t *out, const uint8_t *plane, int64_t row, int64_t column) {
  const int64_t first = max_i64(0, -column), end = min_i64(EXTENT_W, IN_W - column);
  __builtin_memset(out, c->x_zero, POINTS * LANES);
  for (int64_t h = max_i64(0, -row); h < min_i64(EXTENT_H, IN_H - row); h++)
    for (int64_t w = first; w < end; w++)
      __builtin_memcpy(out + (h * EXTENT_W + w) * LANES, plane + ((row + h) * IN_W + column + w) * LANES, LANES);
}

static Source source_of(const Convolution *c, int64_t block, Place p, uint8_t *border) {
  const uint8_t *plane = c->x + p.image * c->x_image + block * IN_PLANE;
  int64_t row = p.row * TILE_H - PAD_TOP, column = p.column * TILE_W - PAD_LEFT;
  if (row >= 0 && column >= 0 && row + EXTENT_H <= IN_H && column + EXTENT_W <= IN_W)
    return (Source){plane + (row * IN_W + column) * LANES, IN_W * LANES};
  copy_border(c, border, plane, row, column);
  return (Source){border, EXTENT_W * LANES};
}

/* LANES channels of two tiles that are neighbours in `out`, or, !both, of one, which is both. */
SIMD_FUNCTION void transform_input(int16_t *out, int64_t point, Source a, Source b, bool both) {
  vint rows[EXTENT_H][EXTENT_W];
#pragma clang loop unroll(full)
  for (int w = 0; w < EXTENT_W; w++) {
    vint line[EXTENT_H], points[EXTENT_H];
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++)
      line[h] = vpair_inputs(a.at + h * a.row + w * LANES, b.at + h * b.row + w * LANES, SIGNED_X);
    winograd_pairs_input(points, line, EXTENT_H);
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++) rows[h][w] = points[h];
  }
#pragma clang loop unroll(full)
  for (int h = 0; h < EXTENT_H; h++) {
    vint points[EXTENT_W];
    winograd_pairs_input(points, rows[h], EXTENT_W);
#pragma clang loop unroll(full)
    for (int w = 0; w < EXTENT_W; w++) {
      int16_t *at = out + (h * EXTENT_W + w) * point;
      if (both)
        vint_store(at, points[w]);
      else
        vpair_store_first(at, points[w]);
    }
  }
}

/* Channel block `at` of all tiles of the block. */
static void transform_channels(const Convolution *c, const Block *b, int64_t at) {
  _Alignas(64) uint8_t borders[2][POINTS * LANES];
  Place p = place_of(b->first);
  for (int64_t part = 0; part < b->parts; part++) {
    int64_t begin = part_begin(b, part), tiles = part_begin(b, part + 1) - begin;
    int16_t *out = c->input + (begin * c->channel_blocks + at * tiles) * LANES;
    for (int64_t i = 0; i + 1 < tiles; i += 2, out += 2 * LANES) {
      Source first = source_of(c, at, p, borders[0]);
      p = next_place(p);
      transform_input(out, c->input_point, first, source_of(c, at, p, borders[1]), true);
      p = next_place(p);
    }
    if (tiles % 2 == 0) continue;
    Source last = source_of(c, at, p, borders[0]);
    transform_input(out, c->input_point, last, last, false);
    p = next_place(p);
  }
}

/* ---- weight transform ---- */

/* A vector of output channels of a pair of channels, at the points of row h. */
SIMD_FUNCTION void transform_weight(int16_t *out, int64_t point, const int8_t *in, int64_t tap, int h) {
  vint taps[WINDOW_W];
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) {
    vint column[WINDOW_H];
#pragma clang loop unroll(full)
    for (int r = 0; r < WINDOW_H; r++) column[r] = vpair_weights(in + (r * WINDOW_W + s) * tap);
    taps[s] = winograd_pairs_tap(column, EXTENT_H, h);
  }
#pragma clang loop unroll(full)
  for (int w = 0; w < EXTENT_W; w++) vint_store(out + w * point, winograd_pairs_tap(taps, EXTENT_W, w));
}

/* A group's weights at the points of row h. */
SIMD_FUNCTION void transform_weights(const Convolution *c, const int8_t *in, int h, int vectors) {
  int64_t tap = vectors * LANES * 2, point = c->pairs * tap;
  int16_t *out = c->weights;
  for (int64_t pair = 0; pair < c->pairs; pair++, in += TAPS * tap, out += tap) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) transform_weight(out + v * LANES * 2, point, in + v * LANES * 2, tap, h);
  }
}

/* ---- products ---- */

/* One part's sums over the channels at one point. Meanwhile prefetches from `ahead`, `stride` bytes a pair. */
SIMD_FUNCTION void multiply(vint sums[PART_TILES][OC_VECTORS], int tiles, int vectors, const int16_t *in,
                            const int16_t *weights, int64_t pairs, const int8_t *ahead, int64_t stride) {
  for (int64_t left = pairs; left > 0; left -= BLOCK_PAIRS) {
    int64_t depth = min_i64(left, BLOCK_PAIRS);
    for (int64_t k = 0; k < depth; k++) {
      vint w[OC_VECTORS];
      prefetch_later(ahead);
      ahead += stride;
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) w[v] = vint_load(weights + v * LANES * 2);
      weights += vectors * LANES * 2;
#pragma clang loop unroll(full)
      for (int m = 0; m < tiles; m++) {
        vint x = vint_set((int)*(const bits32 *)(in + m * LANES + k * 2));
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) sums[m][v] = vpair_dot(sums[m][v], x, w[v]);
      }
    }
    in += tiles * LANES;
  }
}

/* products: of the part's first tile. */
SIMD_FUNCTION void product(const Convolution *c, int32_t *products, const int16_t *in, const int16_t *weights,
                           int tiles, int vectors, const int8_t *ahead, int64_t stride) {
  vint sums[PART_TILES][OC_VECTORS];
#pragma clang loop unroll(full)
  for (int m = 0; m < tiles; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vint_zero();
  }
  multiply(sums, tiles, vectors, in, weights, c->pairs, ahead, stride);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < tiles; m++) vint_store(products + v * POINTS * c->product_point + m * LANES, sums[m][v]);
  }
}

SIMD_FUNCTION void product_of_tiles(const Convolution *c, int32_t *products, const int16_t *in, const int16_t *weights,
                                    int64_t tiles, int vectors, const int8_t *ahead, int64_t stride) {
#pragma clang loop unroll(full)
  for (int m = MIN_TILES; m <= PART_TILES; m++)
    if (tiles == m) product(c, products, in, weights, m, vectors, ahead, stride);
}

/* A group's products with all tiles of the block at one point. The first part of the first points prefetches the next
 * group's weights. */
SIMD_FUNCTION void products_at(const Convolution *c, const Block *b, const int16_t *weights, const int8_t *next,
                               int point, int vectors) {
  const int8_t *ahead = next + point * c->pairs * LINE;
  for (int64_t part = 0; part < b->parts; part++) {
    int64_t begin = part_begin(b, part), tiles = part_begin(b, part + 1) - begin;
    const int16_t *in = c->input + point * c->input_point + begin * c->channel_blocks * LANES;
    int32_t *products = c->products + point * c->product_point + begin * LANES;
    product_of_tiles(c, products, in, weights, tiles, vectors, ahead, part == 0 && point < LINES_A_PAIR ? LINE : 0);
  }
}

static inline int64_t vectors_of(const Convolution *c, int64_t group) {
  return OC_TAIL > 0 && group + 1 == c->groups ? OC_TAIL : OC_VECTORS;
}

/* Not inlined: clang would keep numbers of all points at once. */
static __attribute__((noinline)) void products_of_row(const Convolution *c, const Block *b, const int8_t *next, int h,
                                                      bool is_tail) {
  int64_t point = c->pairs * (is_tail ? OC_TAIL : OC_VECTORS) * LANES * 2;
  for (int w = 0; w < EXTENT_W; w++) {
    if (OC_TAIL > 0 && is_tail)
      products_at(c, b, c->weights + w * point, next, h * EXTENT_W + w, OC_TAIL);
    else
      products_at(c, b, c->weights + w * point, next, h * EXTENT_W + w, OC_VECTORS);
  }
}

static void products_of(const Convolution *c, const Block *b, int64_t group) {
  const int8_t *w = c->w + group * c->pairs * TAPS * OC_VECTORS * LANES * 2;
  bool is_tail = vectors_of(c, group) < OC_VECTORS;
#pragma clang loop unroll(full)
  for (int h = 0; h < EXTENT_H; h++) {
    if (OC_TAIL > 0 && is_tail)
      transform_weights(c, w, h, OC_TAIL);
    else
      transform_weights(c, w, h, OC_VECTORS);
    products_of_row(c, b, w + c->pairs * TAPS * OC_VECTORS * LANES * 2, h, is_tail);
  }
}

/* ---- output transform ---- */

/* A tile's sums of LANES channels, without their start, times 2^SHIFT. */
SIMD_FUNCTION void transform_output(vint out[TILE_H][TILE_W], const int32_t *products, int64_t point) {
  vint columns[TILE_H][EXTENT_W];
#pragma clang loop unroll(full)
  for (int w = 0; w < EXTENT_W; w++) {
    vint line[EXTENT_H], sums[TILE_H];
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++) line[h] = vint_load(products + (h * EXTENT_W + w) * point);
    winograd_sums_output(sums, line, EXTENT_H);
#pragma clang loop unroll(full)
    for (int h = 0; h < TILE_H; h++) columns[h][w] = sums[h];
  }
#pragma clang loop unroll(full)
  for (int h = 0; h < TILE_H; h++) winograd_sums_output(out[h], columns[h], EXTENT_W);
}

/* The inverse of the odd factor of the scales of both axes, modulo 2^32. */
SIMD_FUNCTION vint without_odd_factor(vint v) {
  const unsigned third = (unsigned)WINOGRAD_THIRD;
  const unsigned inverse = (EXTENT_H == 6 ? third : 1) * (EXTENT_W == 6 ? third : 1);
  return inverse == 1 ? v : vint_mul(v, vint_set((int)inverse));
}

/* What a vector of output channels has of its own. */
typedef struct Channels {
  vint start; /* times 2^SHIFT */
  vec scale;
} Channels;

SIMD_FUNCTION vec scaled(vint sum, const Channels *channels) {
  sum = vint_shift_right(vint_add(without_odd_factor(sum), channels->start), SHIFT);
  return vmul(vint_to_float(sum), channels->scale);
}

SIMD_FUNCTION void finish_whole(uint8_t *y, const uint8_t *residual, vint out[TILE_H][TILE_W], const Channels *channels,
                                const Finish *f) {
  enum { COUNT = TILE_W == 4 ? 4 : 1 };
#pragma clang loop unroll(full)
  for (int h = 0; h < TILE_H; h++) {
    vec row[TILE_W];
#pragma clang loop unroll(full)
    for (int w = 0; w < TILE_W; w++) row[w] = scaled(out[h][w], channels);
#pragma clang loop unroll(full)
    for (int w = 0; w < TILE_W; w += COUNT) {
      int64_t at = (h * OUT_W + w) * LANES;
      requantise(&row[w], COUNT, RESIDUAL ? residual + at : NULL, y + at, STEP, BOUNDS, SIGNED_Y, f);
    }
  }
}

/* Of a tile that reaches beyond the plane. */
static void finish_border(uint8_t *y, const uint8_t *residual, vint out[TILE_H][TILE_W], const Channels *channels,
                          const Finish *f, int64_t rows, int64_t columns) {
  for (int64_t h = 0; h < rows; h++)
    for (int64_t w = 0; w < columns; w++) {
      const vec one = scaled(out[h][w], channels);
      int64_t at = (h * OUT_W + w) * LANES;
      requantise(&one, 1, RESIDUAL ? residual + at : NULL, y + at, STEP, BOUNDS, SIGNED_Y, f);
    }
}

/* LANES output channels, block `at` of y, of all tiles. */
static void output_channels(const Convolution *c, const Block *b, const int32_t *products, int64_t at) {
  const Finish f = c->finish; /* bytes that are stored may be anything in memory */
  const Channels channels = {vint_shift(vint_load(c->start + at * LANES), SHIFT), vload(c->scale + at * LANES)};
  Place p = place_of(b->first);
  for (int64_t i = 0; i < b->tiles; i++, p = next_place(p)) {
    vint out[TILE_H][TILE_W];
    int64_t row = p.row * TILE_H, column = p.column * TILE_W, first = at * OUT_PLANE + (row * OUT_W + column) * LANES;
    uint8_t *y = c->y + p.image * c->y_image + first;
    const uint8_t *residual = RESIDUAL ? c->residual + p.image * c->residual_image + first : NULL;
    transform_output(out, products + i * LANES, c->product_point);
    if ((OUT_H % TILE_H && OUT_H - row < TILE_H) || (OUT_W % TILE_W && OUT_W - column < TILE_W))
      finish_border(y, residual, out, &channels, &f, min_i64(TILE_H, OUT_H - row), min_i64(TILE_W, OUT_W - column));
    else
      finish_whole(y, residual, out, &channels, &f);
  }
}

static void output_group(const Convolution *c, const Block *b, int64_t group) {
  products_of(c, b, group);
  for (int64_t v = 0; v < vectors_of(c, group); v++)
    output_channels(c, b, c->products + v * POINTS * c->product_point, group * OC_VECTORS + v);
}

/* ---- partitions ---- */

/* This worker's share of n items, which the first `workers` workers divide; it is empty for others. */
static void share_of(const Team *team, int64_t workers, int64_t n, int64_t *begin, int64_t *end) {
  *begin = n * min_i64(team->rank, workers) / workers;
  *end = n * min_i64(team->rank + 1, workers) / workers;
}

static Block block_at(int64_t index, int64_t blocks, int64_t tiles) {
  Block b = {.first = index * tiles / blocks};
  b.tiles = (index + 1) * tiles / blocks - b.first;
  b.parts = ceil_div(b.tiles, PART_TILES);
  return b;
}

static void run_block(const Convolution *c, const Block *b, int64_t group, int64_t end) {
  for (int64_t at = 0; at < c->channel_blocks; at++) transform_channels(c, b, at);
  for (; group < end; group++) output_group(c, b, group);
}

/* x, residual, y: blocked by LANES; lanes past the last channel may have any value, and multiply weights of zero.
 * start, scale: whole blocks. x_zero: as a byte of x. finish: the fields of Finish, in order. scratch: a slot for each
 * of `slots` workers, `slot` words of four bytes apart: transformed input, POINTS * input_point words, products,
 * OC_VECTORS * POINTS * product_point, and transformed weights. Workers past `slots` have nothing to do. input_point
 * holds block_tiles tiles of all channel blocks, product_point block_tiles vectors. */
static void conv_winograd_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                               const float *scale, const uint8_t *residual, uint8_t *y, const float *finish,
                               int32_t *scratch, int64_t n, int64_t x_image, int64_t residual_image, int64_t y_image,
                               int64_t x_zero, int64_t channels, int64_t kernels, int64_t block_tiles,
                               int64_t input_point, int64_t product_point, int64_t slots, int64_t slot) {
  int64_t tiles = n * IMAGE_TILES, blocks = ceil_div(tiles, block_tiles);
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  int32_t *own = scratch + rank * slot;
  Convolution c = {.x = x,
                   .residual = residual,
                   .w = w,
                   .start = start,
                   .scale = scale,
                   .y = y,
                   .finish = finish_of(finish),
                   .input = (int16_t *)own,
                   .products = own + POINTS * input_point,
                   .weights = (int16_t *)(own + POINTS * (input_point + OC_VECTORS * product_point)),
                   .x_zero = (int)x_zero,
                   .pairs = ceil_div(channels, 2),
                   .channel_blocks = ceil_div(channels, LANES),
                   .groups = ceil_div(kernels, OC_VECTORS * LANES),
                   .x_image = x_image,
                   .residual_image = residual_image,
                   .y_image = y_image,
                   .input_point = 2 * input_point,
                   .product_point = product_point};
  int64_t block = 0, last_block = blocks, group = 0, last_group = c.groups;
  share_of(team, workers, BY_GROUPS ? c.groups : blocks, BY_GROUPS ? &group : &block,
           BY_GROUPS ? &last_group : &last_block);
  for (; block < last_block && group < last_group; block++) {
    Block b = block_at(block, blocks, tiles);
    run_block(&c, &b, group, last_group);
  }
}
