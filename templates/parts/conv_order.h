/* SPDX-License-Identifier: MIT */
/* A part of conv_direct.c and conv_transposed_blocked.c: the order (chunk of oc groups, image, chunk of tiles, oc
 * group, tile). */
/* The run that begins at item `item` of the order, and ends with its chunk of tiles or at item `end`. */
static Run run_at(const Conv *c, int64_t item, int64_t end) {
  int64_t in_groups = c->group_chunk * c->n * TILES, first_group = item / in_groups * c->group_chunk;
  int64_t groups = min_i64(c->group_chunk, c->oc_groups - first_group), rest = item % in_groups;
  Run run = {.image = rest / (groups * TILES)};
  rest %= groups * TILES;
  run.chunk = rest / (groups * c->tile_chunk) * c->tile_chunk;
  rest -= run.chunk * groups;
  int64_t tiles = min_i64(c->tile_chunk, TILES - run.chunk);
  run.oc_group = first_group + rest / tiles;
  run.begin = run.chunk + rest % tiles;
  run.end = min_i64(run.chunk + tiles, run.begin + end - item);
  return run;
}
