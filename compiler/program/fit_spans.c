/* SPDX-License-Identifier: MIT */
/*
 * Each span goes to a gap between the spans placed before it that are in use at the same time. The best order depends
 * on the network, so several are tried; if none reaches the lower bound, the highest span is moved to an earlier place,
 * while the result gets no larger. Everything is deterministic.
 */
#include "program/fit_spans.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPAIRS = 1000, REPAIR_WORK = 100000 }; /* REPAIR_WORK: spans placed in all repairs together, about */

/* ---- spans in use at the same time ---- */

/* The placed spans, found by time. Leaves are spans in the order of `first`; a node of the tree holds the latest `last`
 * of the placed ones below it, -1 for none. */
typedef struct Timeline {
  const Span *spans;
  int n, leaves;
  int *by_first; /* spans by leaf */
  int *leaf;     /* leaves by span */
  int *latest;   /* the tree: node 1 is the root, 2i and 2i + 1 are below i */
} Timeline;

/* Spans are sorted by their indices. */
static const Span *span_of(const void *index, const void *spans) { return (const Span *)spans + *(const int *)index; }

typedef int Compare(const void *left, const void *right, void *spans);

static int by_first(const void *left, const void *right, void *spans) {
  const Span *a = span_of(left, spans), *b = span_of(right, spans);
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a < b ? -1 : 1;
}

static void sort(const Span *spans, int *order, int n, Compare *compare) {
  qsort_r(order, (size_t)n, sizeof *order, compare, (void *)spans);
}

static Timeline timeline_new(Arena *arena, const Span *spans, int n) {
  Timeline line = {.spans = spans, .n = n, .leaves = 1};
  while (line.leaves < n) line.leaves *= 2;
  line.by_first = ARENA_ARRAY(arena, int, n);
  line.leaf = ARENA_ARRAY(arena, int, n);
  line.latest = ARENA_ARRAY(arena, int, 2 * line.leaves);
  for (int i = 0; i < n; i++) line.by_first[i] = i;
  sort(spans, line.by_first, n, by_first);
  for (int i = 0; i < n; i++) line.leaf[line.by_first[i]] = i;
  return line;
}

static void timeline_clear(Timeline *line) {
  for (int i = 0; i < 2 * line->leaves; i++) line->latest[i] = -1;
}

static void timeline_add(Timeline *line, int span) {
  for (int node = line->leaves + line->leaf[span]; node >= 1; node /= 2)
    if (line->latest[node] < line->spans[span].last) line->latest[node] = line->spans[span].last;
}

