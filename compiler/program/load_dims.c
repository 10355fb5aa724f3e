/* SPDX-License-Identifier: MIT */
/*
 * Every worker loads a data-dependent dim once, after the barrier that follows its kernel: before the first item that
 * needs it, or before a block begins or ends, because the block may not run.
 */
#include "passes.h"
#include "program/build_internal.h"
#include "program/program.h"

typedef enum Found {
  FOUND_KNOWN,   /* loaded, or not found yet */
  FOUND_WRITTEN, /* by one worker, since the last barrier */
  FOUND_READY,   /* all may read it */
} Found;

typedef struct Loads {
  const Program *program;
  int n_symbols;
  Found *found; /* by symbol */
} Loads;

static void pass_barrier(Loads *loads) {
  for (int s = 0; s < loads->n_symbols; s++)
    if (loads->found[s] == FOUND_WRITTEN) loads->found[s] = FOUND_READY;
}

static void note_found(Loads *loads, const Call *call) {
  for (int k = 0; call && k < call->n_found; k++) loads->found[call->found[k]->index] = FOUND_WRITTEN;
}

static bool needs(const Item *item, const DimSymbol *symbol) {
  return item->wavefront ? wavefront_needs(item, symbol) : item_needs(item, symbol);
}

/* Loads the ready dims that the item needs; NULL: all ready dims. */
static void add_loads(Loads *loads, Block *block, const Item *item) {
  for (int s = 0; s < loads->n_symbols; s++) {
    const DimSymbol *symbol = dim_symbol_at(loads->program->graph->dims, s);
    if (loads->found[s] != FOUND_READY || (item && !needs(item, symbol))) continue;
    Item *load = item_new(loads->program->arena, ITEM_LOAD_DIM, NULL);
    load->symbol = symbol;
    block_add(loads->program->arena, block, load);
    loads->found[s] = FOUND_KNOWN;
  }
}

static void load_in_block(Loads *loads, Block *block);

static void load_at(Loads *loads, Block *block, Item *item) {
  bool region = item->block && item->kind != ITEM_WAVEFRONT;
  if (item->kind == ITEM_BARRIER)
    pass_barrier(loads);
  else
    add_loads(loads, block, region ? NULL : item);
  block_add(loads->program->arena, block, item);
  if (region) load_in_block(loads, item->block);
  if (item->other) load_in_block(loads, item->other);
  if (item->kind == ITEM_WAVEFRONT) {
    pass_barrier(loads); /* each turn has one */
    for (int i = 0; i < item->block->count; i++) note_found(loads, item->block->items[i]->call);
  }
  note_found(loads, item->call);
}

static void load_in_block(Loads *loads, Block *block) {
  ItemList old = take_items(block);
  for (int i = 0; i < old.count; i++) load_at(loads, block, old.items[i]);
  if (block->outer) add_loads(loads, block, NULL);
}

/* needs: place_barriers. keeps: the items and their order. Adds loads of data-dependent dims. */
void load_dims(Program *program) {
  Loads loads = {.program = program, .n_symbols = dim_known_count(program->graph->dims)};
  loads.found = ARENA_ARRAY(program->arena, Found, loads.n_symbols + 1);
  load_in_block(&loads, program->schedule);
}
