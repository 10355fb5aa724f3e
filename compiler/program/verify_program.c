/* SPDX-License-Identifier: MIT */
/*
 * Walks the items as a worker does, loops twice, and tracks which value each piece of memory holds, what was touched
 * since the last barrier, and which dims are known. It uses no liveness, so it finds mistakes of the passes that do.
 */
#include "program/verify_program.h"

#include <string.h>

#include "passes.h"
#include "program/overlap.h"
#include "program/program.h"
#include "support/diagnostics.h"
#include "support/list.h"

typedef enum Knowledge { DIM_UNKNOWN, DIM_FOUND, DIM_READY, DIM_KNOWN } Knowledge;

/* The facts at a point of the schedule. */
typedef struct Facts {
  bool *holds;     /* by value id, of roots: their memory holds what was written to them */
  Knowledge *dims; /* by symbol; FOUND: by one worker, since the last barrier; READY: all workers may load it */
} Facts;

typedef struct Touch {
  const Item *item;
  const Access *access;
} Touch;

typedef struct Walk {
  const Program *program;
  ProgramStage stage;
  int n_symbols;
  Facts facts;
  int n_touches, touch_capacity, checked; /* touches before `checked` must not conflict with later ones */
  Touch *touches;                         /* since the last barrier */
  bool again;                             /* in a loop's second iteration */
  const char *mistake;                    /* NULL: none so far */
} Walk;

/* ---- mistakes ---- */

