/* SPDX-License-Identifier: MIT */
/* The inference as one function that every worker walks: the program's items, in order. */
#include <inttypes.h>

#include "emit/schedule.h"
#include "emit/unit.h"
#include "ir/family.h"
#include "shapes/control.h"

enum { LINE_WIDTH = 118 };

/* `found`: what depends on the data has been found before. */
static void emit_dims(Text *out, const Graph *graph, bool found) {
  int given = dim_given_count(graph->dims);
  for (int i = 0; i < given; i++) text_add(out, "  const int64_t d%d = run->dims[%d];\n  (void)d%d;\n", i, i, i);
  for (int i = given; i < dim_known_count(graph->dims); i++) {
    const char *value = found ? arena_format(out->arena, "run->data_dims[%d]", i - given) : "0";
    text_add(out, "  int64_t d%d = %s;\n  (void)d%d;\n", i, value, i);
  }
}

/* Index of a data-dependent dim in Run.data_dims. */
static int found_index(const Program *program, const DimSymbol *symbol) {
  return symbol->index - dim_given_count(program->graph->dims);
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

static void emit_operands(Text *out, const Program *program, const Call *call, const char *indent, size_t line) {
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
}

/* ---- profiles ---- */

/* A sum of doubles: of integers it could be too large for an int. An extent that the call itself finds is its optimum:
 * no worker may read it before the next barrier. */
static void emit_cost(Text *out, const Call *call, const Cost *cost) {
  if (!cost->count) text_add(out, "0");
  for (int i = 0; i < cost->count; i++) {
    const CostTerm *term = &cost->terms[i];
    text_add(out, "%s%.17g", i ? " + " : "(double)", term->each);
    for (int k = 0; k < term->n; k++) {
      text_add(out, " * (double)");
      if (call_finds(call, term->extents[k]))
        text_add(out, "%" PRId64, dim_optimum(term->extents[k]));
      else
        dim_print_c(out, term->extents[k]);
    }
  }
}

/* In a wavefront: the chunk's part of all its steps. */
static void emit_share(Text *out, const Wavefront *wavefront) {
  if (!wavefront) return;
  text_add(out, "(double)d%d / (double)", wavefront->count->index);
  dim_print_c(out, wavefront->steps);
  text_add(out, " * ");
}

static void emit_stamp(Text *out, const Call *call, const char *indent) {
  const Wavefront *wavefront = call->wavefront;
  text_add(out, "%sif (run->profile)\n%s  module_stamp%s(run, team, %d, ", indent, indent,
           wavefront && wavefront->layers > 1 ? "_alone" : "", call->row);
  emit_share(out, wavefront);
  text_add(out, "(");
  emit_cost(out, call, &call->flops_terms);
  text_add(out, "), ");
  emit_share(out, wavefront);
  text_add(out, "(");
  emit_cost(out, call, &call->bytes_terms);
  text_add(out, "));\n");
}

static void emit_call(Unit *unit, const Program *program, const Item *item, const char *indent) {
  Text *out = &unit->text;
  const Call *call = item->call;
  const Node *node = item->node;
  const char *schedule = call_schedule(call);
  mark_node(unit, node);
  text_add(out, "\n%s/* n%d %s%s%s: %.3g MFLOP, %.3g MB */\n", indent, node->id, node->op->name, schedule ? " " : "",
           schedule ? schedule : "", call->flops * 1e-6, call->bytes * 1e-6);
  size_t line = out->length;
  if (call->guard) {
    text_add(out, "%sif (", indent);
    emit_guard(out, call);
    text_add(out, ")\n  ");
  }
  text_add(out, "%s%s(", indent, call->kernel->function);
  emit_operands(out, program, call, indent, line);
  text_add(out, ");\n");
  mark_node(unit, NULL);
  if (!program->graph->config->edge) emit_stamp(out, call, indent);
}

/* ---- wavefronts ---- */

/* The consecutive calls of a layer; returns the index past them. */
static int emit_layer(Unit *unit, const Program *program, const Item *wavefront, int i, int depth) {
  const Block *block = wavefront->block;
  int layer = block->items[i]->call->layer;
  text_add(&unit->text, "%sif (wave%d.layer == %d) {", indent_of(depth), wavefront->step, layer);
  for (; i < block->count && block->items[i]->call && block->items[i]->call->layer == layer; i++)
    emit_call(unit, program, block->items[i], indent_of(depth + 1));
  text_add(&unit->text, "%s}\n", indent_of(depth));
  return i;
}

static void emit_wavefront(Unit *unit, const Program *program, const Item *item, int depth) {
  Text *out = &unit->text;
  const char *indent = indent_of(depth), *inner = indent_of(depth + 1);
  const Wavefront *wavefront = item->wavefront;
  int id = item->step;
  text_add(out, "\n%s/* %d layers as a wavefront, in chunks of %d steps */\n", indent, wavefront->layers,
           wavefront->chunk);
  text_add(out, "%sWave wave%d = {.layers = %d, .steps = ", indent, id, wavefront->layers);
  dim_print_c(out, wavefront->steps);
  text_add(out, ", .chunk = %d, .done = (int64_t[%d]){0}};\n", wavefront->chunk, wavefront->layers);
  text_add(out, "%swhile (wave_turn(&wave%d, team)) {\n%sTeam alone = {.size = 1};\n", indent, id, inner);
  text_add(out, "%sconst int64_t d%d = wave%d.first, d%d = wave%d.count;\n", inner, wavefront->first->index, id,
           wavefront->count->index, id);
  for (int i = 0; i < item->block->count;)
    if (item->block->items[i]->kind == ITEM_CALL)
      i = emit_layer(unit, program, item, i, depth + 1);
    else
      emit_item(unit, program, item->block->items[i++], depth + 1);
  text_add(out, "%s}\n", indent);
}

/* One layer's calls, on the whole team. */
static void emit_chunks(Unit *unit, const Program *program, const Item *item, int depth) {
  Text *out = &unit->text;
  const char *indent = indent_of(depth), *inner = indent_of(depth + 1);
  const Wavefront *chunks = item->wavefront;
  const char *steps = dim_c_text(program->arena, chunks->steps);
  int first = chunks->first->index, count = chunks->count->index, chunk = chunks->chunk;
  text_add(out, "\n%sfor (int64_t d%d = 0; d%d < %s; d%d += %d) {\n", indent, first, first, steps, first, chunk);
  text_add(out, "%sconst int64_t left = %s - d%d, d%d = left < %d ? left : %d;\n", inner, steps, first, count, chunk,
           chunk);
  for (int i = 0; i < item->block->count; i++) emit_item(unit, program, item->block->items[i], depth + 1);
  text_add(out, "%s}\n", indent);
}

/* ---- control flow ---- */

/* Items [from, to) of a region; the caller writes the braces. */
static void emit_part(Unit *unit, const Program *program, const Block *block, int from, int to, int depth) {
  emit_pointers(&unit->text, program, block, from, to, depth + 1);
  for (int i = from; i < to; i++) emit_item(unit, program, block->items[i], depth + 1);
}

static void emit_region(Unit *unit, const Program *program, const Block *block, int depth) {
  emit_part(unit, program, block, 0, block->count, depth);
}

static const char *loop_limit(const Program *program, const Item *item) {
  if (item->dim) return dim_c_text(program->arena, item->dim);
  if (!item->n_accesses) return "INT64_MAX";
  int trip = item->accesses[0].value->id;
  int64_t most = item->node->control->most;
  if (most == MAX_ITERATIONS) return arena_format(program->arena, "*t%d", trip);
  return arena_format(program->arena, "(*t%d < %" PRId64 " ? *t%d : %" PRId64 ")", trip, most, trip, most);
}

static void emit_head(Text *out, const Program *program, const Item *item, int depth) {
  text_add(out, "\n%s", indent_of(depth));
  if (item->kind == ITEM_IF) text_add(out, "if (*t%d) ", item->accesses[0].value->id);
  if (item->kind == ITEM_LOOP) {
    int d = item->symbol->index;
    text_add(out, "for (d%d = 0; d%d < %s; d%d++) ", d, d, loop_limit(program, item), d);
  }
  text_add(out, "{ /* n%d %s */\n", item->node->id, item->node->op->name);
}

static void emit_control(Unit *unit, const Program *program, const Item *item, int depth) {
  Text *out = &unit->text;
  emit_head(out, program, item, depth);
  emit_region(unit, program, item->block, depth);
  if (item->other) {
    text_add(out, "%s} else {\n", indent_of(depth));
    emit_region(unit, program, item->other, depth);
  }
  text_add(out, "%s}\n", indent_of(depth));
}

/* ---- items ---- */

void emit_item(Unit *unit, const Program *program, const Item *item, int depth) {
  Text *out = &unit->text;
  const char *indent = indent_of(depth);
  switch (item->kind) {
  case ITEM_CALL:
    emit_call(unit, program, item, indent);
    break;
  case ITEM_BARRIER:
    text_add(out, "%s%s;\n", indent, program->graph->config->edge ? "team_barrier(team)" : "module_barrier(run, team)");
    break;
  case ITEM_LOAD_DIM:
    text_add(out, "%sd%d = run->data_dims[%d];\n", indent, item->symbol->index, found_index(program, item->symbol));
    break;
  case ITEM_SET_DIM:
    text_add(out, "%sd%d = %s;\n", indent, item->symbol->index, dim_c_text(program->arena, item->dim));
    break;
  case ITEM_STORE_DIM:
    text_add(out, "%sif (team->rank == 0) run->data_dims[%d] = d%d;\n", indent, found_index(program, item->symbol),
             item->symbol->index);
    break;
  case ITEM_BREAK_UNLESS:
    text_add(out, "%sif (!*t%d) break;\n", indent, item->accesses[0].value->id);
    break;
  case ITEM_IF:
  case ITEM_LOOP:
  case ITEM_SCOPE:
    emit_control(unit, program, item, depth);
    break;
  case ITEM_WAVEFRONT:
    if (item->wavefront->layers == 1)
      emit_chunks(unit, program, item, depth);
    else
      emit_wavefront(unit, program, item, depth);
    break;
  }
}

/* A function of items [from, to) of the schedule. */
static void emit_walk(Unit *unit, const Program *program, const char *name, int from, int to) {
  Text *out = &unit->text;
  text_add(out, "\nstatic void %s(const Run *run, Team *team) {\n  (void)run, (void)team;\n", name);
  emit_dims(out, program->graph, from > 0);
  emit_part(unit, program, program->schedule, from, to, 0);
  text_add(out, "}\n");
}

/* Where the item stands among those of the schedule; the end if it is NULL. */
static int place_of(const Program *program, const Item *item) {
  int place = 0;
  while (place < program->schedule->count && program->schedule->items[place] != item) place++;
  if (item && place == program->schedule->count) bug("a part of the schedule begins nowhere");
  return place;
}

/* A function for each part, and a table of them. Between two of them the module has a barrier. */
static void emit_parts(Unit *unit, const Program *program) {
  int end = program->schedule->count;
  Text table = text_new(program->arena);
  for (int p = program->n_parts - 1; p >= 0; p--) {
    int from = program->parts[p] ? place_of(program, program->parts[p]) : end;
    emit_walk(unit, program, arena_format(program->arena, "part_%d", p), from, end);
    end = from;
  }
  for (int p = 0; p < program->n_parts; p++) text_add(&table, "%spart_%d", p ? ", " : "", p);
  text_add(&unit->text, "\nstatic void (*const parts[])(const Run *run, Team *team) = {%s};\n", table.data);
}

void emit_schedule(Unit *unit, Program *program) {
  int count = program->schedule->count, border = place_of(program, program->backward);
  text_add(&unit->text, "\n/* ---- schedule ---- */\n");
  if (program->n_parts) {
    emit_parts(unit, program);
    return;
  }
  emit_walk(unit, program, "schedule", 0, border);
  if (program->graph->n_parameters) emit_walk(unit, program, "backward", border, count);
}
