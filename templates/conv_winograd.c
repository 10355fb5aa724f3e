/* SPDX-License-Identifier: MIT */
/*
 * Convolution of stride 1 by Winograd's minimal filtering (see winograd.h), such as F(4x4, 3x3), F(6x6, 3x3),
 * F(2x2, 5x5) or F(1x2, 1x7), on blocked tensors, [N][ceil(C / LANES)][H][W][LANES]:
 *
 *   y = epilogue(bias + x * w + residual), or the maxima of its windows of POOL x POOL, side by side
 *
 * The output is cut into tiles of TILE_H x TILE_W. A tile's input, EXTENT_H x EXTENT_W, becomes POINTS numbers a
 * channel; at each point, the tiles' numbers times the transformed weights, summed over the channels, are a matrix
 * product; its POINTS results a tile become the tile's outputs. Tiles are taken in blocks, whose transformed input and
 * whose products for one group of OC_VECTORS vectors of output channels stay in the second level of the cache.
 *
 *   transformed input    [point][part of the block][channel block][tile of the part][LANES]
 *   transformed weights  [group][point][channel][OC_VECTORS][LANES]
 *   products             [OC_VECTORS][point][tile of the block][LANES]
 *
 * A part is as many tiles as there are sums in registers for; a block's parts are of even size.
 *
 * Many tiles: each worker owns blocks. Few tiles, much weight: each owns groups of output channels, so that each weight
 * is read once, and transforms all of the input for itself (BY_GROUPS): that is little work, and lines of the cache
 * that another core has written or read are slow to come and slow to write again.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"
#include "winograd.h"

/* Outputs of a tile along each axis; 1 where the window is 1.
 * legal: 1 2 4 6 */
enum { TILE_H = 4 };
/* legal: 1 2 4 6 */
enum { TILE_W = 4 };
/* R and S. winograd.h supports the extents (tile + window - 1) 1, 4, 6 and 8.
 * legal: 1 3 5 7 */
enum { WINDOW_H = 3 };
/* legal: 1 3 5 7 */
enum { WINDOW_W = 3 };
/* legal: 1..268435456 */
enum { IN_H = 14 };
/* legal: 1..268435456 */
enum { IN_W = 14 };
/* legal: 1..268435456 */
enum { OUT_H = 14 };
/* legal: 1..268435456 */
enum { OUT_W = 14 };
/* Rows of zeros above the input.
 * legal: 0..6 */
enum { PAD_TOP = 1 };
/* legal: 0..6 */
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
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: adds residual, of y's shape, before the epilogue.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* An element of y is the maximum of POOL x POOL outputs. TILE_H and TILE_W are multiples of it; rows and columns of
 * outputs that are left over at the end are not used.
 * legal: 1 2 */
enum { POOL = 1 };
/* 1: extents of the plane are known only at run time, and with them the number of tiles.
 * legal: 0 1 */
enum { ANY_PLANE = 0 };

enum { EXTENT_H = TILE_H + WINDOW_H - 1, EXTENT_W = TILE_W + WINDOW_W - 1, POINTS = EXTENT_H * EXTENT_W };
enum { TILES_H = (OUT_H + TILE_H - 1) / TILE_H, TILES_W = (OUT_W + TILE_W - 1) / TILE_W };
enum { IMAGE_TILES = TILES_H * TILES_W };
enum { Y_H = OUT_H / POOL, Y_W = OUT_W / POOL, Y_TILE_H = TILE_H / POOL, Y_TILE_W = TILE_W / POOL };
enum { IN_PLANE = IN_H * IN_W * LANES, OUT_PLANE = OUT_H * OUT_W * LANES, Y_PLANE = Y_H * Y_W * LANES };
enum { LINE_FLOATS = 16 };

typedef struct Convolution {
  const float *x, *weights, *bias, *residual;
  float *y;
  float *input, *products; /* this worker's working memory */
  int64_t channels, kernels;
  int64_t channel_blocks, groups;
  int64_t x_image, residual_image, y_image; /* floats from one image to the next */
  int64_t input_point, product_point;       /* floats from one point to the next */
} Convolution;

