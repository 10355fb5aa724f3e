/* SPDX-License-Identifier: MIT */
/*
 * DFT along the last axis but one, and STFT, by templates/fourier.c. expand/fourier.c leaves only nodes whose length
 * has a plan, and whose input has as many points as the transform.
 */
#include <math.h>

#include "ir/family.h"
#include "knobs.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "shapes/fourier_plan.h"
#include "shapes/signal.h"

typedef struct FourierSchedule {
  Schedule base;
  FourierPlan plan;
  int form;       /* FOURIER_COMPLEX, ... */
  int64_t length; /* of the signal */
  bool inverse, windowed;
} FourierSchedule;

static const FourierSchedule *schedule_of(const Node *node) { return (const FourierSchedule *)node->schedule; }

/* ---- choice ---- */

static void choose_dft(Graph *graph, const Node *node, FourierSchedule *s) {
  Dft dft;
  if (!read_dft(graph, node, &dft)) bug("the transform was good before");
  s->length = dft.length;
  s->inverse = dft.inverse && dft.parts == dft.result_parts;
  s->form = dft.result_parts == 1 ? FOURIER_HALF
            : dft.parts == 2      ? FOURIER_COMPLEX
            : dft.onesided        ? FOURIER_REAL
                                  : FOURIER_REAL_WHOLE;
}

static void choose_stft(Graph *graph, const Node *node, FourierSchedule *s) {
  Stft stft;
  if (!read_stft(graph, node, &stft)) bug("the transform was good before");
  s->length = stft.length;
  s->windowed = node_input(node, 2) != NULL;
  s->form = stft.parts == 2 ? FOURIER_COMPLEX : stft.onesided ? FOURIER_REAL : FOURIER_REAL_WHOLE;
}

static void schedule(Graph *graph, Node *node) {
  static const char *const FORMS[] = {"complex", "real", "real_whole", "half"};
  FourierSchedule *s = ARENA_NEW(graph->arena, FourierSchedule);
  if (is_op(node, OP_STFT))
    choose_stft(graph, node, s);
  else
    choose_dft(graph, node, s);
  int64_t points = fourier_points(s->length, s->form != FOURIER_COMPLEX);
  if (!fourier_plan(points, graph->config->target->lanes, &s->plan)) bug("the length has a plan");
  Text text = text_new(graph->arena);
  text_add(&text, "fourier_%lld%s_%lldx%lld", (long long)s->length, FORMS[s->form], (long long)s->plan.half[0],
           (long long)s->plan.half[1]);
  s->base.text = text.data;
  node->schedule = &s->base;
}

/* ---- tables, as the template says ---- */

typedef struct Table {
  float *data; /* NULL: it is only counted */
  int64_t n;
} Table;

static void add(Table *table, double value) {
  if (table->data) table->data[table->n] = (float)value;
  table->n++;
}

/* e^(-2 pi i turns / n) times scale. */
static void add_root(Table *table, int64_t turns, int64_t n) {
  double angle = -2 * M_PI * (double)(turns % n) / (double)n;
  add(table, cos(angle));
  add(table, sin(angle));
}

static void add_pass(Table *table, int radix, int64_t n) {
  for (int j = 0; radix % 2 && j < radix; j++) add(table, cos(2 * M_PI * j / radix));
  for (int j = 0; radix % 2 && j < radix; j++) add(table, sin(2 * M_PI * j / radix));
  for (int64_t p = 0; n > radix && p < n / radix; p++)
    for (int k = 1; k < radix; k++) add_root(table, p * k, n);
}

static void add_passes(Table *table, const FourierPlan *plan, int half) {
  int64_t n = plan->half[half];
  for (int k = 0; k < FOURIER_RADICES && n > 1; n /= plan->radices[half][k++])
    add_pass(table, plan->radices[half][k], n);
}

/* Cosines, then sines, of the matrix between the halves; zeros where it is filled up. */
static void add_between(Table *table, const FourierPlan *plan) {
  for (int part = 0; part < 2; part++)
    for (int64_t i = 0; i < plan->round[0]; i++)
      for (int64_t j = 0; j < plan->round[1]; j++) {
        double angle = -2 * M_PI * (double)(i * j % plan->points) / (double)plan->points;
        bool inside = i < plan->half[0] && j < plan->half[1];
        add(table, !inside ? 0 : part ? sin(angle) : cos(angle));
      }
}

