/* SPDX-License-Identifier: MIT */
/* A part of the templates of depthwise convolution: the extents of planes and windows, the tiles of an output row. */

/* legal: 1..268435456 */
enum { IN_H = 8 };
/* legal: 1..268435456 */
enum { IN_W = 8 };
/* legal: 1..268435456 */
enum { OUT_H = 8 };
/* legal: 1..268435456 */
enum { OUT_W = 8 };
/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..64 */
enum { WINDOW_W = 3 };
/* legal: 1..65536 */
enum { STRIDE_H = 1 };
/* legal: 1..65536 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* Rows of padding before the input.
 * legal: 0..1048576 */
enum { PAD_TOP = 1 };
/* Columns of padding before the input.
 * legal: 0..1048576 */
enum { PAD_LEFT = 1 };
/* Pixels of a tile.
 * legal: 1..16 */
enum { COLUMNS = 4 };

/* Whole tiles of a row, and the columns left over. */
enum { TILES = OUT_W / COLUMNS, TAIL = OUT_W % COLUMNS };
/* Input columns from one tile to the next, and of a tile. */
enum { TILE_STEP = COLUMNS * STRIDE_W, TILE_REACH = (COLUMNS - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W + 1 };
/* Tiles LEFT_TILES..INSIDE_END-1 read no padding. */
enum { LEFT_ALL = (PAD_LEFT + TILE_STEP - 1) / TILE_STEP, LEFT_TILES = LEFT_ALL < TILES ? LEFT_ALL : TILES };
enum { ROOM = IN_W + PAD_LEFT - TILE_REACH, INSIDE_ALL = ROOM < 0 ? 0 : ROOM / TILE_STEP + 1 };
enum { INSIDE_MOST = INSIDE_ALL < TILES ? INSIDE_ALL : TILES };
enum { INSIDE_END = INSIDE_MOST > LEFT_TILES ? INSIDE_MOST : LEFT_TILES };
