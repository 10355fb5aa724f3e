/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers that are trained, after their finish_panel(): the ends of a panel's step,
 * for each direction, which may have activations of its own, and each half of a step. Each is a function of its own.
 */

static __attribute__((noinline)) void finish_first(const Layer *l, int64_t step, int64_t panel, const float *tile,
                                                   bool half) {
  if (CELL == CELL_GRU_BEFORE && half)
    finish_panel(l, step, panel, tile, 0, true);
  else
    finish_panel(l, step, panel, tile, 0, false);
}

static __attribute__((noinline)) void finish_second(const Layer *l, int64_t step, int64_t panel, const float *tile,
                                                    bool half) {
  if (CELL == CELL_GRU_BEFORE && half)
    finish_panel(l, step, panel, tile, 1, true);
  else
    finish_panel(l, step, panel, tile, 1, false);
}

static void finish(const Layer *l, int64_t step, int64_t panel, const float *tile, bool half) {
  if (l->direction == 1)
    finish_second(l, step, panel, tile, half);
  else
    finish_first(l, step, panel, tile, half);
}

/* Panel number i of a worker's at a step, forwards on even steps and backwards on odd ones; and the one after it, or
 * the last one again. */
static inline int64_t panel_of(const Share *s, int64_t step, int64_t i) {
  return step & 1 ? s->panel + s->panel_end - 1 - i : i;
}
static inline int64_t panel_after(const Share *s, int64_t step, int64_t panel) {
  return step & 1 ? max_i64(panel - 1, s->panel) : min_i64(panel + 1, s->panel_end - 1);
}
