/* SPDX-License-Identifier: MIT */
#include "program/build.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "program/build_internal.h"
#include "support/diagnostics.h"
#include "support/list.h"
#include "support/text.h"

/* ---- calls ---- */

static Call *add_call(Program *program, const Node *node) {
  Call *call = ARENA_NEW(program->arena, Call);
  call->program = program;
  call->node = node;
  call->region = program->region;
  *LIST_ADD(program->arena, program->calls, program->n_calls, program->call_capacity) = call;
  return call;
}

Call *kernel_call(Program *program, const Node *node, KernelSpec *spec) {
  Call *call = add_call(program, node);
  call->wavefront = program->wavefront;
  call->layer = program->layer;
  call->step = program->n_steps++;
  call->kernel = program_kernel(program, node, spec);
  call->operands = ARENA_ARRAY(program->arena, Operand, call->kernel->n_parameters);
  return call;
}

void call_cost(Call *call, double flops, double bytes) {
  call->flops = flops;
  call->bytes = bytes;
}

Wavefront *wavefront_new(Program *program, int layers, int chunk, const Dim *steps) {
  DimTable *dims = program->graph->dims;
  Wavefront *wavefront = ARENA_NEW(program->arena, Wavefront);
  *wavefront = (Wavefront){.layers = layers, .chunk = chunk, .steps = steps};
  wavefront->first = dim_symbol_own(dims, DIM_LOCAL, 0, dim_upper(steps) > 0 ? dim_upper(steps) - 1 : 0);
  wavefront->count = dim_symbol_own(dims, DIM_LOCAL, 1, chunk);
  return wavefront;
}

void program_in_wavefront(Program *program, const Wavefront *wavefront, int layer) {
  program->wavefront = wavefront;
  program->layer = layer;
}

void calls_beside(const Program *program, int call, int *first, int *last) {
  const Wavefront *wavefront = program->calls[call]->wavefront;
  *first = *last = call;
  while (wavefront && *first > 0 && program->calls[*first - 1]->wavefront == wavefront) --*first;
  while (wavefront && *last + 1 < program->n_calls && program->calls[*last + 1]->wavefront == wavefront) ++*last;
}

/* ---- range checks ---- */

bool program_check_range(Program *program, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what) {
  const Value *root = value_root((Value *)value);
  if (!root->is_input || root->data || program->region) return false;
  for (int i = 0; i < program->graph->n_states; i++)
    if (program->graph->states[i].input == root) return false;
  if (hi_dim && (!dim_is_given(hi_dim) || (!dim_is_const(hi_dim) && !dim_as_symbol(hi_dim)))) return false;
  if (hi_dim && dim_is_const(hi_dim)) {
    hi += dim_value(hi_dim);
    hi_dim = NULL;
  }
  *LIST_ADD(program->arena, program->checks, program->n_checks, program->check_capacity) =
      (RangeCheck){root, lo, hi, hi_dim, what};
  return true;
}

/* ---- control flow ---- */

static bool identifier_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Every `t<id>` of the line is a value that it reads. */
static void find_accesses(Call *call, const char *expression) {
  const Dim *zero = dim_const(call->program->graph->dims, 0);
  for (const char *at = expression; *at; at++) {
    bool starts = *at == 't' && (at == expression || !identifier_char(at[-1]));
    if (!starts || !isdigit((unsigned char)at[1])) continue;
    char *end;
    long id = strtol(at + 1, &end, 10);
    call_access(call, (Access){.value = call->program->values[id], .offset = zero, .mode = READ});
  }
}

static Call *add_line(Program *program, const Node *node, LineKind kind, const char *text) {
  Call *line = add_call(program, node);
  line->line = kind;
  line->text = text;
  find_accesses(line, text);
  return line;
}

static const char *format_line(Program *program, const char *format, va_list arguments) {
  Text text = text_new(program->arena);
  text_add_va(&text, format, arguments);
  return text.data;
}

void program_line(Program *program, const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_line(program, node, LINE_PLAIN, format_line(program, format, arguments));
  va_end(arguments);
}

static void open_region(Program *program, Call *line) {
  Region *region = ARENA_NEW(program->arena, Region);
  *region = (Region){.outer = program->region, .first = program->n_calls - 1};
  program->region = line->opens = region;
}

static void close_region(Program *program) {
  Region *region = (Region *)program->region;
  region->last = program->n_calls;
  program->region = region->outer;
}

void program_open(Program *program, const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Call *line = add_line(program, node, LINE_OPENS, format_line(program, format, arguments));
  va_end(arguments);
  open_region(program, line);
}

void program_turn(Program *program, const Node *node) {
  close_region(program);
  open_region(program, add_line(program, node, LINE_TURNS, "} else {"));
}

void program_close(Program *program, const Node *node) {
  close_region(program);
  add_line(program, node, LINE_CLOSES, "}");
}

static void add_value(Program *program, Value *value) {
  int n_homes = value->id = program->n_values;
  *LIST_ADD(program->arena, program->values, program->n_values, program->value_capacity) = value;
  *LIST_ADD(program->arena, program->homes, n_homes, program->home_capacity) = program->region;
}

Value *program_view(Program *program, const Value *like, Value *of, const Dim *at) {
  Value *view = ARENA_NEW(program->arena, Value);
  *view = (Value){.name = like->name, .dtype = like->dtype, .rank = like->rank, .shape = like->shape};
  view->view_of = of;
  view->at = at;
  add_value(program, view);
  return view;
}

Value *program_constant(Program *program, DType dtype, const void *data) {
  Value *value = ARENA_NEW(program->arena, Value);
  *value = (Value){.name = "constant", .dtype = dtype, .data = data};
  add_value(program, value);
  return value;
}

const Region *home_of(const Program *program, const Value *root) { return program->homes[root->id]; }

/* Ids are the body's own up to here; from now on all values and nodes of the module are told apart. */
void program_take(Program *program, Graph *graph) {
  for (int i = 0; i < graph->n_values; i++) add_value(program, graph->values[i]);
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i]->id = program->n_nodes++;
}
