/* SPDX-License-Identifier: MIT */
/*
 * The inference as one function that every worker walks: pointers, then a call a kernel, with a barrier between two
 * calls only where one touches memory that the other writes.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "emit/unit.h"
#include "ir/family.h"
#include "layout/blocked.h"
#include "program/build.h"

enum { LINE_WIDTH = 118 };

/* ---- pointers ---- */

static bool read_only(const Value *root) { return root->storage == STORAGE_INPUT || root->storage == STORAGE_WEIGHTS; }

static const char *indent_of(int depth) {
  static const char spaces[] = "                                                                ";
  int width = 2 * depth;
  return spaces + (sizeof spaces - 1 - (width < 64 ? (size_t)width : 64));
}

/* ` + (64*d3)` for a view into what a loop passes over. */
static void add_places(Text *out, const Value *value) {
  for (; value->view_of; value = value->view_of) {
    if (!value->at) continue;
    text_add(out, " + (");
    dim_print_c(out, value->at);
    text_add(out, ")");
  }
}

static bool has_place(const Value *value) {
  for (; value->view_of; value = value->view_of)
    if (value->at) return true;
  return false;
}

/* The caller's buffer, or a part of it. */
static void emit_buffer(Text *out, const Value *value, const char *type, const char *list, int slot) {
  const char *constant = list[0] == 'i' ? "const " : "";
  if (!has_place(value)) {
    text_add(out, "run->%s[%d];\n", list, slot);
    return;
  }
  text_add(out, "(%s%s *)(%svoid *)((%sunsigned char *)run->%s[%d]", constant, type, constant, constant, list, slot);
  add_places(out, value);
  text_add(out, ");\n");
}

static void emit_pointer(Text *out, Value *value, int depth) {
  const Value *root = value_root(value);
  const char *type = dtype_c(value->dtype), *constant = read_only(root) ? "const " : "";
  text_add(out, "%s%s%s *const t%d = ", indent_of(depth), constant, type, value->id);
  switch (root->storage) {
  case STORAGE_INPUT:
    emit_buffer(out, value, type, "inputs", root->slot);
    break;
  case STORAGE_OUTPUT:
    emit_buffer(out, value, type, "outputs", root->slot);
    break;
  case STORAGE_ARENA:
    text_add(out, "(%s *)(void *)(run->arena + %lld", type, (long long)(root->offset + value_first_byte(value)));
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_WEIGHTS:
    text_add(out, "(const %s *)(const void *)(run->weights + %lld", type, (long long)root->offset);
    add_places(out, value);
    text_add(out, ");\n");
    break;
  case STORAGE_NONE:
    bug("t%d has no place", value->id);
  }
}

/* Of what calls in the region touch, but not those in regions within. */
static void emit_pointers(Text *out, const Program *program, const Region *region, int depth) {
  bool *done = ARENA_ARRAY(program->arena, bool, program->n_values);
  int first = region ? region->first + 1 : 0, end = region ? region->last : program->n_calls;
  for (int i = first; i < end; i++)
    for (int a = 0; a < program->calls[i]->n_accesses && program->calls[i]->region == region; a++) {
      Value *value = program->calls[i]->accesses[a].value;
      if (!done[value->id]) emit_pointer(out, value, depth);
      done[value->id] = true;
    }
}

static void emit_dims(Text *out, const Graph *graph) {
  int given = dim_given_count(graph->dims);
  for (int i = 0; i < given; i++) text_add(out, "  const int64_t d%d = run->dims[%d];\n  (void)d%d;\n", i, i, i);
  for (int i = given; i < dim_known_count(graph->dims); i++) text_add(out, "  int64_t d%d = 0;\n  (void)d%d;\n", i, i);
}

/* ---- barriers ---- */

