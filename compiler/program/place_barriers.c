/* SPDX-License-Identifier: MIT */
/*
 * A barrier is placed between two items only if one touches memory that the other writes, or needs a dim that the other
 * finds. There is one before a block begins and before it ends, so that items after it need not know whether it ran.
 * But what a loop ends by is read behind the last barrier within it.
 */
#include "passes.h"
#include "program/build_internal.h"
#include "program/overlap.h"
#include "program/program.h"
#include "support/list.h"

typedef struct Touch {
  const Node *node;
  const Access *access;
} Touch;

/* What has happened since the last barrier. */
typedef struct Pending {
  const Program *program;
  int count, capacity;
  Touch *list;   /* memory that was touched */
  bool *written; /* by symbol: a kernel has found it */
} Pending;

/* ---- since the last barrier ---- */

static int n_symbols(const Pending *pending) { return dim_known_count(pending->program->graph->dims); }

static void forget(Pending *pending) {
  pending->count = 0;
  for (int s = 0; s < n_symbols(pending); s++) pending->written[s] = false;
}

static void remember(Pending *pending, const Item *item) {
  for (int a = 0; a < item->n_accesses; a++)
    *LIST_ADD(pending->program->arena, pending->list, pending->count, pending->capacity) =
        (Touch){item->node, &item->accesses[a]};
  for (int k = 0; item->call && k < item->call->n_found; k++) pending->written[item->call->found[k]->index] = true;
}

static bool touches_pending(const Pending *pending, const Item *item) {
  for (int i = 0; i < pending->count; i++)
    for (int a = 0; a < item->n_accesses; a++) {
      const Touch *touch = &pending->list[i];
      const Access *access = &item->accesses[a];
      if (accesses_conflict(touch->access, access) && !accesses_shared(touch->node, touch->access, item->node, access))
        return true;
    }
  return false;
}

static bool needs_found(const Pending *pending, const Item *item) {
  bool (*needs)(const Item *, const DimSymbol *) = item->wavefront ? wavefront_needs : item_needs;
  for (int s = 0; s < n_symbols(pending); s++)
    if (pending->written[s] && needs(item, dim_symbol_at(pending->program->graph->dims, s))) return true;
  return false;
}

/* ---- items ---- */

static void add_barrier(Pending *pending, Block *block) {
  block_add(pending->program->arena, block, item_new(pending->program->arena, ITEM_BARRIER, NULL));
  forget(pending);
}

static void place_in_block(Pending *pending, Block *block);

/* Each turn begins with a barrier, the first one too: nothing before the loop needs one of its own, unless there may be
 * no turn at all. The calls of a lone layer are run by the whole team, with barriers as outside the loop. */
static void place_in_wavefront(Pending *pending, Item *item) {
  ItemList old = take_items(item->block);
  for (int i = 0; i < old.count; i++) {
    bool conflicts = item->wavefront->layers == 1 && touches_pending(pending, old.items[i]);
    if (i == 0 || conflicts) add_barrier(pending, item->block);
    block_add(pending->program->arena, item->block, old.items[i]);
    if (item->wavefront->layers == 1) remember(pending, old.items[i]);
  }
  for (int i = 0; i < old.count; i++) remember(pending, old.items[i]);
}

static void place_at_wavefront(Pending *pending, Block *block, Item *item) {
  bool may_be_skipped = dim_lower(item->wavefront->steps) < 1;
  if (may_be_skipped || needs_found(pending, item)) add_barrier(pending, block);
  block_add(pending->program->arena, block, item);
  place_in_wavefront(pending, item);
}

/* What is looked at where a loop ends: its limit, and conditions within it. */
static void remember_ends(Pending *pending, const Item *loop) {
  remember(pending, loop);
  for (int i = 0; i < loop->block->count; i++)
    if (loop->block->items[i]->kind == ITEM_BREAK_UNLESS) remember(pending, loop->block->items[i]);
}

/* If, loop or scope. Others may still look at a condition while the first are in the block that it leads to, or behind
 * the loop that it ends. */
static void place_at_region(Pending *pending, Block *block, Item *item) {
  if (pending->count) add_barrier(pending, block);
  block_add(pending->program->arena, block, item);
  remember(pending, item);
  place_in_block(pending, item->block);
  if (item->other) {
    remember(pending, item);
    place_in_block(pending, item->other);
  }
  if (item->kind == ITEM_LOOP) remember_ends(pending, item);
}

static void place_at(Pending *pending, Block *block, Item *item) {
  if (item->kind == ITEM_WAVEFRONT) {
    place_at_wavefront(pending, block, item);
  } else if (item->block) {
    place_at_region(pending, block, item);
  } else {
    if (needs_found(pending, item) || touches_pending(pending, item)) add_barrier(pending, block);
    block_add(pending->program->arena, block, item);
    remember(pending, item);
  }
}

/* A region ends with a barrier, the schedule itself need not. */
static void place_in_block(Pending *pending, Block *block) {
  ItemList old = take_items(block);
  for (int i = 0; i < old.count; i++) place_at(pending, block, old.items[i]);
  if (block->outer && pending->count) add_barrier(pending, block);
}

/* needs: plan_memory. keeps: the items and their order. Adds barriers. */
void place_barriers(Program *program) {
  Pending pending = {.program = program};
  pending.written = ARENA_ARRAY(program->arena, bool, n_symbols(&pending) + 1);
  place_in_block(&pending, program->schedule);
}
