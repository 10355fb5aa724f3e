/* SPDX-License-Identifier: MIT */
#include "program/liveness.h"

#include "support/numbers.h"

/* ---- steps ---- */

static int number_block(Block *block, int step);

/* Barriers and loads have no step of their own; a wavefront has that of its first call. A block begins and ends at a
 * step of its own: that of its item, the change to the other branch, the end. */
static int number_item(Item *item, int step) {
  item->step = step;
  switch (item->kind) {
  case ITEM_BARRIER:
  case ITEM_LOAD_DIM:
    return step;
  case ITEM_WAVEFRONT:
    item->block->first = step;
    step = number_block(item->block, step);
    item->block->last = step - 1;
    return step;
  case ITEM_CALL:
  case ITEM_SET_DIM:
  case ITEM_STORE_DIM:
  case ITEM_BREAK_UNLESS:
    return step + 1;
  case ITEM_IF:
  case ITEM_LOOP:
  case ITEM_SCOPE:
    break;
  }
  item->block->first = step;
  step = item->block->last = number_block(item->block, step + 1);
  if (!item->other) return step + 1;
  item->other->first = step;
  item->other->last = number_block(item->other, step + 1);
  return item->other->last + 1;
}

static int number_block(Block *block, int step) {
  for (int i = 0; i < block->count; i++) step = number_item(block->items[i], step);
  return step;
}

/* ---- liveness ---- */

void live_at(Liveness *live, Value *value, int step) {
  int id = value_root(value)->id;
  if (live->first[id] < 0 || step < live->first[id]) live->first[id] = step;
  live->last[id] = max_int(live->last[id], step);
}

typedef struct Walk {
  const Program *program;
  Liveness live;
} Walk;

/* A value from outside a block is live from its begin to its end, because a block may run again. A loop reads its limit
 * before each iteration. */
static void touch_item(Item *item, Block *block, void *context) {
  Walk *walk = context;
  for (int a = 0; a < item->n_accesses; a++) {
    Value *value = item->accesses[a].value;
    const Block *home = home_of(walk->program, value_root(value));
    int first = item->step, last = item->step;
    for (const Block *at = block; at != home && at->outer; at = at->outer) {
      first = at->first;
      last = at->last;
    }
    if (item->block) last = (int)max_int(last, item->block->last);
    live_at(&walk->live, value, first);
    live_at(&walk->live, value, last);
  }
}

Liveness find_liveness(Program *program) {
  Graph *graph = program->graph;
  Walk walk = {.program = program, .live = {.end = number_block(program->schedule, 0)}};
  walk.live.results = program->backward ? program->backward->step : walk.live.end;
  walk.live.first = ARENA_ARRAY(graph->arena, int, program->n_values);
  walk.live.last = ARENA_ARRAY(graph->arena, int, program->n_values);
  for (int i = 0; i < program->n_values; i++) walk.live.first[i] = walk.live.last[i] = -1;
  each_item(program, touch_item, &walk);
  for (int i = 0; i < graph->n_states; i++) {
    live_at(&walk.live, graph->states[i].input, 0);
    live_at(&walk.live, graph->states[i].output, walk.live.results);
  }
  return walk.live;
}

bool is_state_value(const Graph *graph, const Value *root) {
  for (int i = 0; i < graph->n_states; i++)
    if (value_root(graph->states[i].input) == root || value_root(graph->states[i].output) == root) return true;
  return false;
}