/* Consecutive tiles of all images. */
typedef struct Block {
  int64_t first, tiles, parts;
  int64_t next_tiles; /* of this worker's next block */
} Block;

/* A tile among all images. */
typedef struct Place {
  int64_t image, row, column;
} Place;

/* hook: maps an element of the result; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

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

/* The input of a tile that reaches beyond the plane, with zeros there. row and column may be outside. */
static void copy_border(float *out, const float *plane, int64_t row, int64_t column) {
  for (int64_t h = row; h < row + EXTENT_H; h++)
    for (int64_t w = column; w < column + EXTENT_W; w++, out += LANES) {
      bool inside = h >= 0 && h < IN_H && w >= 0 && w < IN_W;
      vstore(out, inside ? vload(plane + (h * IN_W + w) * LANES) : vzero());
    }
}

/* LANES channels of one tile. `row`: floats from one row of the input to the next. */
SIMD_FUNCTION void transform_input(float *out, int64_t point, const float *in, int64_t row) {
  vec rows[EXTENT_H][EXTENT_W];
#pragma clang loop unroll(full)
  for (int h = 0; h < EXTENT_H; h++) {
    vec line[EXTENT_W];
#pragma clang loop unroll(full)
    for (int w = 0; w < EXTENT_W; w++) line[w] = vload(in + h * row + w * LANES);
    winograd_input(rows[h], line, EXTENT_W);
  }
#pragma clang loop unroll(full)
  for (int w = 0; w < EXTENT_W; w++) {
    vec line[EXTENT_H], points[EXTENT_H];
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++) line[h] = rows[h][w];
    winograd_input(points, line, EXTENT_H);
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++) vstore(out + (h * EXTENT_W + w) * point, points[h]);
  }
}

static void transform_tile(const Convolution *c, float *out, const float *plane, Place p) {
  _Alignas(64) float border[POINTS * LANES];
  int64_t row = p.row * TILE_H - PAD_TOP, column = p.column * TILE_W - PAD_LEFT;
  const float *in = plane + (row * IN_W + column) * LANES;
  int64_t in_row = IN_W * LANES;
  if (row < 0 || column < 0 || row + EXTENT_H > IN_H || column + EXTENT_W > IN_W) {
    copy_border(border, plane, row, column);
    in = border;
    in_row = EXTENT_W * LANES;
  }
  transform_input(out, c->input_point, in, in_row);
}

/* Channel block `at` of all tiles of the block. */
static void transform_channels(const Convolution *c, const Block *b, int64_t at) {
  Place p = place_of(b->first);
  for (int64_t part = 0; part < b->parts; part++) {
    int64_t begin = part_begin(b, part), tiles = part_begin(b, part + 1) - begin;
    float *out = c->input + (begin * c->channel_blocks + at * tiles) * LANES;
    for (int64_t i = 0; i < tiles; i++, p = next_place(p), out += LANES)
      transform_tile(c, out, c->x + p.image * c->x_image + at * IN_PLANE, p);
  }
}

/* ---- products ---- */

/* The lines of a channel's weights but the first: of few tiles there may be no other part that prefetches them. */
SIMD_FUNCTION const float *prefetch_rest(const float *ahead, int vectors) {
  for (int64_t i = LINE_FLOATS; i < vectors * LANES; i += LINE_FLOATS, ahead += LINE_FLOATS) prefetch_later(ahead);
  return ahead;
}

/* One part's sums over the channels at one point. Meanwhile prefetches from `ahead`, LINE_FLOATS a channel. */
SIMD_FUNCTION void multiply(vec sums[PART_TILES][OC_VECTORS], int tiles, int vectors, const float *in,
                            const float *weights, int64_t channels, const float *ahead) {
  for (int64_t left = channels; left > 0; left -= LANES) {
    int64_t depth = min_i64(left, LANES);
    for (int64_t k = 0; k < depth; k++) {
      vec w[OC_VECTORS];
      prefetch_later(ahead);
      ahead += LINE_FLOATS;
      if (ANY_PLANE) ahead = prefetch_rest(ahead, vectors);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) w[v] = vload(weights + v * LANES);
      weights += vectors * LANES;
#pragma clang loop unroll(full)
      for (int m = 0; m < tiles; m++) {
        vec x = vbroadcast_load(in + m * LANES + k);
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) sums[m][v] = vfma(sums[m][v], x, w[v]);
      }
    }
    in += tiles * LANES;
  }
}

