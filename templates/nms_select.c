/* SPDX-License-Identifier: MIT */
/*
 * The first half of NonMaxSuppression: for each image and class, selects boxes by decreasing score, without those that
 * overlap a selected one. Candidates are in a heap, so that only those examined are sorted; corners of selected boxes
 * are contiguous, and compared with a candidate a vector at a time.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/simd.h"

/* 1: boxes are [x, y, width, height] about their centre; 0: [y1, x1, y2, x2], any two opposite corners.
 * legal: 0 1 */
enum { CENTRED = 0 };

enum { SCORES = 16 }; /* that are compared with the least before looking whether one is higher */

/* One image and class. Its row in memory: NMS_HEAD numbers, of which the first is the count; n + 1 candidates; the
 * places of `keep` boxes that may be taken; five floats for each of those; NMS_PAD. */
typedef struct Row {
  const float *boxes, *scores;
  uint64_t *heap;
  int32_t *places;
  float *x1, *y1, *x2, *y2, *area; /* of what was taken */
} Row;

/* A candidate as a number: the higher, the earlier it is looked at. Above, the score's bits in the order of the floats,
 * -0 as 0; below, the place, of which the lower one comes first. No candidate is 0. */
static inline uint64_t candidate(float score, int64_t place) {
  union {
    float number;
    uint32_t bits;
  } u = {score + 0.0f};
  uint32_t rank = u.bits & 0x80000000u ? ~u.bits : u.bits | 0x80000000u;
  return (uint64_t)rank << 32 | (0xffffffffu - (uint32_t)place);
}

static inline int64_t place_of(uint64_t of) { return 0xffffffffu - (uint32_t)of; }

/* heap[size] is 0. The better child moves up at each level down to a leaf, in a loop without unpredictable branches.
 * Then `moved` rises from that leaf, seldom far, because it was a leaf itself. */
static void replace(uint64_t *heap, int64_t size, int64_t root, uint64_t moved) {
  int64_t at = root;
  for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    child += heap[child + 1] > heap[child];
    heap[at] = heap[child];
    at = child;
  }
  for (int64_t parent; at > root && heap[parent = (at - 1) / 2] < moved; at = parent) heap[at] = heap[parent];
  heap[at] = moved;
}

static uint64_t pop(uint64_t *heap, int64_t *size) {
  uint64_t best = heap[0], last = heap[--*size];
  heap[*size] = 0;
  if (*size) replace(heap, *size, 0, last);
  return best;
}

/* Most scores are too low: they are skipped, SCORES at a time. */
static bool any_above(const float *scores, float least) {
  int any = 0;
  for (int i = 0; i < SCORES; i++) any |= scores[i] > least;
  return any;
}

static int64_t make_heap(const Row *row, int64_t n, const float *least) {
  int64_t size = 0;
  for (int64_t first = 0; first < n; first += SCORES) {
    int64_t end = min_i64(first + SCORES, n);
    if (least && end - first == SCORES && !any_above(row->scores + first, *least)) continue;
    for (int64_t i = first; i < end; i++)
      if (!least || row->scores[i] > *least) row->heap[size++] = candidate(row->scores[i], i);
  }
  row->heap[size] = 0;
  for (int64_t i = size / 2 - 1; i >= 0; i--) replace(row->heap, size, i, row->heap[i]);
  return size;
}

/* Corners and area of a box, into the place after those taken. */
static void put_box(const Row *row, int64_t taken, const float *box) {
  float x1 = box[1], y1 = box[0], x2 = box[3], y2 = box[2];
  if (CENTRED) {
    x1 = box[0] - box[2] / 2, x2 = box[0] + box[2] / 2;
    y1 = box[1] - box[3] / 2, y2 = box[1] + box[3] / 2;
  }
  row->x1[taken] = x1 < x2 ? x1 : x2;
  row->x2[taken] = x1 < x2 ? x2 : x1;
  row->y1[taken] = y1 < y2 ? y1 : y2;
  row->y2[taken] = y1 < y2 ? y2 : y1;
  row->area[taken] = (row->x2[taken] - row->x1[taken]) * (row->y2[taken] - row->y1[taken]);
}

/* The lengths of the intersections of box `at`'s interval with those of LANES taken boxes from `first` on; not
 * positive: they do not intersect. */
static inline vec in_common(const float *low, const float *high, int64_t first, int64_t at) {
  vec lows = vload(low + first), highs = vload(high + first), own_low = vset(low[at]), own_high = vset(high[at]);
  return vsub(vselect(vlt(highs, own_high), highs, own_high), vselect(vgt(lows, own_low), lows, own_low));
}

/* Has box `at` with a box before it an intersection of more than `most` of their union? */
static bool overlaps(const Row *row, int64_t at, float most) {
  if (!(row->area[at] > 0)) return false;
  for (int64_t first = 0; first < at; first += LANES) {
    vec width = in_common(row->x1, row->x2, first, at), height = in_common(row->y1, row->y2, first, at);
    vec area = vload(row->area + first), both = vmul(width, height);
    vec all = vsub(vadd(area, vset(row->area[at])), both);
    vmask boxes = vand(vmask_first((int)min_i64(LANES, at - first)), vand(vgt(area, vzero()), vgt(all, vzero())));
    vmask meet = vand(vgt(width, vzero()), vgt(height, vzero()));
    if (vany(vand(vand(boxes, meet), vgt(vdiv(both, all), vset(most))))) return true;
  }
  return false;
}

static int64_t select_boxes(const Row *row, int64_t n, int64_t limit, float most, const float *least) {
  int64_t size = make_heap(row, n, least), taken = 0;
  while (size > 0 && taken < limit) {
    int64_t best = place_of(pop(row->heap, &size));
    put_box(row, taken, row->boxes + 4 * best);
    if (!overlaps(row, taken, most)) row->places[taken++] = (int32_t)best;
  }
  return taken;
}

/* boxes: [batch][n][4]; scores: [batch][classes][n]; rows: [batch][classes], `row_numbers` numbers each. limit, overlap
 * and least may be NULL: no box is taken, 0, all boxes are candidates. */
static void nms_select(const Team *team, const float *boxes, const float *scores, const int64_t *limit,
                       const float *overlap, const float *least, int32_t *rows, int64_t row_numbers, int64_t batch,
                       int64_t classes, int64_t n, int64_t keep) {
  int64_t item, end, most = limit ? min_i64(*limit, keep) : 0;
  team_share(team, batch * classes, &item, &end);
  for (; item < end; item++) {
    int32_t *head = rows + item * row_numbers, *places = head + NMS_HEAD + 2 * (n + 1);
    float *corners = (float *)(void *)(places + keep);
    Row row = {boxes + item / classes * n * 4,
               scores + item * n,
               (uint64_t *)(void *)(head + NMS_HEAD),
               places,
               corners,
               corners + keep,
               corners + 2 * keep,
               corners + 3 * keep,
               corners + 4 * keep};
    head[0] = (int32_t)select_boxes(&row, n, most, overlap ? *overlap : 0, least);
  }
}
