/* SPDX-License-Identifier: MIT */
/*
 * The first half of NonMaxSuppression: for each image and class, boxes by falling score, without those that overlap one
 * that was taken before. Candidates stand in a heap, so that no more are put in order than are looked at; the corners
 * of what was taken stand side by side, and are compared with a candidate many at a time.
 */
#include "kernel.h"

/* 1: boxes are [x, y, width, height] about their centre; 0: [y1, x1, y2, x2], any two opposite corners.
 * legal: 0 1 */
enum { CENTRED = 0 };

enum { HEAD = 16, BLOCK = 16 }; /* numbers before a row's places; boxes compared before looking whether to go on */

/* One image and class. Its row in memory: HEAD numbers, of which the first is the count; n places, the heap from the
 * front, what was taken from the back; five floats for each of `keep` boxes that may be taken. */
typedef struct Row {
  const float *boxes, *scores;
  int32_t *places;
  float *x1, *y1, *x2, *y2, *area; /* of what was taken */
} Row;

/* Higher scores first, then lower places. */
static inline bool before(const float *scores, int32_t a, int32_t b) {
  return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

static void sink(int32_t *heap, int64_t size, int64_t at, const float *scores) {
  int32_t moved = heap[at];
  for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && before(scores, heap[child + 1], heap[child])) child++;
    if (!before(scores, heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

static int64_t make_heap(const Row *row, int64_t n, const float *least) {
  int64_t size = 0;
  for (int64_t i = 0; i < n; i++)
    if (!least || row->scores[i] > *least) row->places[size++] = (int32_t)i;
  for (int64_t i = size / 2 - 1; i >= 0; i--) sink(row->places, size, i, row->scores);
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

static inline float lesser(float a, float b) { return a < b ? a : b; }
static inline float greater(float a, float b) { return a > b ? a : b; }

/* Does box `at` overlap one of those before it by more than `most` of what both cover? */
static bool overlaps(const Row *row, int64_t at, float most) {
  for (int64_t first = 0; first < at; first += BLOCK) {
    int64_t end = min_i64(first + BLOCK, at);
    int any = 0;
    for (int64_t k = first; k < end; k++) {
      float width = lesser(row->x2[k], row->x2[at]) - greater(row->x1[k], row->x1[at]);
      float height = lesser(row->y2[k], row->y2[at]) - greater(row->y1[k], row->y1[at]);
      float both = width * height, all = row->area[k] + row->area[at] - both;
      any |= (width > 0) & (height > 0) & (row->area[k] > 0) & (row->area[at] > 0) & (all > 0) & (both / all > most);
    }
    if (any) return true;
  }
  return false;
}

static int64_t select_boxes(const Row *row, int64_t n, int64_t limit, float most, const float *least) {
  int64_t size = make_heap(row, n, least), taken = 0;
  while (size > 0 && taken < limit) {
    int32_t best = row->places[0];
    row->places[0] = row->places[--size];
    if (size) sink(row->places, size, 0, row->scores);
    put_box(row, taken, row->boxes + 4 * (int64_t)best);
    if (!overlaps(row, taken, most)) row->places[n - 1 - taken++] = best;
  }
  return taken;
}

/* boxes: [batch][n][4]; scores: [batch][classes][n]; rows: [batch][classes], `row_numbers` numbers each. limit, overlap
 * and least may be NULL: none taken, 0, all candidates. */
static void nms_select(const Team *team, const float *boxes, const float *scores, const int64_t *limit,
                       const float *overlap, const float *least, int32_t *rows, int64_t row_numbers, int64_t batch,
                       int64_t classes, int64_t n, int64_t keep) {
  int64_t item, end, most = limit ? min_i64(*limit, keep) : 0;
  team_share(team, batch * classes, &item, &end);
  for (; item < end; item++) {
    int32_t *head = rows + item * row_numbers;
    float *corners = (float *)(void *)(head + HEAD + n);
    Row row = {boxes + item / classes * n * 4,
               scores + item * n,
               head + HEAD,
               corners,
               corners + keep,
               corners + 2 * keep,
               corners + 3 * keep,
               corners + 4 * keep};
    head[0] = (int32_t)select_boxes(&row, n, most, overlap ? *overlap : 0, least);
  }
}
