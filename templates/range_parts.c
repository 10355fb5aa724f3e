/* SPDX-License-Identifier: MIT */
/* The least and the greatest of each of PARTS parts of a tensor; NaN if the part has one. Workers take whole parts. */
#include "kernel.h"
#include "simd/simd.h"

/* legal: 1..256 */
enum { PARTS = 64 };
/* Lanes with channels in the vectors of an image's last block; 0: all of all blocks. The others are in no range.
 * legal: 0..15 */
enum { LAST_LANES = 0 };

/* So many vectors at once hide the latency of comparisons. */
enum { AT_ONCE = 4 };

SIMD_FUNCTION void take(vec x, vec *least, vec *greatest) {
  *least = vmin(x, *least);
  *greatest = vmax(x, *greatest);
}

static void part_range(const float *x, int64_t count, float range[2]) {
  vec least[AT_ONCE], greatest[AT_ONCE];
  int64_t i = 0;
#pragma clang loop unroll(full)
  for (int v = 0; v < AT_ONCE; v++) least[v] = greatest[v] = vset(*x);
  for (; i + AT_ONCE * LANES <= count; i += AT_ONCE * LANES)
#pragma clang loop unroll(full)
    for (int v = 0; v < AT_ONCE; v++) take(vload(x + i + v * LANES), &least[v], &greatest[v]);
  for (; i < count; i += LANES) {
    int n = (int)min_i64(LANES, count - i);
    take(n == LANES ? vload(x + i) : vselect(vmask_first(n), vload_n(x + i, n), vset(*x)), &least[0], &greatest[0]);
  }
#pragma clang loop unroll(full)
  for (int v = 1; v < AT_ONCE; v++) least[0] = vmin(least[0], least[v]), greatest[0] = vmax(greatest[0], greatest[v]);
  range[0] = vhmin(least[0]);
  range[1] = vhmax(greatest[0]);
}

/* The same of whole vectors in which only some lanes count. */
static void lanes_range(const float *x, int64_t count, float range[2]) {
  vec least = vset(*x), greatest = least;
  for (int64_t i = 0; i < count; i += LANES)
    take(vselect(vmask_first(LAST_LANES), vload(x + i), vset(*x)), &least, &greatest);
  range[0] = vhmin(least);
  range[1] = vhmax(greatest);
}

static void widen(float range[2], const float own[2]) {
  range[0] = vhmin(vmin(vset(range[0]), vset(own[0])));
  range[1] = vhmax(vmax(vset(range[1]), vset(own[1])));
}

/* Elements first..behind-1 of an image; of its last block from element `full` on. */
static void image_range(const float *x, int64_t first, int64_t behind, int64_t full, float range[2]) {
  int64_t middle = LAST_LANES ? max_i64(first, min_i64(full, behind)) : behind;
  float own[2];
  if (middle > first) part_range(x + first, middle - first, range);
  if (middle == behind) return;
  lanes_range(x + middle, behind - middle, middle > first ? own : range);
  if (middle > first) widen(range, own);
}

/* Where a part begins: with a last block of fewer lanes, before a whole vector. */
static inline int64_t part_begin(int64_t part, int64_t count) {
  const int64_t unit = LAST_LANES ? LANES : 1;
  return part * (count / unit) / PARTS * unit;
}

/* ranges: [PARTS][2], the least and the greatest; of an empty part 0. A part has its share of each image, [count], of
 * which one is x_image behind the other, and whose last block begins at `full`. */
static void range_parts(const Team *team, const float *x, float *ranges, int64_t images, int64_t count, int64_t x_image,
                        int64_t full) {
  int64_t part, end;
  team_share(team, PARTS, &part, &end);
  for (; part < end; part++) {
    int64_t first = part_begin(part, count), behind = part_begin(part + 1, count);
    float *range = ranges + 2 * part, own[2];
    range[0] = range[1] = 0;
    if (images > 0 && behind > first) image_range(x, first, behind, full, range);
    for (int64_t image = 1; image < images && behind > first; image++) {
      image_range(x + image * x_image, first, behind, full, own);
      widen(range, own);
    }
  }
}