/* products: of the part's first tile. */
SIMD_FUNCTION void product(const Convolution *c, float *products, const float *in, const float *weights, int tiles,
                           int vectors, const float *ahead) {
  vec sums[PART_TILES][OC_VECTORS];
#pragma clang loop unroll(full)
  for (int m = 0; m < tiles; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vzero();
  }
  multiply(sums, tiles, vectors, in, weights, c->channels, ahead);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < tiles; m++) vstore(products + v * POINTS * c->product_point + m * LANES, sums[m][v]);
  }
}

SIMD_FUNCTION void product_of_tiles(const Convolution *c, float *products, const float *in, const float *weights,
                                    int64_t tiles, int vectors, const float *ahead) {
  if (MIN_TILES <= 1 && 1 <= PART_TILES && tiles == 1) product(c, products, in, weights, 1, vectors, ahead);
  if (MIN_TILES <= 2 && 2 <= PART_TILES && tiles == 2) product(c, products, in, weights, 2, vectors, ahead);
  if (MIN_TILES <= 3 && 3 <= PART_TILES && tiles == 3) product(c, products, in, weights, 3, vectors, ahead);
  if (MIN_TILES <= 4 && 4 <= PART_TILES && tiles == 4) product(c, products, in, weights, 4, vectors, ahead);
  if (MIN_TILES <= 5 && 5 <= PART_TILES && tiles == 5) product(c, products, in, weights, 5, vectors, ahead);
  if (MIN_TILES <= 6 && 6 <= PART_TILES && tiles == 6) product(c, products, in, weights, 6, vectors, ahead);
  if (MIN_TILES <= 7 && 7 <= PART_TILES && tiles == 7) product(c, products, in, weights, 7, vectors, ahead);
  if (MIN_TILES <= 8 && 8 <= PART_TILES && tiles == 8) product(c, products, in, weights, 8, vectors, ahead);
  if (MIN_TILES <= 9 && 9 <= PART_TILES && tiles == 9) product(c, products, in, weights, 9, vectors, ahead);
  if (MIN_TILES <= 10 && 10 <= PART_TILES && tiles == 10) product(c, products, in, weights, 10, vectors, ahead);
  if (MIN_TILES <= 11 && 11 <= PART_TILES && tiles == 11) product(c, products, in, weights, 11, vectors, ahead);
  if (MIN_TILES <= 12 && 12 <= PART_TILES && tiles == 12) product(c, products, in, weights, 12, vectors, ahead);
  if (MIN_TILES <= 13 && 13 <= PART_TILES && tiles == 13) product(c, products, in, weights, 13, vectors, ahead);
  if (MIN_TILES <= 14 && 14 <= PART_TILES && tiles == 14) product(c, products, in, weights, 14, vectors, ahead);
}

static inline int64_t vectors_of(const Convolution *c, int64_t group) {
  return OC_TAIL > 0 && group + 1 == c->groups ? OC_TAIL : OC_VECTORS;
}

/* A group's products with all tiles of the block at one point. Each part prefetches its share of the next point's
 * weights.
 */
SIMD_FUNCTION void products_at(const Convolution *c, const Block *b, const float *weights, int point, int vectors) {
  const float *here = weights + point * c->channels * vectors * LANES;
  for (int64_t part = 0; part < b->parts; part++) {
    int64_t begin = part_begin(b, part), tiles = part_begin(b, part + 1) - begin;
    const float *in = c->input + point * c->input_point + begin * c->channel_blocks * LANES;
    const float *ahead = here + (c->channels * vectors * LANES) + part * c->channels * LINE_FLOATS;
    if (ANY_PLANE) ahead = here + c->channels * vectors * LANES;
    product_of_tiles(c, c->products + point * c->product_point + begin * LANES, in, here, tiles, vectors, ahead);
  }
}

/* ---- prefetching ---- */

