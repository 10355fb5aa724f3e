/* SPDX-License-Identifier: MIT */
/* A part of the templates of windows over blocked tensors: tiles of COLUMNS pixels of an output row. */

/* Whole tiles of a row, and the columns left over. */
enum { TILES = OUT_W / COLUMNS, TAIL = OUT_W % COLUMNS };
/* Input columns from one tile to the next, and of a tile. */
enum { TILE_STEP = COLUMNS * STRIDE_W, TILE_REACH = (COLUMNS - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W + 1 };
/* Tiles LEFT_TILES..INSIDE_END-1 read no padding. */
enum { LEFT_ALL = (PAD_LEFT + TILE_STEP - 1) / TILE_STEP, LEFT_TILES = LEFT_ALL < TILES ? LEFT_ALL : TILES };
enum { ROOM = IN_W + PAD_LEFT - TILE_REACH, INSIDE_ALL = ROOM < 0 ? 0 : ROOM / TILE_STEP + 1 };
enum { INSIDE_MOST = INSIDE_ALL < TILES ? INSIDE_ALL : TILES };
enum { INSIDE_END = INSIDE_MOST > LEFT_TILES ? INSIDE_MOST : LEFT_TILES };
