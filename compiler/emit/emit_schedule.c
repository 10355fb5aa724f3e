/* SPDX-License-Identifier: MIT */
/*
 * The inference as one function that every worker walks: pointers, then a call a kernel, with a barrier between two
 * calls only where one touches memory that the other writes.
 */
#include <stdio.h>
#include <string.h>

#include "emit/family.h"
#include "emit/unit.h"
#include "layout/blocked.h"

enum { LINE_WIDTH = 118 };

/* ---- pointers ---- */

static bool read_only(const Value *root) { return root->storage == STORAGE_INPUT || root->storage == STORAGE_WEIGHTS; }

static void emit_pointer(Text *out, Value *value) {
  const Value *root = value_root(value);
  const char *type = dtype_c(value->dtype), *constant = read_only(root) ? "const " : "";
  text_add(out, "  %s%s *const t%d = ", constant, type, value->id);
  switch (root->storage) {
  case STORAGE_INPUT:
    text_add(out, "run->inputs[%d];\n", root->slot);
    break;
  case STORAGE_OUTPUT:
    text_add(out, "run->outputs[%d];\n", root->slot);
    break;
  case STORAGE_ARENA:
    text_add(out, "(%s *)(void *)(run->arena + %lld);\n", type, (long long)(root->offset + value_first_byte(value)));
    break;
  case STORAGE_WEIGHTS:
    text_add(out, "(const %s *)(const void *)(run->weights + %lld);\n", type, (long long)root->offset);
    break;
  case STORAGE_NONE:
    bug("t%d has no place", value->id);
  }
}

static void emit_pointers(Text *out, const Emitter *emitter) {
  bool *done = ARENA_ARRAY(emitter->arena, bool, emitter->graph->n_values);
  for (int i = 0; i < emitter->n_calls; i++)
    for (int a = 0; a < emitter->calls[i]->n_accesses; a++) {
      Value *value = emitter->calls[i]->accesses[a].value;
      if (!done[value->id]) emit_pointer(out, value);
      done[value->id] = true;
    }
}

static void emit_dims(Text *out, const Graph *graph) {
  int given = dim_given_count(graph->dims);
  for (int i = 0; i < given; i++) text_add(out, "  const int64_t d%d = run->dims[%d];\n  (void)d%d;\n", i, i, i);
  for (int i = given; i < dim_symbol_count(graph->dims); i++) text_add(out, "  int64_t d%d = 0;\n  (void)d%d;\n", i, i);
}

/* ---- barriers ---- */

/* Memory touched since the last barrier. What calls touched that excused the next one stands from `excused` on. */
typedef struct Pending {
  int count, excused, capacity;
  Access *list;
} Pending;

/* The channel blocks of its root that a value stands in, from *begin to before *end. False if it is not in whole
 * blocks.
 */
static bool blocks_in_root(const Value *value, int64_t *begin, int64_t *end) {
  if (!value->channel_block) return false;
  int64_t blocks = (dim_value(value->shape[1]) + value->channel_block - 1) / value->channel_block;
  for (*begin = 0; value->view_of; value = value->view_of) {
    if (!value_is_part(value)) return false;
    *begin += value->first_block;
  }
  *end = *begin + blocks;
  return true;
}

/* Different channels of one tensor: slices of a concatenation, each written in its place. */
static bool parts_apart(const Value *a, const Value *b) {
  int64_t a_begin, a_end, b_begin, b_end;
  if (!blocks_in_root(a, &a_begin, &a_end) || !blocks_in_root(b, &b_begin, &b_end)) return false;
  return a_end <= b_begin || b_end <= a_begin;
}

static bool overlap(const Access *a, const Access *b) {
  const Value *x = value_root(a->value), *y = value_root(b->value);
  if (!a->writes && !b->writes) return false;
  if (x == y && parts_apart(a->value, b->value)) return false;
  if (x->storage != y->storage || x->storage == STORAGE_WEIGHTS || x->storage == STORAGE_INPUT) return false;
  if (x->storage == STORAGE_OUTPUT) return x->slot == y->slot;
  return x->offset < y->offset + value_max_bytes(y) && y->offset < x->offset + value_max_bytes(x);
}

static bool needs_barrier(const Pending *pending, const KernelCall *call) {
  for (int i = 0; i < pending->excused; i++)
    for (int a = 0; a < call->n_accesses; a++)
      if (overlap(&pending->list[i], &call->accesses[a])) return true;
  return false;
}