static void fetch_tile(const float *at, int64_t row, int64_t rows, int64_t columns) {
  for (int64_t h = 0; h < rows; h++)
    for (int64_t w = 0; w < columns * LANES; w += LINE_FLOATS) prefetch_later(at + h * row + w);
}

/* Offset of a tile in a plane of y, in floats. */
static inline int64_t place_in_y(Place p) { return (p.row * Y_TILE_H * Y_W + p.column * Y_TILE_W) * LANES; }

/* During a group's products at one point, prefetches a share of the next block's input, and of the outputs that this
 * group will write, to L2. Prefetches beyond the plane are harmless. */
static void fetch_share(const Convolution *c, const Block *b, int64_t group, int point, int vectors) {
  int64_t at = c->channel_blocks * group / c->groups, last_at = c->channel_blocks * (group + 1) / c->groups;
  for (int64_t i = b->next_tiles * point / POINTS; i < b->next_tiles * (point + 1) / POINTS; i++) {
    Place p = place_of(b->first + b->tiles + i);
    const float *in = c->x + p.image * c->x_image + (p.row * TILE_H * IN_W + p.column * TILE_W) * LANES;
    for (int64_t k = at; k < last_at; k++) fetch_tile(in + k * IN_PLANE, IN_W * LANES, TILE_H, TILE_W);
  }
  for (int64_t i = b->tiles * point / POINTS; i < b->tiles * (point + 1) / POINTS; i++) {
    Place p = place_of(b->first + i);
    const float *out = c->y + p.image * c->y_image + place_in_y(p);
    for (int64_t v = 0; v < vectors; v++)
      fetch_tile(out + (group * OC_VECTORS + v) * Y_PLANE, Y_W * LANES, Y_TILE_H, Y_TILE_W);
  }
}

static void products_of(const Convolution *c, const Block *b, int64_t group) {
  const float *weights = c->weights + group * POINTS * c->channels * OC_VECTORS * LANES;
  for (int point = 0; point < POINTS; point++) {
    fetch_share(c, b, group, point, (int)vectors_of(c, group));
    if (OC_TAIL > 0 && group + 1 == c->groups)
      products_at(c, b, weights, point, OC_TAIL);
    else
      products_at(c, b, weights, point, OC_VECTORS);
  }
}

/* ---- output transform ---- */

/* A tile's outputs of LANES channels. The bias is added at the point 1 of both axes, which every output counts once. */
SIMD_FUNCTION void transform_output(vec out[TILE_H][TILE_W], const float *products, int64_t point, vec bias) {
  vec columns[TILE_H][EXTENT_W];
#pragma clang loop unroll(full)
  for (int w = 0; w < EXTENT_W; w++) {
    vec line[EXTENT_H], sums[TILE_H];
#pragma clang loop unroll(full)
    for (int h = 0; h < EXTENT_H; h++) line[h] = vload(products + (h * EXTENT_W + w) * point);
    if (BIAS && w == (EXTENT_W > 1)) line[EXTENT_H > 1] = vadd(line[EXTENT_H > 1], bias);
    winograd_output(sums, line, TILE_H, EXTENT_H);
#pragma clang loop unroll(full)
    for (int h = 0; h < TILE_H; h++) columns[h][w] = sums[h];
  }
#pragma clang loop unroll(full)
  for (int h = 0; h < TILE_H; h++) winograd_output(out[h], columns[h], TILE_W, EXTENT_W);
}

SIMD_FUNCTION vec finished(vec sum, const float *residual, int64_t h, int64_t w) {
  if (RESIDUAL) sum = vadd(sum, vload(residual + (h * OUT_W + w) * LANES));
  return epilogue(sum);
}

/* Element h, w of the tile in y. The same order, and so the same bits, as templates/pool_blocked.c. */
SIMD_FUNCTION void finish(float *y, const float *residual, vec out[TILE_H][TILE_W], int64_t h, int64_t w) {
  vec result = vzero();
#pragma clang loop unroll(full)
  for (int j = 0; j < POOL; j++) {
    vec column = vzero();
#pragma clang loop unroll(full)
    for (int i = 0; i < POOL; i++) {
      vec element = finished(out[h * POOL + i][w * POOL + j], residual, h * POOL + i, w * POOL + j);
      column = i == 0 ? element : vmax(column, element);
    }
    result = j == 0 ? column : vmax(result, column);
  }
  vstore(y + (h * Y_W + w) * LANES, result);
}

