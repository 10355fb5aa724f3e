/* SPDX-License-Identifier: MIT */
/*
 * Packs a matrix whose columns stand side by side in memory (weights [columns][depth]) into panels (see panel.h), at
 * run time: squares of LANES columns and LANES steps of the depth are transposed in registers. The order of columns is
 * that of pack_panels.c.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/simd.h"
#include "transpose.h"

/* Vectors of columns in a packed panel.
 * legal: 1..16 */
enum { VECTORS = 4 };
/* Gates whose columns are interleaved; 1 for an ordinary matrix.
 * legal: 1..4 */
enum { GATES = 1 };
/* Vectors of one gate that stand together.
 * legal: 1..16 */
enum { UNIT_VECTORS = 4 };

/* source: element (direction, gate * units + unit, k) at direction * direction_stride + (gate * units + unit) * depth +
 * k. target: [panels][depth][VECTORS][LANES], panels enough for all vectors. */
static void pack_rows(const Team *team, const float *source, float *target, int64_t directions,
                      int64_t direction_stride, int64_t units, int64_t depth) {
  int64_t in_direction = ceil_div(units, UNIT_VECTORS * LANES) * GATES * UNIT_VECTORS;
  int64_t vectors = round_up(directions * in_direction, VECTORS), item, end;
  team_share(team, vectors, &item, &end);
  for (; item < end; item++) {
    int64_t direction = item / in_direction, in = item % in_direction, gate = in / UNIT_VECTORS % GATES;
    int64_t unit = (in / (UNIT_VECTORS * GATES) * UNIT_VECTORS + in % UNIT_VECTORS) * LANES;
    int64_t columns = direction < directions ? min_i64(units - unit, LANES) : 0;
    const float *from = columns > 0 ? source + direction * direction_stride + (gate * units + unit) * depth : source;
    float *to = target + (item / VECTORS * depth * VECTORS + item % VECTORS) * LANES;
    for (int64_t k = 0; k < depth; k += LANES)
      transpose_square(to + k * VECTORS * LANES, VECTORS * LANES, columns > 0 ? from + k : source, depth, columns,
                       depth - k, LANES);
  }
}
