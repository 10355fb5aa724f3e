/* SPDX-License-Identifier: MIT */
/*
 * A run ends the gradients of the last backward(). From then on their memory holds nothing, until backward() writes
 * them again. So it has room for what is needed only before: a layer's packed weights are as large as the gradient.
 *
 * Between gradients there may be bytes of padding. They are zero and must stay so, because sums are taken over all of
 * the memory.
 */
#include "program/gradient_room.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

/* The memory of a gradient. */
typedef struct Room {
  int64_t offset, bytes; /* without padding */
  int until;             /* the step that first writes it */
} Room;

typedef struct Rooms {
  int n;
  Room *list; /* in the order of offsets */
} Rooms;

static Rooms find_rooms(Program *program, const Liveness *live) {
  const Graph *graph = program->graph;
  Rooms rooms = {.list = ARENA_ARRAY(graph->arena, Room, graph->n_parameters)};
  for (int i = 0; i < graph->n_parameters - graph->n_statistics; i++) {
    const Value *gradient = value_root(graph->outputs[graph_first_gradient(graph) + i]);
    int first = live->first[gradient->id];
    rooms.list[rooms.n++] =
        (Room){.offset = gradient->offset, .bytes = value_max_bytes(gradient), .until = first < 0 ? 0 : first};
  }
  return rooms;
}

/* Is the span over before anything is written to its bytes from this gradient on? It may reach over several. */
static bool has_room(const Rooms *rooms, int from, const Span *span) {
  int64_t bytes = 0;
  for (int i = from; i < rooms->n && span->last < rooms->list[i].until; i++) {
    bytes += rooms->list[i].bytes;
    if (bytes >= span->bytes) return true;
    if (rooms->list[i].bytes % ALIGNMENT) return false;
  }
  return false;
}

static bool are_apart(const Span *a, const Span *b) {
  return a->last < b->first || b->last < a->first || a->offset + a->bytes <= b->offset ||
         b->offset + b->bytes <= a->offset;
}

/* Sets the span's offset; `placed` are there already. */
static bool place_span(const Rooms *rooms, Span *span, Span *const *placed, int n) {
  for (int from = 0; from < rooms->n; from++) {
    if (!has_room(rooms, from, span)) continue;
    span->offset = rooms->list[from].offset;
    int i = 0;
    while (i < n && are_apart(span, placed[i])) i++;
    if (i == n) return true;
  }
  return false;
}

/* The runtime knows the places of states and outputs in the arena. */
static bool *spans_of_the_runtime(const Program *program, const MemoryPlan *plan) {
  const Graph *graph = program->graph;
  bool *known = ARENA_ARRAY(graph->arena, bool, program->n_values), *spans;
  for (int i = 0; i < graph_first_gradient(graph); i++) known[value_root(graph->outputs[i])->id] = true;
  spans = ARENA_ARRAY(graph->arena, bool, plan->n_spans);
  for (int i = 0; i < plan->n_intervals; i++) {
    const Interval *interval = &plan->intervals[i];
    if (known[interval->value->id] || is_state_value(graph, interval->value)) spans[interval->span] = true;
  }
  return spans;
}

static int by_bytes(const void *a, const void *b) {
  const Span *x = *(Span *const *)a, *y = *(Span *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x > y) - (x < y);
}

/* The large ones first. By span: is it there? */
static bool *place_spans(const Program *program, const Rooms *rooms, MemoryPlan *plan) {
  Arena *arena = program->graph->arena;
  Span **order = ARENA_ARRAY(arena, Span *, plan->n_spans), **placed = ARENA_ARRAY(arena, Span *, plan->n_spans);
  const bool *known = spans_of_the_runtime(program, plan);
  bool *there = ARENA_ARRAY(arena, bool, plan->n_spans);
  int n = 0;
  for (int i = 0; i < plan->n_spans; i++) order[i] = &plan->spans[i];
  if (plan->n_spans > 1) qsort((void *)order, (size_t)plan->n_spans, sizeof *order, by_bytes);
  for (int i = 0; i < plan->n_spans; i++) {
    if (known[order[i] - plan->spans] || !place_span(rooms, order[i], placed, n)) continue;
    there[order[i] - plan->spans] = true;
    placed[n++] = order[i];
  }
  return there;
}

static void take_out(Arena *arena, MemoryPlan *plan, const bool *there) {
  int intervals = 0, spans = 0, *numbers = ARENA_ARRAY(arena, int, plan->n_spans);
  plan->in_gradients = ARENA_ARRAY(arena, Interval, plan->n_intervals);
  for (int i = 0; i < plan->n_intervals; i++) {
    Interval interval = plan->intervals[i];
    if (!there[interval.span]) {
      plan->intervals[intervals++] = interval;
      continue;
    }
    interval.value->storage = STORAGE_GRADIENT;
    interval.value->offset = plan->spans[interval.span].offset;
    plan->in_gradients[plan->n_in_gradients++] = interval;
  }
  for (int i = 0; i < plan->n_spans; i++) {
    numbers[i] = spans;
    if (!there[i]) plan->spans[spans++] = plan->spans[i];
  }
  plan->n_intervals = intervals;
  plan->n_spans = spans;
  for (int i = 0; i < intervals; i++) plan->intervals[i].span = numbers[plan->intervals[i].span];
}

void use_gradient_room(Program *program, const Liveness *live, MemoryPlan *plan) {
  const Rooms rooms = find_rooms(program, live);
  if (rooms.n) take_out(program->graph->arena, plan, place_spans(program, &rooms, plan));
}