/* The same for a tile that reaches beyond the plane. */
static void finish_border(float *y, const float *residual, vec out[TILE_H][TILE_W], int64_t rows, int64_t columns) {
  for (int64_t h = 0; h < rows; h++)
    for (int64_t w = 0; w < columns; w++) finish(y, residual, out, h, w);
}

SIMD_FUNCTION void finish_whole(float *y, const float *residual, vec out[TILE_H][TILE_W]) {
#pragma clang loop unroll(full)
  for (int h = 0; h < Y_TILE_H; h++) {
#pragma clang loop unroll(full)
    for (int w = 0; w < Y_TILE_W; w++) finish(y, residual, out, h, w);
  }
}

/* LANES output channels, block `at` of y, of all tiles. */
static void output_channels(const Convolution *c, const Block *b, const float *products, int64_t at) {
  vec bias = vzero();
  if (BIAS) bias = vload_n(c->bias + at * LANES, (int)min_i64(LANES, c->kernels - at * LANES));
  Place p = place_of(b->first);
  for (int64_t i = 0; i < b->tiles; i++, p = next_place(p)) {
    vec out[TILE_H][TILE_W];
    int64_t row = p.row * TILE_H, column = p.column * TILE_W, first = at * OUT_PLANE + (row * OUT_W + column) * LANES;
    float *y = c->y + p.image * c->y_image + at * Y_PLANE + place_in_y(p);
    const float *residual = RESIDUAL ? c->residual + p.image * c->residual_image + first : NULL;
    transform_output(out, products + i * LANES, c->product_point, bias);
    if ((OUT_H % TILE_H && OUT_H - row < TILE_H) || (OUT_W % TILE_W && OUT_W - column < TILE_W))
      finish_border(y, residual, out, min_i64(TILE_H, OUT_H - row) / POOL, min_i64(TILE_W, OUT_W - column) / POOL);
    else
      finish_whole(y, residual, out);
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

/* x, residual, y: blocked by LANES; lanes past the last channel may have any value. scratch: a slot for each of
 * `slots` workers, `slot` floats apart: transformed input, POINTS * input_point floats, then products, OC_VECTORS *
 * POINTS * product_point. Workers past `slots` have nothing to do. input_point holds block_tiles tiles of all channel
 * blocks, product_point block_tiles vectors. */
static void conv_winograd(const Team *team, const float *x, const float *weights, const float *bias,
                          const float *residual, float *y, float *scratch, int64_t n, int64_t channels, int64_t kernels,
                          int64_t x_image, int64_t residual_image, int64_t y_image, int64_t block_tiles,
                          int64_t input_point, int64_t product_point, int64_t slots, int64_t slot) {
  int64_t tiles = n * IMAGE_TILES, blocks = ceil_div(tiles, block_tiles);
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  Convolution c = {.x = x,
                   .weights = weights,
                   .bias = bias,
                   .residual = residual,
                   .y = y,
                   .input = scratch + rank * slot,
                   .products = scratch + rank * slot + POINTS * input_point,
                   .channels = channels,
                   .kernels = kernels,
                   .channel_blocks = ceil_div(channels, LANES),
                   .groups = ceil_div(kernels, OC_VECTORS * LANES),
                   .x_image = x_image,
                   .residual_image = residual_image,
                   .y_image = y_image,
                   .input_point = input_point,
                   .product_point = product_point};
  int64_t block = 0, last_block = blocks, group = 0, last_group = c.groups;
  share_of(team, workers, BY_GROUPS ? c.groups : blocks, BY_GROUPS ? &group : &block,
           BY_GROUPS ? &last_group : &last_block);
  for (; block < last_block && group < last_group; block++) {
    Block b = block_at(block, blocks, tiles);
    if (block + 1 < last_block) b.next_tiles = block_at(block + 1, blocks, tiles).tiles;
    run_block(&c, &b, group, last_group);
  }
}
