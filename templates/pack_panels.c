/* SPDX-License-Identifier: MIT */
/*
 * Packs a matrix that is known only at run time into panels (see panel.h); compiler/kernels/gemm/panels.c does the same
 * ahead of time and explains the order of columns.
 *
 * Columns come in `directions` sets of `gates` gates of `units` columns each. The packed order of vectors is
 * [direction][panel of units][gate][vector of units in the panel]; vectors past a gate's last unit are zero.
 */
#include "kernel.h"
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

/* One vector at depth k: `count` columns of the source from `column`. */
SIMD_FUNCTION void pack_vector(float *target, const float *source, const float *addend, int64_t stride, int64_t count) {
  for (int64_t lane = 0; lane < LANES; lane++) {
    float x = lane < count ? source[lane * stride] : 0;
    target[lane] = lane < count && addend ? x + addend[lane * stride] : x;
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
    for (int64_t v = 0; v < VECTORS; v++) {
      int64_t vector = item % panels * VECTORS + v, direction = vector / in_direction, in = vector % in_direction;
      int64_t gate = in / UNIT_VECTORS % GATES;
      int64_t unit = (in / (UNIT_VECTORS * GATES) * UNIT_VECTORS + in % UNIT_VECTORS) * LANES;
      int64_t count = direction < directions ? min_i64(units - unit, LANES) : 0;
      int64_t at = direction * direction_stride + (gate * units + unit) * column_stride;
      float *out = target + (item * depth * VECTORS + v) * LANES;
      for (int64_t k = 0; k < depth; k++) {
        int64_t from = item / panels * batch_stride + at + k * depth_stride;
        const float *add = gate < ADDEND_GATES && count > 0 ? addend + from : NULL;
        pack_vector(out + k * VECTORS * LANES, count > 0 ? source + from : source, add, column_stride, count);
      }
    }
  }
}
