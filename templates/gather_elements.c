/* SPDX-License-Identifier: MIT */
/*
 * GatherElements: out[.., j, ..] = in[.., indices[.., j, ..], ..], where the indexed axis has `length` elements. A
 * piece of work is a run along the last axis, for every j, at one position of the KEPT axes. If the indexed axis is the
 * last one, a run is one element.
 */
#include "kernel.h"
#include "rows.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;
/* legal: int32_t int64_t */
typedef int64_t Index;

/* Axes besides the indexed one and the run.
 * legal: 0..7 */
enum { KEPT = 1 };
/* 0: the indexed axis is the last one.
 * legal: 0 1 */
enum { RUN = 1 };
/* 1: checks indices; 0: they were checked before.
 * legal: 0 1 */
enum { CHECKED = 1 };

/* kept_*: the KEPT axes of the indices; in_axis, out_axis: the indexed axis's strides; count: its extent in the
 * indices. Strides in elements. */
static void gather_elements(const Team *team, const T *in, const Index *indices, T *out, const int64_t *kept_extent,
                            const int64_t *kept_in, const int64_t *kept_out, int64_t count, int64_t length,
                            int64_t in_axis, int64_t out_axis, int64_t run, atomic_int *fault) {
  Rows kept = {.axes = KEPT, .extent = kept_extent, .stride = {kept_in, kept_out, kept_out}};
  int64_t pieces = RUN ? ceil_div(run, ROWS_PIECE) : 1, item, end;
  team_share(team, rows_count(KEPT, kept_extent) * pieces, &item, &end);
  if (item == end || (CHECKED && length == 0)) return;
  rows_seek(&kept, item / pieces);
  for (; item < end; item++) {
    int64_t first = RUN ? item % pieces * ROWS_PIECE : 0, last = RUN ? min_i64(run, first + ROWS_PIECE) : 1;
    const T *restrict from = in + kept.offset[0];
    for (int64_t j = 0; j < count; j++) {
      int64_t row = kept.offset[1] + j * out_axis;
      for (int64_t i = first; i < last; i++)
        out[row + i] = from[index_at(indices[row + i], length, CHECKED, fault) * in_axis + i];
    }
    if ((item + 1) % pieces == 0) rows_next(&kept);
  }
}