static void remember(Arena *arena, Pending *pending, const KernelCall *call) {
  int needed = pending->count + call->n_accesses;
  if (needed > pending->capacity) {
    Access *list = ARENA_ARRAY(arena, Access, 2 * needed);
    if (pending->count) memcpy(list, pending->list, (size_t)pending->count * sizeof *list);
    pending->list = list;
    pending->capacity = 2 * needed;
  }
  for (int a = 0; a < call->n_accesses; a++) pending->list[pending->count++] = call->accesses[a];
}

/* ---- measured dims ---- */

/* A dim that a kernel has found is read once, by every worker, past the barrier that follows. */
typedef enum Found {
  FOUND_KNOWN,   /* d<i> holds it; or nobody has looked yet */
  FOUND_WRITTEN, /* by one worker, since the last barrier */
  FOUND_READY,   /* all may read it */
} Found;

/* `d<index>` as a word of the text. */
static bool mentions(const char *text, int index) {
  char name[16];
  int length = snprintf(name, sizeof name, "d%d", index);
  for (const char *at = strstr(text, name); at; at = strstr(at + length, name)) {
    bool begins = at == text || !identifier_char(at[-1]);
    if (begins && !identifier_char(at[length])) return true;
  }
  return false;
}

static bool call_mentions(const KernelCall *call, int index) {
  bool found = call->guard && mentions(call->guard, index);
  for (int i = 0; i < call->n_arguments && !found; i++) found = mentions(call->arguments[i].expression, index);
  return found;
}

/* Does one of the calls, which run together, need a dim in this state? */
static bool any_needs(const Emitter *emitter, int first, int last, int symbol) {
  const Wavefront *wavefront = emitter->calls[first]->wavefront;
  if (wavefront && dim_mentions(wavefront->steps, dim_symbol_at(emitter->graph->dims, symbol))) return true;
  for (int i = first; i <= last; i++)
    if (call_mentions(emitter->calls[i], symbol)) return true;
  return false;
}

static bool needs_written(const Emitter *emitter, const Found *found, int first, int last) {
  int count = dim_symbol_count(emitter->graph->dims);
  for (int s = dim_given_count(emitter->graph->dims); s < count; s++)
    if (found[s] == FOUND_WRITTEN && any_needs(emitter, first, last, s)) return true;
  return false;
}

static void pass_barrier(const Emitter *emitter, Found *found) {
  for (int s = 0; s < dim_symbol_count(emitter->graph->dims); s++)
    if (found[s] == FOUND_WRITTEN) found[s] = FOUND_READY;
}

static void read_found(Text *out, const Emitter *emitter, Found *found, int first, int last) {
  int given = dim_given_count(emitter->graph->dims);
  for (int s = given; s < dim_symbol_count(emitter->graph->dims); s++) {
    if (found[s] != FOUND_READY || !any_needs(emitter, first, last, s)) continue;
    text_add(out, "  d%d = run->measured[%d];\n", s, s - given);
    found[s] = FOUND_KNOWN;
  }
}

static void note_written(const Emitter *emitter, Found *found, int first, int last) {
  for (int i = first; i <= last; i++)
    for (int m = 0; m < emitter->calls[i]->n_measured; m++)
      found[emitter->calls[i]->measured[m]->index] = FOUND_WRITTEN;
}

/* ---- calls ---- */

static void emit_call(Unit *unit, const Emitter *emitter, int index, const char *indent) {
  Text *out = &unit->text;
  const KernelCall *call = emitter->calls[index];
  const Node *node = call->node;
  mark_node(unit, node);
  text_add(out, "\n%s/* n%d %s%s%s: %.3g MFLOP, %.3g MB */\n", indent, node->id, node->op->name,
           node->schedule ? " " : "", node->schedule ? node->schedule->text : "", call->flops * 1e-6,
           call->bytes * 1e-6);
  size_t line = out->length;
  if (call->guard) text_add(out, "%sif (%s)\n  ", indent, call->guard);
  text_add(out, "%s%s(", indent, call->kernel->function);
  for (int i = 0; i < call->n_arguments; i++) {
    const char *expression = call->arguments[i].expression;
    if (i) text_add(out, ",");
    if (out->length + strlen(expression) + 2 - line > LINE_WIDTH) {
      line = out->length + 1;
      text_add(out, "\n%s   ", indent);
    }
    text_add(out, i ? " %s" : "%s", expression);
  }
  text_add(out, ");\n");
  mark_node(unit, NULL);
  text_add(out, "%sif (run->stamps) module_stamp(run, team, %d);\n", indent, index);
}

