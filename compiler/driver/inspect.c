/* SPDX-License-Identifier: MIT */
#include "driver/inspect.h"

#include <stdio.h>
#include <string.h>

#include "driver/inspect_page.h"
#include "driver/verdict.h"
#include "ir/bodies.h"
#include "ir/family.h"
#include "ir/mutable.h"
#include "kernels/conv/explain.h"
#include "kernels/recurrent/explain.h"
#include "layout/layout_plan.h"
#include "machine/machines_print.h"
#include "machine/targets.h"
#include "passes/explain_int8.h"
#include "program/draw_memory.h"
#include "program/dump.h"
#include "support/files.h"

/* A line that stands above what is printed of one network, or for one target of several. */
static void print_heading(const Options *options, const Graph *graph) {
  const char *network = options->models->network ? graph->name : NULL;
  const Target *target = options->n_targets > 1 ? graph->config->target : NULL;
  bool first = (!network || network == options->models->network) && (!target || target == options->targets->target);
  if (!network && !target) return;
  printf("%s==== %s%s%s ====\n", first ? "" : "\n", network ? network : "", network && target ? ", " : "",
         target ? target->name : "");
}

/* ---- the model ---- */

static const char *shape_text(Arena *arena, const Value *value) {
  Text text = text_new(arena);
  text_add(&text, "%s", dtype_name(value->dtype));
  dims_print(&text, value->rank, value->shape);
  return text.data;
}

static void print_values(Arena *arena, const char *title, Value *const *values, int count) {
  for (int i = 0; i < count; i++)
    printf("%-8s %-24s %s\n", i ? "" : title, printable(arena, values[i]->name), shape_text(arena, values[i]));
}

static void print_dims(const Graph *graph) {
  for (int i = 0; i < dim_symbol_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    printf("%-8s %-24s %lld..%lld, optimised for %lld", i ? "" : "dims", printable(graph->arena, symbol->name),
           (long long)symbol->min, (long long)symbol->max, (long long)symbol->opt);
    if (symbol->multiple > 1) printf(", multiples of %lld", (long long)symbol->multiple);
    putchar('\n');
  }
}

static void print_states(const Graph *graph) {
  for (int i = 0; i < graph->n_states; i++)
    printf("%-8s %-24s %s <- %s\n", i ? "" : "states", printable(graph->arena, graph->states[i].input->name),
           shape_text(graph->arena, graph->states[i].input), printable(graph->arena, graph->states[i].output->name));
}

static void print_model(const Graph *graph) {
  printf("%-8s %s %s\n", "model", printable(graph->arena, graph->name), printable(graph->arena, graph->version));
  print_dims(graph);
  print_values(graph->arena, "inputs", graph->inputs, graph_own_inputs(graph));
  print_states(graph);
  print_values(graph->arena, "outputs", graph->outputs, graph_own_outputs(graph));
  print_values(graph->arena, "backward", graph->inputs + graph_own_inputs(graph), graph->n_output_gradients);
  print_values(graph->arena, "gives", graph->outputs + graph_own_outputs(graph), graph->n_input_gradients);
  Value **parameters = graph->inputs + graph_first_parameter(graph);
  int n_trained = graph->n_parameters - graph->n_statistics;
  print_values(graph->arena, "trained", parameters, n_trained);
  print_values(graph->arena, "statistic", parameters + n_trained, graph->n_statistics);
}

/* Those that a program can set, and those that it cannot. */
static void print_mutables(const Graph *graph) {
  const MutableWeights *m = graph->mutables;
  for (int i = 0; m && i < m->n_weights; i++)
    printf("%-8s %-24s %s\n", i ? "" : "mutable", printable(graph->arena, m->weights[i].given->name),
           shape_text(graph->arena, m->weights[i].given));
  for (int i = 0; m && i < m->n_fixed; i++)
    printf("%-8s %-24s %s\n", i ? "" : "constant", printable(graph->arena, m->fixed[i].value->name), m->fixed[i].why);
}

static void print_remarks(const Graph *graph) {
  for (int i = 0; i < graph->n_remarks; i++) printf("%-8s %s\n", i ? "" : "remarks", graph->remarks[i]);
}

/* ---- the schedule ---- */

/* Calls, and the control flow that they stand in. */
static void print_item(Item *item, Block *block, void *context) {
  (void)block;
  Arena *arena = context;
  if (item->kind == ITEM_BARRIER || item->kind == ITEM_LOAD_DIM) return;
  const char *node = printable(arena, item->node->name), *op = item->node->op->name;
  const char *schedule = item->call ? call_schedule(item->call) : NULL;
  Text text = text_new(arena);
  item_text(&text, item);
  if (item->call)
    printf("%-4d %-20.20s %-18s %-32s %12.4f %12.4f\n", item->call->row, node, op, schedule ? schedule : text.data,
           item->call->flops * 1e-6, item->call->bytes * 1e-6);
  else
    printf("%-4s %-20.20s %-18s %s\n", "", node, op, text.data);
}

static void print_calls(const Program *program) {
  double flops = 0, bytes = 0;
  printf("\n%-4s %-20s %-18s %-32s %12s %12s\n", "step", "node", "op", "kernel", "MFLOP", "MB");
  each_item(program, print_item, program->arena);
  for (int i = 0; i < program->n_calls; i++) {
    flops += program->calls[i]->flops;
    bytes += program->calls[i]->bytes;
  }
  printf("%-4s %-20s %-18s %-32s %12.4f %12.4f\n", "", "", "", "total, at the dims' opt", flops * 1e-6, bytes * 1e-6);
}