/* Memory touched since the last barrier. */
typedef struct Pending {
  int count, capacity;
  struct Touch {
    const Node *node;
    const Access *access;
  } *list;
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

/* Two slices of what a loop passes over: slices of one thing are of one size, and whole ones apart. */
static bool slices_apart(const Value *a, const Value *b) {
  while (a->view_of && !a->at) a = a->view_of;
  while (b->view_of && !b->at) b = b->view_of;
  return a->at && b->at && a->view_of == b->view_of && a->at != b->at;
}

static bool overlap(const Access *a, const Access *b) {
  const Value *x = value_root(a->value), *y = value_root(b->value);
  if (!((a->mode | b->mode) & WRITE)) return false;
  if (x == y && (parts_apart(a->value, b->value) || slices_apart(a->value, b->value))) return false;
  if (x->storage != y->storage || x->storage == STORAGE_WEIGHTS || x->storage == STORAGE_INPUT) return false;
  if (x->storage == STORAGE_OUTPUT) return x->slot == y->slot;
  return x->offset < y->offset + value_max_bytes(y) && y->offset < x->offset + value_max_bytes(x);
}

static bool shared(const struct Touch *touch, const Node *node, const Access *access) {
  return touch->node == node && touch->access->value == access->value && touch->access->sharing && access->sharing;
}

static bool needs_barrier(const Pending *pending, const Call *call) {
  for (int i = 0; i < pending->count; i++)
    for (int a = 0; a < call->n_accesses; a++) {
      const struct Touch *touch = &pending->list[i];
      const Access *access = &call->accesses[a];
      if (overlap(touch->access, access) && !shared(touch, call->node, access)) return true;
    }
  return false;
}

static void remember(Arena *arena, Pending *pending, const Call *call) {
  int needed = pending->count + call->n_accesses;
  if (needed > pending->capacity) {
    struct Touch *list = ARENA_ARRAY(arena, struct Touch, 2 * needed);
    if (pending->count) memcpy(list, pending->list, (size_t)pending->count * sizeof *list);
    pending->list = list;
    pending->capacity = 2 * needed;
  }
  for (int a = 0; a < call->n_accesses; a++)
    pending->list[pending->count++] = (struct Touch){call->node, &call->accesses[a]};
}

/* ---- measured dims ---- */

/* A dim that a kernel has found is read once, by every worker, past the barrier that follows. */
typedef enum Found {
  FOUND_KNOWN,   /* d<i> holds it; or nobody has looked yet */
  FOUND_WRITTEN, /* by one worker, since the last barrier */
  FOUND_READY,   /* all may read it */
} Found;

static bool any_mentions(const Dim *const *dims, int count, const DimSymbol *symbol) {
  for (int i = 0; i < count; i++)
    if (dim_mentions(dims[i], symbol)) return true;
  return false;
}

static bool identifier_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* `d<index>` as a word of the text. */
static bool line_mentions(const char *text, int index) {
  char name[16];
  int length = snprintf(name, sizeof name, "d%d", index);
  for (const char *at = strstr(text, name); at; at = strstr(at + length, name)) {
    bool begins = at == text || !identifier_char(at[-1]);
    if (begins && !identifier_char(at[length])) return true;
  }
  return false;
}

static bool call_mentions(const Call *call, const DimSymbol *symbol) {
  if (call->line) return line_mentions(call->text, symbol->index);
  for (int i = 0; i < call->n_guard; i++)
    if (any_mentions(call->guard[i].list, call->guard[i].count, symbol)) return true;
  for (int i = 0; i < call->n_accesses; i++)
    if (dim_mentions(call->accesses[i].offset, symbol)) return true;
  for (int i = 0; i < call->kernel->n_parameters; i++)
    if (any_mentions(call->operands[i].dims, call->operands[i].dims ? call->operands[i].count : 0, symbol)) return true;
  return false;
}

/* Does one of the calls, which run together, need a dim in this state? */
static bool any_needs(const Program *program, int first, int last, int symbol) {
  const Wavefront *wavefront = program->calls[first]->wavefront;
  const DimSymbol *wanted = dim_symbol_at(program->graph->dims, symbol);
  if (wavefront && dim_mentions(wavefront->steps, wanted)) return true;
  for (int i = first; i <= last; i++)
    if (call_mentions(program->calls[i], wanted)) return true;
  return false;
}

static bool needs_written(const Program *program, const Found *found, int first, int last) {
  int count = dim_known_count(program->graph->dims);
  for (int s = dim_given_count(program->graph->dims); s < count; s++)
    if (found[s] == FOUND_WRITTEN && any_needs(program, first, last, s)) return true;
  return false;
}

static void pass_barrier(const Program *program, Found *found) {
  for (int s = 0; s < dim_known_count(program->graph->dims); s++)
    if (found[s] == FOUND_WRITTEN) found[s] = FOUND_READY;
}

static void read_dim(Text *out, const Program *program, Found *found, int symbol, int depth) {
  text_add(out, "%sd%d = run->measured[%d];\n", indent_of(depth), symbol,
           symbol - dim_given_count(program->graph->dims));
  found[symbol] = FOUND_KNOWN;
}

static void read_found(Text *out, const Program *program, Found *found, int first, int last, int depth) {
  for (int s = 0; s < dim_known_count(program->graph->dims); s++)
    if (found[s] == FOUND_READY && any_needs(program, first, last, s)) read_dim(out, program, found, s, depth);
}

static void read_all_found(Text *out, const Program *program, Found *found, int depth) {
  for (int s = 0; s < dim_known_count(program->graph->dims); s++)
    if (found[s] == FOUND_READY) read_dim(out, program, found, s, depth);
}

static void note_written(const Program *program, Found *found, int first, int last) {
  for (int i = first; i <= last; i++)
    for (int k = 0; k < program->calls[i]->n_found; k++) found[program->calls[i]->found[k]->index] = FOUND_WRITTEN;
}

/* ---- calls ---- */

/* `(d5 > 0 && d6 > 0) || (d7 > 0)` */
static void emit_guard(Text *out, const Call *call) {
  for (int i = 0; i < call->n_guard; i++) {
    text_add(out, i ? " || (" : "(");
    for (int k = 0; k < call->guard[i].count; k++) {
      if (k) text_add(out, " && ");
      dim_print_c(out, call->guard[i].list[k]);
      text_add(out, " > 0");
    }
    text_add(out, ")");
  }
}

static void emit_call(Unit *unit, const Program *program, int index, const char *indent) {
  Text *out = &unit->text;
  const Call *call = program->calls[index];
  const Node *node = call->node;
  mark_node(unit, node);
  text_add(out, "\n%s/* n%d %s%s%s: %.3g MFLOP, %.3g MB */\n", indent, node->id, node->op->name,
           node->schedule ? " " : "", node->schedule ? node->schedule->text : "", call->flops * 1e-6,
           call->bytes * 1e-6);
  size_t line = out->length;
  if (call->guard) {
    text_add(out, "%sif (", indent);
    emit_guard(out, call);
    text_add(out, ")\n  ");
  }
  text_add(out, "%s%s(", indent, call->kernel->function);
  for (int i = 0; i < call->kernel->n_parameters; i++) {
    Text expression = text_new(program->arena);
    emit_operand(&expression, program, call, i);
    if (i) text_add(out, ",");
    if (out->length + expression.length + 2 - line > LINE_WIDTH) {
      line = out->length + 1;
      text_add(out, "\n%s   ", indent);
    }
    text_add(out, i ? " %s" : "%s", expression.data);
  }
  text_add(out, ");\n");
  mark_node(unit, NULL);
  text_add(out, "%sif (run->stamps) module_stamp(run, team, %d);\n", indent, call->step);
}

/* ---- wavefronts ---- */

static int layer_of_call(const Program *program, int index) { return program->calls[index]->layer; }

/* Each turn begins with a barrier, the first one too: calls before the loop need none of their own. */
static void emit_wavefront(Unit *unit, const Program *program, int first, int last, int depth) {
  Text *out = &unit->text;
  const char *indent = indent_of(depth), *inner = indent_of(depth + 1);
  const Wavefront *wavefront = program->calls[first]->wavefront;
  text_add(out, "\n%s/* %d layers as a wavefront, in chunks of %d steps */\n", indent, wavefront->layers,
           wavefront->chunk);
  text_add(out, "%sWave wave%d = {.layers = %d, .steps = ", indent, first, wavefront->layers);
  dim_print_c(out, wavefront->steps);
  text_add(out, ", .chunk = %d, .done = (int64_t[%d]){0}};\n", wavefront->chunk, wavefront->layers);
  text_add(out, "%swhile (wave_turn(&wave%d, team)) {\n%sTeam alone = {.size = 1};\n", indent, first, inner);
  text_add(out, "%sconst int64_t d%d = wave%d.first, d%d = wave%d.count;\n%steam_barrier(team);\n", inner,
           wavefront->first->index, first, wavefront->count->index, first, inner);
  for (int i = first; i <= last; i++) {
    int layer = layer_of_call(program, i);
    if (i == first || layer_of_call(program, i - 1) != layer)
      text_add(out, "%sif (wave%d.layer == %d) {", inner, first, layer);
    emit_call(unit, program, i, indent_of(depth + 2));
    if (i == last || layer_of_call(program, i + 1) != layer) text_add(out, "%s}\n", inner);
  }
  text_add(out, "%s}\n", indent);
}

/* One layer's calls, on the whole team. */
static void emit_chunks(Unit *unit, const Program *program, int first, int last, int depth) {
  Text *out = &unit->text;
  const char *indent = indent_of(depth), *inner = indent_of(depth + 1);
  const Wavefront *chunks = program->calls[first]->wavefront;
  Text steps = text_new(program->arena);
  dim_print_c(&steps, chunks->steps);
  int at = chunks->first->index;
  text_add(out, "\n%sfor (int64_t d%d = 0; d%d < %s; d%d += %d) {\n", indent, at, at, steps.data, at, chunks->chunk);
  text_add(out, "%sconst int64_t left = %s - d%d, d%d = left < %d ? left : %d;\n", inner, steps.data, at,
           chunks->count->index, chunks->chunk, chunks->chunk);
  for (int i = first; i <= last; i++) {
    text_add(out, "%steam_barrier(team);\n", inner);
    emit_call(unit, program, i, inner);
  }
  text_add(out, "%s}\n", indent);
}

/* ---- the schedule ---- */

/* Where the text has come to. */
typedef struct Progress {
  Unit *unit;
  const Program *program;
  Pending pending;
  Found *found; /* by symbol */
  int depth;
} Progress;

static void emit_barrier(Progress *p) {
  text_add(&p->unit->text, "%steam_barrier(team);\n", indent_of(p->depth));
  pass_barrier(p->program, p->found);
  p->pending.count = 0;
}

/* Before a region begins and before it ends all workers meet, and know all that has been measured: whether it is
 * entered, and how often, makes no difference to what follows. */
static void emit_border(Progress *p, const Call *line) {
  Text *out = &p->unit->text;
  if (p->pending.count) emit_barrier(p);
  read_all_found(out, p->program, p->found, p->depth);
  if (line->line != LINE_OPENS) p->depth--;
  text_add(out, line->line == LINE_OPENS ? "\n%s%s /* n%d %s */\n" : "%s%s\n", indent_of(p->depth), line->text,
           line->node->id, line->node->op->name);
  if (line->line == LINE_CLOSES) return;
  remember(p->program->arena, &p->pending, line); /* others may still look at the condition */
  p->depth++;
  emit_pointers(out, p->program, line->opens, p->depth);
}

static void emit_line(Progress *p, const Call *line) {
  text_add(&p->unit->text, "%s%s\n", indent_of(p->depth), line->text);
}

/* The calls first .. last, which run together. */
static void emit_together(Progress *p, int first, int last) {
  const Program *program = p->program;
  const Call *call = program->calls[first];
  bool written = needs_written(program, p->found, first, last);
  if (call->wavefront && dim_lower(call->wavefront->steps) < 1) written = true; /* there may be no turn at all */
  if (written || (!call->wavefront && needs_barrier(&p->pending, call))) emit_barrier(p);
  read_found(&p->unit->text, program, p->found, first, last, p->depth);
  if (call->wavefront) p->pending.count = 0;
  if (call->line)
    emit_line(p, call);
  else if (call->wavefront && call->wavefront->layers == 1)
    emit_chunks(p->unit, program, first, last, p->depth);
  else if (call->wavefront)
    emit_wavefront(p->unit, program, first, last, p->depth);
  else
    emit_call(p->unit, program, first, indent_of(p->depth));
  if (call->wavefront) pass_barrier(program, p->found);
  for (int c = first; c <= last; c++) remember(program->arena, &p->pending, program->calls[c]);
  note_written(program, p->found, first, last);
}

void emit_schedule(Unit *unit, Program *program) {
  Text *out = &unit->text;
  Progress p = {.unit = unit, .program = program, .depth = 1};
  text_add(out, "\n/* ---- schedule ---- */\n\nstatic void schedule(const Run *run, Team *team) {\n");
  emit_dims(out, program->graph);
  emit_pointers(out, program, NULL, p.depth);
  p.found = ARENA_ARRAY(program->arena, Found, dim_known_count(program->graph->dims));
  for (int i = 0, last; i < program->n_calls; i = last + 1) {
    calls_beside(program, i, &i, &last);
    if (program->calls[i]->line > LINE_PLAIN)
      emit_border(&p, program->calls[i]);
    else
      emit_together(&p, i, last);
  }
  text_add(out, program->n_calls ? "}\n" : "  (void)run, (void)team;\n}\n");
}