static void add_halves(Table *table, int64_t length) {
  for (int64_t k = 0; k <= length / 2; k++) add(table, 0.5 * cos(2 * M_PI * (double)k / (double)length));
  for (int64_t k = 0; k <= length / 2; k++) add(table, -0.5 * sin(2 * M_PI * (double)k / (double)length));
}

static void fill(Table *table, const FourierSchedule *s) {
  add_passes(table, &s->plan, 0);
  add_between(table, &s->plan);
  add_passes(table, &s->plan, 1);
  if (s->plan.points < s->length) add_halves(table, s->length);
}

static void pack(Graph *graph, Node *node) {
  Table counted = {0}, table = {0};
  fill(&counted, schedule_of(node));
  table.data = ARENA_ARRAY(graph->arena, float, counted.n);
  fill(&table, schedule_of(node));
  graph_pack_floats(graph, node, "factors", table.n, table.data);
}

/* ---- memory ---- */

static int64_t slot_bytes(const FourierSchedule *s) {
  return 2 * 2 * (s->plan.round[0] * s->plan.round[1] + FOURIER_ROOM) * (int64_t)sizeof(float);
}

static void scratch(Graph *graph, Node *node) {
  graph_slots(graph, node, graph->config->machine->cores, slot_bytes(schedule_of(node)));
}

/* ---- kernel ---- */

static KernelSpec *spec_of(Program *program, const FourierSchedule *s) {
  static const char *const HALVES[] = {"N1", "N2"};
  static const char *const RADICES[FOURIER_HALVES][FOURIER_RADICES] = {{"A0", "A1", "A2", "A3"},
                                                                       {"B0", "B1", "B2", "B3"}};
  KernelSpec *spec = kernel_spec(program, "fourier");
  kernel_knob(spec, "FORM", s->form);
  kernel_knob(spec, "LENGTH", s->length);
  kernel_knob(spec, "INVERSE", s->inverse);
  kernel_knob(spec, "WINDOWED", s->windowed);
  for (int h = 0; h < FOURIER_HALVES; h++) {
    kernel_knob(spec, HALVES[h], s->plan.half[h]);
    for (int k = 0; k < FOURIER_RADICES; k++) kernel_knob(spec, RADICES[h][k], s->plan.radices[h][k]);
  }
  return spec;
}

/* Rows of a DFT are one after the other, those of an STFT overlap. */
static void operand_rows(Program *program, Call *call, const Node *node, const FourierSchedule *s) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *one = dim_const(graph->dims, 1);
  const Dim *row =
      is_op(node, OP_STFT) ? value_count_dim(graph, x, 1, x->rank) : value_count_dim(graph, x, x->rank - 2, x->rank);
  int64_t step = 0;
  if (is_op(node, OP_STFT)) {
    Stft stft;
    if (!read_stft(graph, node, &stft)) bug("the transform was good before");
    step = stft.step * stft.parts;
  }
  operand_dim(call, "outer", is_op(node, OP_STFT) ? x->shape[0] : value_count_dim(graph, x, 0, x->rank - 2));
  operand_dim(call, "inner", is_op(node, OP_STFT) ? y->shape[1] : one);
  operand_dim(call, "outer_step", row);
  operand_integer(call, "inner_step", step);
  operand_dim(call, "y_step", value_count_dim(graph, y, y->rank - 2, y->rank));
  const Dim *rows = value_count_dim(graph, y, 0, y->rank - 2);
  call_flops(call, s->plan.arithmetic * graph->config->target->lanes, EXTENTS(rows));
  call_bytes_of(call, 4, x);
  call_bytes_of(call, 4, y);
  call_bytes_of(call, 4, node->packed[0]);
}

static void lower_fourier(Program *program, Node *node) {
  const FourierSchedule *s = schedule_of(node);
  Call *call = kernel_call(program, node, spec_of(program, s));
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "window", s->windowed ? node->inputs[2] : NULL, READ);
  operand_value(call, "tables", node->packed[0], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_integer(call, "slots", program->graph->config->machine->cores);
  operand_integer(call, "slot", graph_slot_bytes(program->graph, node, slot_bytes(s)) / (int64_t)sizeof(float));
  operand_rows(program, call, node, s);
}

const KernelFamily family_fourier = {.schedule = schedule, .scratch = scratch, .pack = pack, .lower = lower_fourier};