static void tell(Walk *walk, const Item *item, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void tell(Walk *walk, const Item *item, const char *format, ...) {
  if (walk->mistake) return;
  va_list arguments;
  va_start(arguments, format);
  walk->mistake = mistake_text(walk->program, item, format, arguments);
  va_end(arguments);
}

/* ---- states ---- */

static Facts facts_copy(const Walk *walk) {
  Facts copy = {
      .holds = arena_copy(walk->program->arena, walk->facts.holds, (size_t)walk->program->n_values + 1),
      .dims = arena_copy(walk->program->arena, walk->facts.dims, ((size_t)walk->n_symbols + 1) * sizeof *copy.dims)};
  return copy;
}

/* After either branch. */
static void facts_meet(Walk *walk, const Facts *other) {
  for (int i = 0; i < walk->program->n_values; i++) walk->facts.holds[i] &= other->holds[i];
  for (int s = 0; s < walk->n_symbols; s++)
    if (walk->facts.dims[s] != other->dims[s]) walk->facts.dims[s] = DIM_UNKNOWN;
}

/* ---- contents of memory ---- */

static bool is_empty(const Value *value) { return value_max_bytes(value) == 0; }

/* A node's working memory may hold anything: its kernels write before they read. */
static bool is_scratch(const Item *item, const Value *root) {
  return item->node && item->node->scratch && value_root(item->node->scratch) == root;
}

static void check_read(Walk *walk, const Item *item, const Access *access) {
  const Value *root = value_root(access->value);
  bool works_there = access->mode == READ_WRITE && is_scratch(item, root);
  if (!(access->mode & READ) || works_there || walk->facts.holds[root->id] || is_empty(root)) return;
  tell(walk, item, "reads t%d, whose memory does not hold it: it was not written, or something else was written there",
       access->value->id);
}

static void write_root(Walk *walk, const Value *root) {
  for (int i = 0; i < walk->program->n_values; i++) {
    const Value *other = walk->program->values[i];
    if (walk->stage >= PROGRAM_PLANNED && walk->facts.holds[i] && other != root && !other->view_of &&
        roots_overlap(root, other))
      walk->facts.holds[i] = false;
  }
  walk->facts.holds[root->id] = true;
}

/* ---- touches since the last barrier ---- */

static void check_conflicts(Walk *walk, const Item *item) {
  for (int i = 0; i < walk->checked; i++)
    for (int a = 0; a < item->n_accesses; a++) {
      const Touch *touch = &walk->touches[i];
      const Access *access = &item->accesses[a];
      if (!accesses_conflict(touch->access, access)) continue;
      if (accesses_shared(touch->item->node, touch->access, item->node, access)) continue;
      tell(walk, item, "%s t%d, and there is no barrier since n%d %s t%d", access->mode == READ ? "reads" : "writes",
           access->value->id, touch->item->node->id, touch->access->mode == READ ? "read" : "wrote",
           touch->access->value->id);
    }
}

static void remember(Walk *walk, const Item *item) {
  for (int a = 0; a < item->n_accesses; a++)
    *LIST_ADD(walk->program->arena, walk->touches, walk->n_touches, walk->touch_capacity) =
        (Touch){item, &item->accesses[a]};
}

static void pass_barrier(Walk *walk) {
  walk->n_touches = walk->checked = 0;
  for (int s = 0; s < walk->n_symbols; s++)
    if (walk->facts.dims[s] == DIM_FOUND) walk->facts.dims[s] = DIM_READY;
}

/* ---- dims ---- */

static void check_dims(Walk *walk, const Item *item) {
  for (int s = 0; s < walk->n_symbols; s++) {
    const DimSymbol *symbol = dim_symbol_at(walk->program->graph->dims, s);
    if (walk->facts.dims[s] != DIM_KNOWN && item_needs(item, symbol))
      tell(walk, item, "needs %s, which is not known yet", symbol->name);
  }
}

static void load_dim(Walk *walk, const Item *item) {
  if (walk->facts.dims[item->symbol->index] != DIM_READY)
    tell(walk, item, "no kernel has found %s, or there is no barrier since", item->symbol->name);
  walk->facts.dims[item->symbol->index] = DIM_KNOWN;
}

/* ---- items ---- */

/* The item without its blocks. */
static void walk_itself(Walk *walk, const Item *item) {
  const char *mistake = item_mistake(walk->program, item, walk->stage);
  if (mistake && !walk->mistake) walk->mistake = mistake;
  if (walk->stage >= PROGRAM_WHOLE) check_dims(walk, item);
  for (int a = 0; a < item->n_accesses; a++) check_read(walk, item, &item->accesses[a]);
  if (walk->stage >= PROGRAM_ORDERED) check_conflicts(walk, item);
  for (int a = 0; a < item->n_accesses; a++)
    if (item->accesses[a].mode & WRITE) write_root(walk, value_root(item->accesses[a].value));
  remember(walk, item);
  for (int k = 0; item->call && k < item->call->n_found; k++) walk->facts.dims[item->call->found[k]->index] = DIM_FOUND;
}

static void walk_block(Walk *walk, const Block *block);

/* What a branch returns empty, no call writes. */
static void hold_empty_results(Walk *walk, const Item *item, AttributeName branch) {
  const Attribute *given = node_attribute(item->node, branch);
  for (int i = 0; given && i < given->graph->n_outputs; i++)
    if (is_empty(given->graph->outputs[i])) walk->facts.holds[value_root(given->graph->outputs[i])->id] = true;
}

/* Both branches from the same facts; touches of both remain. */
static void walk_branches(Walk *walk, const Item *item) {
  Facts before = facts_copy(walk);
  walk_block(walk, item->block);
  hold_empty_results(walk, item, ATTR_then_branch);
  Facts then = walk->facts;
  walk->facts = before;
  remember(walk, item);
  walk_block(walk, item->other);
  hold_empty_results(walk, item, ATTR_else_branch);
  facts_meet(walk, &then);
}

/* What a loop ends by is read once more, behind the last barrier within it. */
static void walk_ends(Walk *walk, const Item *loop) {
  for (int a = 0; a < loop->n_accesses; a++) check_read(walk, loop, &loop->accesses[a]);
  remember(walk, loop);
  for (int i = 0; i < loop->block->count; i++)
    if (loop->block->items[i]->kind == ITEM_BREAK_UNLESS) remember(walk, loop->block->items[i]);
}

/* Twice, so that an iteration is checked against the next one: of loops within, the first time is enough, so that loops
 * in loops do not take twice the time each. Dims found in the body are unknown afterwards, because there may be no
 * iteration. */
static void walk_loop(Walk *walk, const Item *item) {
  walk->facts.dims[item->symbol->index] = DIM_KNOWN;
  Facts before = facts_copy(walk);
  walk_block(walk, item->block);
  walk_ends(walk, item);
  if (!walk->again) {
    walk->again = true;
    walk_block(walk, item->block);
    walk_ends(walk, item);
    walk->again = false;
  }
  for (int s = 0; s < walk->n_symbols; s++)
    if (before.dims[s] != DIM_KNOWN) walk->facts.dims[s] = DIM_UNKNOWN;
}

/* One worker runs the calls of a layer, and the wavefront keeps layers at different steps: calls of a turn do not
 * conflict. */
static void walk_turn(Walk *walk, const Item *item) {
  int checked = walk->checked;
  for (int i = 0; i < item->block->count; i++) {
    const Item *inner = item->block->items[i];
    walk->checked = checked;
    if (inner->kind == ITEM_BARRIER) {
      pass_barrier(walk);
      checked = 0;
    } else {
      walk_itself(walk, inner);
    }
  }
  walk->checked = walk->n_touches;
}

static void walk_wavefront(Walk *walk, const Item *item) {
  const Wavefront *wavefront = item->wavefront;
  walk->facts.dims[wavefront->first->index] = walk->facts.dims[wavefront->count->index] = DIM_KNOWN;
  for (int turn = 0; turn < 2; turn++) {
    if (wavefront->layers > 1)
      walk_turn(walk, item);
    else
      walk_block(walk, item->block);
  }
  walk->facts.dims[wavefront->first->index] = walk->facts.dims[wavefront->count->index] = DIM_UNKNOWN;
}

static void check_end(Walk *walk, const Value *value, const char *what) {
  const Value *root = value_root((Value *)value);
  if (!walk->facts.holds[root->id] && !is_empty(root))
    tell(walk, NULL, "at the end t%d, %s, is not in its memory", value->id, what);
}

/* Where the run ends, or may end. */
static void check_results(Walk *walk) {
  const Graph *graph = walk->program->graph;
  for (int i = 0; i < graph_own_outputs(graph); i++) check_end(walk, graph->outputs[i], "an output");
  for (int i = 0; i < graph->n_states; i++) check_end(walk, graph->states[i].output, "a state");
}

static void walk_item(Walk *walk, const Item *item) {
  if (item->kind == ITEM_BARRIER) {
    pass_barrier(walk);
    return;
  }
  if (item->kind == ITEM_LOAD_DIM) {
    load_dim(walk, item);
    return;
  }
  walk->checked = walk->n_touches;
  walk_itself(walk, item);
  walk->checked = walk->n_touches;
  if (item->kind == ITEM_SET_DIM) walk->facts.dims[item->symbol->index] = DIM_KNOWN;
  if (item->kind == ITEM_IF) walk_branches(walk, item);
  if (item->kind == ITEM_LOOP) walk_loop(walk, item);
  if (item->kind == ITEM_SCOPE) walk_block(walk, item->block);
  if (item->kind == ITEM_WAVEFRONT) walk_wavefront(walk, item);
}

static void walk_block(Walk *walk, const Block *block) {
  for (int i = 0; block && i < block->count && !walk->mistake; i++) {
    if (block->items[i] == walk->program->backward) check_results(walk);
    walk_item(walk, block->items[i]);
  }
}

/* ---- the whole ---- */

/* Known before the run: inputs, constants, states. */
static void begin(Walk *walk) {
  const Program *program = walk->program;
  walk->n_symbols = dim_symbol_count(program->graph->dims);
  walk->facts.holds = ARENA_ARRAY(program->arena, bool, program->n_values + 1);
  walk->facts.dims = ARENA_ARRAY(program->arena, Knowledge, walk->n_symbols + 1);
  for (int i = 0; i < program->n_values; i++)
    walk->facts.holds[i] = program->values[i]->data || (program->values[i]->is_input && !program->values[i]->view_of);
  for (int s = 0; s < dim_given_count(program->graph->dims); s++) walk->facts.dims[s] = DIM_KNOWN;
}

const char *program_mistake(const Program *program, ProgramStage stage) {
  const Graph *graph = program->graph;
  Walk walk = {.program = program, .stage = stage};
  begin(&walk);
  walk_block(&walk, program->schedule);
  if (!program->backward) check_results(&walk);
  for (int i = graph_own_outputs(graph); i < graph->n_outputs; i++) check_end(&walk, graph->outputs[i], "a gradient");
  return walk.mistake;
}

void verify_stage(const Program *program, ProgramStage stage) {
  const char *mistake = program_mistake(program, stage);
  if (mistake) bug("%s", mistake);
}

/* needs: all other passes. keeps: everything. bug() if the program is wrong. */
void verify_program(Program *program) { verify_stage(program, PROGRAM_WHOLE); }
