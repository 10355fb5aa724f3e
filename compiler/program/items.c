/* SPDX-License-Identifier: MIT */
/* Items and their blocks. */
#include "ir/family.h"
#include "program/build.h"
#include "program/build_internal.h"
#include "support/diagnostics.h"
#include "support/list.h"

static Block *block_new(Arena *arena, const Item *owner, const Block *outer) {
  Block *block = ARENA_NEW(arena, Block);
  *block = (Block){.owner = owner, .outer = outer};
  return block;
}

Program *program_new(Graph *graph) {
  Program *program = ARENA_NEW(graph->arena, Program);
  program->arena = graph->arena;
  program->graph = graph;
  program->schedule = program->block = block_new(graph->arena, NULL, NULL);
  return program;
}

Item *item_new(Arena *arena, ItemKind kind, const Node *node) {
  Item *item = ARENA_NEW(arena, Item);
  item->kind = kind;
  item->node = node;
  return item;
}

void block_add(Arena *arena, Block *block, Item *item) {
  *LIST_ADD(arena, block->items, block->count, block->capacity) = item;
}

ItemList take_items(Block *block) {
  ItemList taken = {block->count, block->items};
  block->count = block->capacity = 0;
  block->items = NULL;
  return taken;
}

static void expect_known(const Program *program, const Value *value) {
  if (value->id < 0 || value->id >= program->n_values || program->values[value->id] != value)
    bug("value %d is none of the program's", value->id);
}

int item_access(const Program *program, Item *item, Access access) {
  expect_known(program, access.value);
  *LIST_ADD(program->arena, item->accesses, item->n_accesses, item->access_capacity) = access;
  return item->n_accesses - 1;
}

/* ---- control flow ---- */

static Item *add_item(Program *program, ItemKind kind, const Node *node) {
  Item *item = item_new(program->arena, kind, node);
  block_add(program->arena, program->block, item);
  return item;
}

static void add_condition(Program *program, Item *item, const Value *value) {
  const Dim *zero = dim_const(program->graph->dims, 0);
  if (value) item_access(program, item, (Access){.value = (Value *)value, .offset = zero, .mode = READ});
}

static Block *open_block(Program *program, const Item *owner) {
  return program->block = block_new(program->arena, owner, program->block);
}

void program_end(Program *program) {
  if (!program->block->outer) bug("the end of no block");
  program->block = (Block *)program->block->outer;
  program->layer = 0;
}

void program_if(Program *program, const Node *node, const Value *condition) {
  Item *item = add_item(program, ITEM_IF, node);
  add_condition(program, item, condition);
  item->block = open_block(program, item);
}

void program_else(Program *program) {
  Item *item = (Item *)program->block->owner;
  program_end(program);
  item->other = open_block(program, item);
}

void program_loop(Program *program, const Node *node, const DimSymbol *symbol, const Dim *trip, const Value *limit) {
  Item *item = add_item(program, ITEM_LOOP, node);
  item->symbol = symbol;
  item->dim = trip;
  if (!trip) add_condition(program, item, limit);
  item->block = open_block(program, item);
}

void program_scope(Program *program, const Node *node) {
  Item *item = add_item(program, ITEM_SCOPE, node);
  item->block = open_block(program, item);
}

const Wavefront *program_wavefront(Program *program, const Node *node, int layers, int chunk, const Dim *steps) {
  DimTable *dims = program->graph->dims;
  Item *item = add_item(program, ITEM_WAVEFRONT, node);
  Wavefront *wavefront = item->wavefront = ARENA_NEW(program->arena, Wavefront);
  *wavefront = (Wavefront){.layers = layers, .chunk = chunk, .steps = steps};
  wavefront->first = dim_symbol_own(dims, DIM_LOCAL, 0, dim_upper(steps) > 0 ? dim_upper(steps) - 1 : 0);
  wavefront->count = dim_symbol_own(dims, DIM_LOCAL, 1, chunk);
  item->block = open_block(program, item);
  return wavefront;
}

void program_layer(Program *program, int layer) { program->layer = layer; }

void program_break_unless(Program *program, const Node *node, const Value *condition) {
  add_condition(program, add_item(program, ITEM_BREAK_UNLESS, node), condition);
}

void program_set_dim(Program *program, const Node *node, const DimSymbol *symbol, const Dim *dim) {
  Item *item = add_item(program, ITEM_SET_DIM, node);
  item->symbol = symbol;
  item->dim = dim;
}

void program_store_dim(Program *program, const Node *node, const DimSymbol *symbol) {
  add_item(program, ITEM_STORE_DIM, node)->symbol = symbol;
}

/* ---- all items ---- */

static void visit_block(Block *block, void (*visit)(Item *, Block *, void *), void *context) {
  for (int i = 0; block && i < block->count; i++) {
    visit(block->items[i], block, context);
    visit_block(block->items[i]->block, visit, context);
    visit_block(block->items[i]->other, visit, context);
  }
}

void each_item(const Program *program, void (*visit)(Item *, Block *, void *), void *context) {
  visit_block(program->schedule, visit, context);
}

/* ---- the dims that an item needs ---- */

static bool any_mentions(const Dim *const *dims, int count, const DimSymbol *symbol) {
  for (int i = 0; i < count; i++)
    if (dim_mentions(dims[i], symbol)) return true;
  return false;
}

bool call_finds(const Call *call, const Dim *extent) {
  for (int i = 0; i < call->n_found; i++)
    if (dim_mentions(extent, call->found[i])) return true;
  return false;
}

const char *call_schedule(const Call *call) {
  const Schedule *schedule = call->item->node->schedule;
  return call->schedule ? call->schedule : schedule ? schedule->text : NULL;
}

/* The profile needs what the call costs; but not the dims that it finds itself. */
static bool cost_needs(const Call *call, const Cost *cost, const DimSymbol *symbol) {
  for (int i = 0; i < call->n_found; i++)
    if (call->found[i] == symbol) return false;
  for (int i = 0; i < cost->count; i++)
    if (any_mentions(cost->terms[i].extents, cost->terms[i].n, symbol)) return true;
  return false;
}

static bool call_needs(const Call *call, const DimSymbol *symbol) {
  for (int i = 0; i < call->n_guard; i++)
    if (any_mentions(call->guard[i].list, call->guard[i].count, symbol)) return true;
  for (int i = 0; i < call->kernel->n_parameters; i++)
    if (any_mentions(call->operands[i].dims, call->operands[i].dims ? call->operands[i].count : 0, symbol)) return true;
  return cost_needs(call, &call->flops_terms, symbol) || cost_needs(call, &call->bytes_terms, symbol);
}

bool item_needs(const Item *item, const DimSymbol *symbol) {
  if (item->call && call_needs(item->call, symbol)) return true;
  for (int i = 0; i < item->n_accesses; i++)
    if (dim_mentions(item->accesses[i].offset, symbol)) return true;
  if (item->kind == ITEM_STORE_DIM && item->symbol == symbol) return true;
  if (item->dim && dim_mentions(item->dim, symbol)) return true;
  return item->wavefront && dim_mentions(item->wavefront->steps, symbol);
}

bool wavefront_needs(const Item *item, const DimSymbol *symbol) {
  for (int i = 0; i < item->block->count; i++)
    if (item_needs(item->block->items[i], symbol)) return true;
  return item_needs(item, symbol);
}
