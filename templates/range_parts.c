/* SPDX-License-Identifier: MIT */
/* The least and the greatest of each of PARTS parts of a tensor; NaN if the part has one. Workers take whole parts. */
#include "kernel.h"
#include "simd/simd.h"

/* legal: 1..256 */
enum { PARTS = 64 };

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

/* ranges: [PARTS][2], the least and the greatest; of an empty part 0. A part has its share of each image, [count], of
 * which one is x_image behind the other. */
static void range_parts(const Team *team, const float *x, float *ranges, int64_t images, int64_t count,
                        int64_t x_image) {
  int64_t part, end;
  team_share(team, PARTS, &part, &end);
  for (; part < end; part++) {
    int64_t first = part * count / PARTS, behind = (part + 1) * count / PARTS;
    float *range = ranges + 2 * part, own[2];
    range[0] = range[1] = 0;
    if (images > 0 && behind > first) part_range(x + first, behind - first, range);
    for (int64_t image = 1; image < images && behind > first; image++) {
      part_range(x + image * x_image + first, behind - first, own);
      range[0] = vhmin(vmin(vset(range[0]), vset(own[0])));
      range[1] = vhmax(vmax(vset(range[1]), vset(own[1])));
    }
  }
}
