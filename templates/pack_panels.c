/* SPDX-License-Identifier: MIT */
/*
 * Packs a matrix that is known only at run time into panels (see panel.h); compiler/kernels/gemm/panels.c does the same
 * ahead of time and explains the order of columns.
 *
 * Columns come in `directions` sets of `gates` gates of `units` columns each. The packed order of vectors is
 * [direction][panel of units][gate][vector of units in the panel]; vectors past a gate's last unit are zero.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/simd.h"

/* Vectors of columns in a packed panel.
 * legal: 1..16 */
enum { VECTORS = 4 };
/* Gates whose columns are interleaved; 1 for an ordinary matrix.
 * legal: 1..4 */
enum { GATES = 1 };
/* Vectors of one gate that stand together.
 * legal: 1..16 */
enum { UNIT_VECTORS = 1 };
/* Leading gates to which `addend` is added; 0: it is not read.
 * legal: 0..4 */
enum { ADDEND_GATES = 0 };

/* A vector of columns: its first element in the source and in the addend, NULL if it gets none, and how many of its
 * columns the source has, which may be none. */
typedef struct Columns {
  const float *source, *addend;
  int64_t count;
} Columns;

/* Depth `at` elements on. */
SIMD_FUNCTION void pack_vector(float *target, const Columns *c, int64_t at, int64_t stride) {
  if (stride == 1) {
    vec x = panel_load(c->source + at, c->count);
    vstore(target, ADDEND_GATES && c->addend ? vadd(x, panel_load(c->addend + at, c->count)) : x);
    return;
  }
  for (int64_t lane = 0; lane < LANES; lane++) {
    float x = lane < c->count ? c->source[at + lane * stride] : 0;
    target[lane] = ADDEND_GATES && lane < c->count && c->addend ? x + c->addend[at + lane * stride] : x;
  }
}

/* Are all vectors those of the source as they are? */
static bool is_copy(const Columns *columns, int64_t stride) {
  for (int v = 0; v < VECTORS; v++)
    if (stride != 1 || columns[v].count < LANES || columns[v].addend) return false;
  return true;
}

SIMD_FUNCTION void pack_panel(float *target, const Columns *columns, int64_t depth, int64_t column_stride,
                              int64_t depth_stride) {
  bool copy = is_copy(columns, column_stride);
  for (int64_t k = 0; copy && k < depth; k++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++)
      vstore(target + (k * VECTORS + v) * LANES, vload(columns[v].source + k * depth_stride));
  }
  for (int64_t k = 0; !copy && k < depth; k++) {
    for (int v = 0; v < VECTORS; v++)
      pack_vector(target + (k * VECTORS + v) * LANES, &columns[v], k * depth_stride, column_stride);
  }
}

/* source: element (direction, gate * units + unit, k) at direction * direction_stride + (...) * column_stride +
 * k * depth_stride; addend likewise. target: [panels][depth][VECTORS][LANES], panels enough for all vectors; several
 * such matrices, `batches`, one after the other, the sources batch_stride apart. */
static void pack_panels(const Team *team, const float *source, const float *addend, float *target, int64_t batches,
                        int64_t batch_stride, int64_t directions, int64_t direction_stride, int64_t units,
                        int64_t depth, int64_t column_stride, int64_t depth_stride) {
  int64_t in_direction = ceil_div(units, UNIT_VECTORS * LANES) * GATES * UNIT_VECTORS;
  int64_t panels = ceil_div(directions * in_direction, VECTORS), item, end;
  team_share(team, batches * panels, &item, &end);
  for (; item < end; item++) {
    Columns columns[VECTORS];
    for (int64_t v = 0; v < VECTORS; v++) {
      int64_t vector = item % panels * VECTORS + v, direction = vector / in_direction, in = vector % in_direction;
      int64_t gate = in / UNIT_VECTORS % GATES;
      int64_t unit = (in / (UNIT_VECTORS * GATES) * UNIT_VECTORS + in % UNIT_VECTORS) * LANES;
      int64_t at = item / panels * batch_stride + direction * direction_stride + (gate * units + unit) * column_stride;
      int64_t count = direction < directions ? min_i64(units - unit, LANES) : 0;
      columns[v] = (Columns){source, NULL, count};
      if (count > 0) columns[v] = (Columns){source + at, gate < ADDEND_GATES ? addend + at : NULL, count};
    }
    pack_panel(target + item * depth * VECTORS * LANES, columns, depth, column_stride, depth_stride);
  }
}