static void print_intervals(Arena *arena, const Interval *intervals, int n) {
  printf("\n%-6s %12s %12s %6s %6s  %-6s %s\n", "value", "offset", "bytes", "first", "last", "over", "name");
  for (int i = 0; i < n; i++) {
    const Interval *interval = &intervals[i];
    printf("t%-5d %12lld %12lld %6d %6d  %-6s %s\n", interval->value->id, (long long)interval->value->offset,
           (long long)interval->bytes, interval->first, interval->last,
           interval->over ? arena_format(arena, "t%d", interval->over->id) : "",
           printable(arena, interval->value->name));
  }
}

static void print_memory(Arena *arena, const MemoryPlan *plan) {
  print_intervals(arena, plan->intervals, plan->n_intervals);
  printf("arena %lld bytes, largest live set %lld bytes: %.3f times\n", (long long)plan->arena_bytes,
         (long long)plan->lower_bound, plan->lower_bound ? (double)plan->arena_bytes / (double)plan->lower_bound : 1.0);
  if (!plan->n_in_gradients) return;
  printf("\nin the gradients' memory, until these are written:");
  print_intervals(arena, plan->in_gradients, plan->n_in_gradients);
}

static void write_text(const Program *program, const char *path, Text text) {
  file_write(program->arena, path, text.data, text.length);
}

void inspect_module(const Options *options, Program *program) {
  const Graph *graph = program->graph;
  print_heading(options, graph);
  print_model(graph);
  print_mutables(graph);
  print_remarks(graph);
  printf("%-8s %lld bytes packed for %s", "weights", (long long)program->weights_bytes, graph->config->target->name);
  const char *several = options->n_targets > 1  ? options->n_models > 1 ? "targets and networks" : "targets"
                        : options->n_models > 1 ? "networks"
                                                : NULL;
  if (several) printf(", %lld for all %s", (long long)program->weights_file->bytes, several);
  putchar('\n');
  if (graph->mutables)
    printf("%-8s %lld bytes in a model, twice where they are set\n", "", (long long)mutable_bytes(program));
  if (program->n_weights) printf("%-8s %s\n", "types", weights_by_type(program));
  printf("%-8s %lld bytes a context\n", "arena", (long long)program->arena_bytes);
  print_calls(program);
  if (options->memory) print_memory(program->arena, program->plan);
  if (options->memory_picture) write_text(program, options->memory_picture, draw_memory(program));
  if (options->html) write_text(program, options->html, inspect_page(program));
}

void inspect_verdict(const Options *options, const Program *program) {
  Text text = verdict_of(program);
  print_heading(options, program->graph);
  fwrite(text.data, 1, text.length, stdout);
}

/* ---- choices ---- */

static void print_layouts(Graph *graph) {
  Text text = explain_layouts(graph);
  fwrite(text.data, 1, text.length, stdout);
}

void inspect_choices(const Options *options, Graph *graph) {
  print_heading(options, graph);
  if (options->explain == EXPLAIN_LAYOUT) {
    graph_each(graph, print_layouts);
    return;
  }
  bool rnn = options->explain == EXPLAIN_RNN;
  Text text = rnn ? explain_recurrent(graph, options->verbose) : explain_convolutions(graph, options->verbose);
  fwrite(text.data, 1, text.length, stdout);
}

void inspect_int8(Compilation *c) {
  Int8Rows **rows = ARENA_ARRAY(c->arena, Int8Rows *, c->n_branches);
  run_steps(c, STEP_match_integer_products);
  for (int i = 0; i < c->n_branches; i++) rows[i] = int8_rows(c->branches[i].graph);
  run_steps(c, STEP_decompose);
  for (int i = 0; i < c->n_branches; i++) int8_settle(c->branches[i].graph, rows[i]);
  run_steps(c, STEP_choose_precision);
  for (int i = 0; i < c->n_branches; i++) {
    Text text = int8_table(c->branches[i].graph, rows[i]);
    print_heading(c->options, c->branches[i].graph);
    fwrite(text.data, 1, text.length, stdout);
  }
}

/* ---- targets ---- */

/* "native", with the features that this CPU has. */
static const char *native_mark(Arena *arena, const Target *native) {
  const char *features = native->name + strlen(native->base);
  return *features ? arena_format(arena, "native: %s", features) : "native";
}

void inspect_targets(Arena *arena) {
  const Target *native = target_named(arena, "native");
  printf("%-24s %-8s %5s %9s  %-25s %s\n", "target", "isa", "lanes", "registers", "with musl", "features");
  for (int i = 0; target_at(i); i++) {
    const Target *target = target_at(i);
    const char *musl = target_with_musl(target),
               *mark = native && !strcmp(target->base, native->base) ? native_mark(arena, native) : "";
    const char *features = target_features(arena, target);
    printf("%-24s %-8s %5d %9d  %-25s %s%s%s\n", target->name, target->isa, target->lanes, target->vector_registers,
           musl ? musl : "-", features, *features && *mark ? " " : "", mark);
  }
  putchar('\n');
  machine_here_print(arena);
}