/* The number of spans that begin at `step` or before. */
static int begun_by(const Timeline *line, int step) {
  int low = 0, high = line->n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (line->spans[line->by_first[middle]].first <= step)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Appends the placed spans of leaves below `end` that are still in use at `step`. The node covers `size` leaves from
 * `leaf` on. */
static int collect(const Timeline *line, int node, int leaf, int size, int end, int step, int *found, int count) {
  if (leaf >= end || line->latest[node] < step) return count;
  if (size == 1) {
    found[count] = line->by_first[leaf];
    return count + 1;
  }
  count = collect(line, 2 * node, leaf, size / 2, end, step, found, count);
  return collect(line, 2 * node + 1, leaf + size / 2, size / 2, end, step, found, count);
}

/* ---- one fit ---- */

static int by_offset(const void *left, const void *right, void *spans) {
  const Span *a = span_of(left, spans), *b = span_of(right, spans);
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a < b ? -1 : 1;
}

/* The lowest gap that is large enough, or the tightest; `beside` in the order of offsets. */
static int64_t find_gap(const Span *spans, const int *beside, int n, int64_t bytes, bool tightest) {
  int64_t end = 0, best = -1, best_size = INT64_MAX;
  for (int i = 0; i < n; i++) {
    const Span *span = &spans[beside[i]];
    int64_t size = span->offset - end;
    if (size >= bytes && size < best_size) {
      best = end;
      best_size = size;
      if (!tightest) break;
    }
    if (span->offset + span->bytes > end) end = span->offset + span->bytes;
  }
  return best >= 0 ? best : end;
}

typedef struct Fitting {
  Timeline line;
  Span *spans;
  int n;
  int *beside; /* scratch */
} Fitting;

static int64_t max_end(int64_t highest, const Span *span) {
  return span->offset + span->bytes > highest ? span->offset + span->bytes : highest;
}

/* Places the spans of the order, of which the first `kept` stay where they are, until one ends beyond `limit`. Returns
 * the highest end. */
static int64_t fit(Fitting *f, const int *order, bool tightest, int kept, int64_t limit) {
  int64_t highest = 0;
  timeline_clear(&f->line);
  for (int i = 0; i < kept; i++) {
    highest = max_end(highest, &f->spans[order[i]]);
    timeline_add(&f->line, order[i]);
  }
  for (int i = kept; i < f->n && highest <= limit; i++) {
    Span *span = &f->spans[order[i]];
    int n = collect(&f->line, 1, 0, f->line.leaves, begun_by(&f->line, span->last), span->first, f->beside, 0);
    sort(f->spans, f->beside, n, by_offset);
    span->offset = find_gap(f->spans, f->beside, n, span->bytes, tightest);
    highest = max_end(highest, span);
    timeline_add(&f->line, order[i]);
  }
  return highest;
}

/* ---- orders ---- */

static int by_size(const void *left, const void *right, void *spans) {
  const Span *a = span_of(left, spans), *b = span_of(right, spans);
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a < b ? -1 : 1;
}

static int steps(const Span *span) { return span->last - span->first + 1; }

static int by_duration(const void *left, const void *right, void *spans) {
  const Span *a = span_of(left, spans), *b = span_of(right, spans);
  if (steps(a) != steps(b)) return steps(a) > steps(b) ? -1 : 1;
  return by_size(left, right, spans);
}

static double area(const Span *span) { return (double)span->bytes * (double)steps(span); }

static int by_area(const void *left, const void *right, void *spans) {
  const Span *a = span_of(left, spans), *b = span_of(right, spans);
  if (area(a) > area(b)) return -1;
  return area(a) < area(b) ? 1 : by_size(left, right, spans);
}

static Compare *const orders[] = {by_size, by_duration, by_area, by_first};
enum { N_ORDERS = sizeof orders / sizeof *orders };

typedef struct Best {
  int64_t bytes;
  bool tightest;
  int *order;
} Best;

static void try_order(Fitting *f, Best *best, const int *order, bool tightest) {
  int64_t bytes = fit(f, order, tightest, 0, best->bytes - 1);
  if (bytes >= best->bytes) return;
  best->bytes = bytes;
  best->tightest = tightest;
  memcpy(best->order, order, (size_t)f->n * sizeof *order);
}

static void try_orders(Fitting *f, Best *best, int64_t bound, int *order) {
  for (int i = 0; i < 2 * N_ORDERS && best->bytes > bound; i++) {
    for (int k = 0; k < f->n; k++) order[k] = k;
    sort(f->spans, order, f->n, orders[i / 2]);
    try_order(f, best, order, i % 2);
  }
}

/* ---- repairs ---- */

/* The place in the order of the highest span. */
static int highest_place(const Fitting *f, const int *order) {
  int highest = 0;
  for (int i = 1; i < f->n; i++) {
    const Span *a = &f->spans[order[i]], *b = &f->spans[order[highest]];
    if (a->offset + a->bytes > b->offset + b->bytes) highest = i;
  }
  return highest;
}

static unsigned next_random(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u; /* Numerical Recipes, section 7.1 */
  return *seed >> 8;
}

static void save_offsets(const Fitting *f, int64_t *offsets) {
  for (int i = 0; i < f->n; i++) offsets[i] = f->spans[i].offset;
}

static void restore_offsets(Fitting *f, const int64_t *offsets) {
  for (int i = 0; i < f->n; i++) f->spans[i].offset = offsets[i];
}

/* Moves the highest span to an earlier place. `offsets`: scratch. */
static void repair(Fitting *f, Best *best, int64_t bound, int *order, int64_t *offsets) {
  int64_t current = fit(f, best->order, best->tightest, 0, INT64_MAX);
  int repairs = f->n ? REPAIR_WORK / f->n : 0;
  unsigned seed = 1;
  memcpy(order, best->order, (size_t)f->n * sizeof *order);
  for (int i = 0; i < repairs && i < MAX_REPAIRS && best->bytes > bound; i++) {
    int from = highest_place(f, order), span = order[from];
    int to = from ? (int)(next_random(&seed) % (unsigned)from) : 0;
    memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
    order[to] = span;
    save_offsets(f, offsets);
    int64_t bytes = fit(f, order, best->tightest, to, current);
    if (bytes < best->bytes) {
      best->bytes = bytes;
      memcpy(best->order, order, (size_t)f->n * sizeof *order);
    }
    if (bytes <= current) {
      current = bytes;
      continue;
    }
    memmove(order + to, order + to + 1, (size_t)(from - to) * sizeof *order);
    order[from] = span;
    restore_offsets(f, offsets);
  }
}

/* ---- both ---- */

static int last_step(const Span *spans, int n) {
  int last = 0;
  for (int i = 0; i < n; i++)
    if (spans[i].last > last) last = spans[i].last;
  return last;
}

int64_t largest_live_set(Arena *arena, const Span *spans, int n) {
  int last = last_step(spans, n);
  int64_t *change = ARENA_ARRAY(arena, int64_t, last + 2), largest = 0, live = 0;
  for (int i = 0; i < n; i++) {
    change[spans[i].first] += spans[i].bytes;
    change[spans[i].last + 1] -= spans[i].bytes;
  }
  for (int step = 0; step <= last; step++) {
    live += change[step];
    if (live > largest) largest = live;
  }
  return largest;
}

int64_t fit_spans(Arena *arena, Span *spans, int n) {
  Fitting f = {timeline_new(arena, spans, n), spans, n, ARENA_ARRAY(arena, int, n)};
  Best best = {.bytes = INT64_MAX, .order = ARENA_ARRAY(arena, int, n)};
  int *order = ARENA_ARRAY(arena, int, n);
  int64_t bound = largest_live_set(arena, spans, n);
  try_orders(&f, &best, bound, order);
  repair(&f, &best, bound, order, ARENA_ARRAY(arena, int64_t, n));
  return fit(&f, best.order, best.tightest, 0, INT64_MAX);
}
