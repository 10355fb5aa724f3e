/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers that are trained, forward and backward: the knobs, extents and places
 * that they have in common, and the share of a worker. A row is a sample at a time, in the order in which X has them.
 */
#include "kernel.h"
#include "knobs.h"
#include "panel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* CELL_LSTM, ...
 * legal: 0..3 */
enum { CELL = CELL_LSTM };
/* Vectors of units in a panel.
 * legal: 1 2 3 4 */
enum { UNIT_VECTORS = 1 };
/* A panel of weights comes in so many parts, [depth][PART_VECTORS][LANES] each, and a part is multiplied by all rows
 * before the next: with few registers a part has more rows, so its loads feed more multiply-adds.
 * legal: 1 2 3 */
enum { PANEL_PARTS = 1 };
/* Maximum rows of a block of a panel's product.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum rows of a block: where B is known, its blocks have one of two heights.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* Steps of a product's depth that all blocks of rows use, one after the other, before the next ones.
 * legal: 16..1048576 */
enum { DEPTH_BLOCK = 128 };
/* Maximum workers that share a direction.
 * legal: 1..1024 */
enum { WORKERS = 1024 };
/* How many of them share the samples; each of these shares has its own workers for the panels.
 * legal: 1..1024 */
enum { BATCH_PARTS = 1 };
/* 1: LSTM's forget gate is 1 - input gate.
 * legal: 0 1 */
enum { INPUT_FORGET = 0 };
/* 1: LSTM's gates see the cell state, through `peepholes`.
 * legal: 0 1 */
enum { PEEPHOLES = 0 };
/* Type of a sequence's length.
 * legal: int32_t int64_t */
typedef int32_t Length;

enum { GATES = CELL == CELL_RNN ? 1 : CELL == CELL_LSTM ? 4 : 3 };
/* Numbers of a unit in S: its gates, then a cell or a reset part. */
enum { SAVED = GATES > 1 ? GATES + 1 : 1 };
enum { PANEL_UNITS = UNIT_VECTORS * LANES };

typedef struct Extents {
  int64_t steps, batch, hidden, directions; /* T, B, H, D */
  const Length *lengths;                    /* [B], or NULL: all are T */
  bool reverse, batch_first;                /* reverse: the only direction is the reverse one */
} Extents;

/* Clamped, so that a length out of range does no harm here. It is reported elsewhere. */
static inline int64_t length_of(const Extents *e, int64_t sample) {
  if (!e->lengths) return e->steps;
  return max_i64(0, min_i64(e->lengths[sample], e->steps));
}

/* Where in time a sample is at a step. Steps past its length fall on the times past its length. */
static inline int64_t time_of(const Extents *e, int64_t direction, int64_t step, int64_t length) {
  return (direction == 1 || e->reverse) && step < length ? length - 1 - step : step;
}

/* Places of a row and of a direction in it, in units: of X, S and the gates' gradients; of Y; of a state. */
static inline int64_t row_at(const Extents *e, int64_t time, int64_t sample) {
  return e->batch_first ? sample * e->steps + time : time * e->batch + sample;
}
static inline int64_t output_at(const Extents *e, int64_t direction, int64_t time, int64_t sample) {
  int64_t row = e->batch_first ? (sample * e->steps + time) * e->directions + direction
                               : (time * e->directions + direction) * e->batch + sample;
  return row * e->hidden;
}
static inline int64_t state_at(const Extents *e, int64_t direction, int64_t sample) {
  return (e->batch_first ? sample * e->directions + direction : direction * e->batch + sample) * e->hidden;
}

/* What ends a step reads a line here and there, which no cache foresees: so each sample's are fetched so many samples
 * before its turn. */
enum { SAMPLES_AHEAD = 4 };
static inline void fetch_units(const float *units) {
  for (int64_t at = 0; at < PANEL_UNITS; at += PANEL_LINE) vprefetch(units + at);
}

/* ---- workers ---- */

/* The panels and samples of a worker in one direction; none if it rests there. */
typedef struct Share {
  int64_t panel, panel_end, sample, sample_end;
} Share;

/* The workers of a direction, if there are enough, else all for each: `ways` parts of the samples, each with unit_ways
 * parts of the panels. */
typedef struct Crew {
  int64_t first, ways, unit_ways;
} Crew;

static Crew crew_of(const Team *team, int64_t directions, int64_t direction, int64_t panels, int64_t batch) {
  bool apart = team->size >= directions;
  int64_t first = apart ? team->size * direction / directions : 0;
  int64_t count = apart ? team->size * (direction + 1) / directions - first : team->size;
  int64_t workers = min_i64(count, WORKERS), ways = max_i64(1, min_i64(min_i64(BATCH_PARTS, workers), batch));
  return (Crew){first, ways, max_i64(1, min_i64(workers / ways, panels))};
}

static Share share_of(const Team *team, const Crew *crew, int64_t panels, int64_t batch) {
  int64_t member = team->rank - crew->first, way = member % crew->ways, unit_way = member / crew->ways;
  if (member < 0 || unit_way >= crew->unit_ways) return (Share){0};
  return (Share){.panel = share_begin(panels, unit_way, crew->unit_ways),
                 .panel_end = share_begin(panels, unit_way + 1, crew->unit_ways),
                 .sample = share_begin(batch, way, crew->ways),
                 .sample_end = share_begin(batch, way + 1, crew->ways)};
}