/* ---- wavefronts ---- */

static int layer_of_call(const Emitter *emitter, int index) { return emitter->calls[index]->layer; }

/* Each turn begins with a barrier, the first one too: calls before the loop need none of their own. */
static void emit_wavefront(Unit *unit, const Emitter *emitter, int first, int last) {
  Text *out = &unit->text;
  const Wavefront *wavefront = emitter->calls[first]->wavefront;
  text_add(out, "\n  /* %d layers as a wavefront, in chunks of %d steps */\n", wavefront->layers, wavefront->chunk);
  text_add(out, "  Wave wave%d = {.layers = %d, .steps = ", first, wavefront->layers);
  dim_print_c(out, wavefront->steps);
  text_add(out, ", .chunk = %d, .done = (int64_t[%d]){0}};\n", wavefront->chunk, wavefront->layers);
  text_add(out, "  while (wave_turn(&wave%d, team)) {\n    Team alone = {.size = 1};\n", first);
  text_add(out, "    const int64_t first = wave%d.first, count = wave%d.count;\n    team_barrier(team);\n", first,
           first);
  for (int i = first; i <= last; i++) {
    int layer = layer_of_call(emitter, i);
    if (i == first || layer_of_call(emitter, i - 1) != layer)
      text_add(out, "    if (wave%d.layer == %d) {", first, layer);
    emit_call(unit, emitter, i, "      ");
    if (i == last || layer_of_call(emitter, i + 1) != layer) text_add(out, "    }\n");
  }
  text_add(out, "  }\n");
}

/* One layer's calls, on the whole team. */
static void emit_chunks(Unit *unit, const Emitter *emitter, int first, int last) {
  Text *out = &unit->text;
  const Wavefront *chunks = emitter->calls[first]->wavefront;
  Text steps = text_new(emitter->arena);
  dim_print_c(&steps, chunks->steps);
  text_add(out, "\n  for (int64_t first = 0; first < %s; first += %d) {\n", steps.data, chunks->chunk);
  text_add(out, "    const int64_t left = %s - first, count = left < %d ? left : %d;\n", steps.data, chunks->chunk,
           chunks->chunk);
  for (int i = first; i <= last; i++) {
    text_add(out, "    team_barrier(team);\n");
    emit_call(unit, emitter, i, "    ");
  }
  text_add(out, "  }\n");
}

/* ---- the schedule ---- */

void emit_schedule(Unit *unit, Emitter *emitter) {
  Text *out = &unit->text;
  text_add(out, "\n/* ---- schedule ---- */\n\nstatic void schedule(const Run *run, Team *team) {\n");
  emit_dims(out, emitter->graph);
  emit_pointers(out, emitter);
  Pending pending = {0};
  Found *found = ARENA_ARRAY(emitter->arena, Found, dim_symbol_count(emitter->graph->dims));
  const KernelCall *before = NULL;
  for (int i = 0, last; i < emitter->n_calls; i = last + 1) {
    const KernelCall *call = emitter->calls[i];
    calls_beside(emitter, i, &i, &last);
    bool excused = before && before->no_barrier_after && before->node == call->node;
    if (!excused) pending.excused = pending.count;
    bool written = needs_written(emitter, found, i, last);
    bool barrier = written || (!call->wavefront && needs_barrier(&pending, call));
    if (barrier) text_add(out, "  team_barrier(team);\n");
    if (barrier) pass_barrier(emitter, found);
    read_found(out, emitter, found, i, last);
    if (barrier || call->wavefront) pending.count = pending.excused = 0;
    if (call->wavefront && call->wavefront->layers == 1)
      emit_chunks(unit, emitter, i, last);
    else if (call->wavefront)
      emit_wavefront(unit, emitter, i, last);
    else
      emit_call(unit, emitter, i, "  ");
    if (call->wavefront) pass_barrier(emitter, found);
    for (int c = i; c <= last; c++) remember(emitter->arena, &pending, emitter->calls[c]);
    note_written(emitter, found, i, last);
    before = call;
  }
  text_add(out, emitter->n_calls ? "}\n" : "  (void)run, (void)team;\n}\n");
}
