/* SPDX-License-Identifier: MIT */
/*
 * RNNGradient, GRUGradient and LSTMGradient. The steps run from the last to the first, and write the gradients of the
 * gates as rows [T * B][directions * gates * H]. Then each gradient is one product over all steps: dX = gates W, with
 * the rows as they are; of one gate after the other dW = gates' X and dR = gates' H, with the gate's columns
 * transposed. H has the state that each row was given. What nobody reads is not computed.
 */
#include "kernels/recurrent/kernels.h"
#include "kernels/recurrent/trained.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "support/numbers.h"

/* A part of the scratch memory: where, and how many floats. */
typedef struct Part {
  int64_t at, floats;
} Part;

typedef struct GradientPlan {
  Schedule base;
  Trained layer;
  TrainedSteps steps;
  TrainedProduct dx, dw, dr; /* dw, dr: of a gate */
  int64_t turned_row;        /* floats from one column to the next */
  Part gates, products;      /* rows; products: of GRU_AFTER's candidate with R */
  Part r, memory, tiles;     /* of the steps: R packed, and what workers keep */
  Part w;                    /* of dX: packed */
  Part x, h, resets, turned; /* of dW and dR: packed, h and resets of one direction; columns of a gate */
  int64_t scratch_bytes;
} GradientPlan;

static bool wants(const Node *node, int output) { return node_output(node, output) != NULL; }
static bool wants_weights(const Node *node) { return wants(node, GRADIENT_W) || wants(node, GRADIENT_R); }

static const Value *behind(const Node *node, int place) {
  return node_input(node, layer_inputs(layer_cell(node->op->kind)) + place);
}

/* ---- schedule ---- */

static Part part_of(Scratch *scratch, bool needed, int64_t floats) {
  return (Part){scratch_floats(scratch, needed ? floats : 0), needed ? floats : 0};
}

/* Columns of a matrix as whole panels. */
static int64_t whole(int64_t columns, int vectors, int64_t lanes) { return round_up(columns, vectors * lanes); }

/* The steps, dX, and the gradients of weights follow each other, and have the same memory beside the rows. */
static void plan_scratch(const Graph *graph, const Node *node, GradientPlan *g) {
  const Trained *l = &g->layer;
  int64_t lanes = graph->config->target->lanes, H = l->hidden, units = whole(H, g->steps.unit_vectors, lanes);
  int64_t columns = l->directions * l->gates * H, rows = l->most_rows;
  Scratch all = {0};
  g->gates = part_of(&all, true, saturating_mul(rows, columns));
  g->products = part_of(&all, l->cell == CELL_GRU_AFTER, saturating_mul(rows, l->directions * H));
  Scratch steps = all, inputs = all, weights = all;
  int64_t row = 2 * (l->gates * H + lanes) + 2 * (units + lanes);
  g->r = part_of(&steps, true, l->directions * l->gates * H * units);
  g->memory = part_of(&steps, true, saturating_mul(l->most_batch, l->directions * row));
  g->tiles = part_of(&steps, true, saturating_mul(l->most_batch, l->directions * units));
  g->w = part_of(&inputs, wants(node, GRADIENT_X), columns * whole(l->inputs, g->dx.knobs.vectors, lanes));
  g->turned_row = round_up(rows, lanes) + lanes; /* off each other's cache sets */
  int64_t states = saturating_mul(rows, whole(H, g->dr.knobs.vectors, lanes));
  g->x = part_of(&weights, wants(node, GRADIENT_W), saturating_mul(rows, whole(l->inputs, g->dw.knobs.vectors, lanes)));
  g->h = part_of(&weights, wants(node, GRADIENT_R), states);
  g->resets = part_of(&weights, wants(node, GRADIENT_R) && l->cell == CELL_GRU_BEFORE, states);
  g->turned = part_of(&weights, wants_weights(node), saturating_mul(g->turned_row, H));
  g->scratch_bytes = max_int(steps.bytes, max_int(inputs.bytes, weights.bytes));
}

/* Vectors of units in a panel: so that no worker has many more than another, as wide as registers allow, since a
 * panel's load feeds more multiply-adds the more rows there are, and a row's the wider it is. */
static int choose_vectors(const Graph *graph, const Trained *l) {
  const Target *target = graph->config->target;
  int64_t vectors = ceil_div(l->hidden, target->lanes), workers = graph->config->machine->cores / l->directions;
  if (workers < 1) workers = 1;
  int best = 1, most = target->vector_registers >= 32 ? 4 : 2;
  double least = 0;
  for (int v = 1; v <= most; v++) {
    int64_t share = ceil_div(ceil_div(vectors, v), workers) * v;
    double loads = 1 + (1.0 / v + 1.0 / register_rows(target, v)) / 8;
    if (least && (double)share * loads >= least) continue;
    least = (double)share * loads;
    best = v;
  }
  return best;
}

static void plan_products(Graph *graph, GradientPlan *g) {
  const Trained *l = &g->layer;
  DimTable *dims = graph->dims;
  int64_t columns = l->directions * l->gates * l->hidden;
  const Dim *k = dim_const(dims, columns), *gate = dim_const(dims, l->hidden);
  g->dx = (TrainedProduct){gemm_knobs(graph, l->inputs, columns, l->rows), l->rows, k, l->inputs, columns, l->inputs};
  int64_t rows = dim_optimum(l->rows);
  g->dw = (TrainedProduct){gemm_knobs(graph, l->inputs, rows, gate), gate, l->rows, l->inputs, 0, l->inputs};
  g->dr = (TrainedProduct){gemm_knobs(graph, l->hidden, rows, gate), gate, l->rows, l->hidden, 0, l->hidden};
}

static void schedule(Graph *graph, Node *node) {
  GradientPlan *g = ARENA_NEW(graph->arena, GradientPlan);
  Trained *l = &g->layer;
  if (!read_trained(graph, node, l)) return;
  g->steps = plan_steps(graph, l, choose_vectors(graph, l), 1, l->gates * l->hidden);
  plan_products(graph, g);
  plan_scratch(graph, node, g);
  g->dw.a_row = g->dr.a_row = g->turned_row;
  g->base.text = arena_format(graph->arena, "%s_gradient_i%lldh%lld%s_v%dr%d%s", cell_info(l->cell)->name,
                              (long long)l->inputs, (long long)l->hidden, l->directions == 2 ? "x2" : "",
                              g->steps.unit_vectors, g->steps.rows.most, workers_text(graph->arena, &g->steps));
  node->schedule = &g->base;
}

static void scratch(Graph *graph, Node *node) {
  const GradientPlan *g = (const GradientPlan *)node->schedule;
  if (g) graph_scratch(graph, node, "gates' gradients", dim_const(graph->dims, g->scratch_bytes));
}

/* ---- lowering ---- */

/* From the part's element `first` on, `floats` of them; 0: to its end. A part that is not needed is NULL. */
static void give_part(Call *call, const char *parameter, const Node *node, const Part *part, int64_t first,
                      int64_t floats, AccessMode mode) {
  if (!part->floats)
    operand_null(call, parameter);
  else
    operand_bytes(call, parameter, node->scratch, part->at + 4 * first, 4 * (floats ? floats : part->floats - first),
                  mode);
}

static void give_elements(Program *program, Call *call, const char *parameter, const Value *value, int64_t first,
                          int64_t count, AccessMode mode) {
  DimTable *dims = program->graph->dims;
  operand_elements(call, parameter, value, dim_const(dims, first), count ? dim_const(dims, count) : NULL, mode);
}

/* A matrix whose columns stand side by side, [depth][units], as panels; for several directions one after the other. */
static void lower_columns(Program *program, const Node *node, const Value *source, const Part *target, int vectors,
                          int64_t directions, int64_t units, int64_t depth) {
  Panels panels = {.lanes = program->graph->config->target->lanes,
                   .vectors = vectors,
                   .gates = 1,
                   .unit_vectors = vectors,
                   .directions = directions,
                   .direction_stride = units * depth};
  Call *call = lower_packing(program, node, &panels, false);
  operand_value(call, "source", source, READ);
  operand_null(call, "addend");
  give_part(call, "target", node, target, 0, 0, WRITE);
  operand_integer(call, "batches", 1);
  operand_integer(call, "batch_stride", 0);
  operand_integer(call, "units", units);
  operand_integer(call, "depth", depth);
  operand_integer(call, "column_stride", 1);
  operand_integer(call, "depth_stride", units);
  call_bytes(call, 8 * (double)target->floats, EXTENTS(NULL));
}

static KernelSpec *gradient_spec(Program *program, const Node *node, const GradientPlan *g) {
  static const char *const hooks[2][MAX_ACTIVATIONS] = {{"slope_f", "slope_g", "slope_h"},
                                                        {"second_slope_f", "second_slope_g", "second_slope_h"}};
  static const char *const functions[] = {"activation_h", "second_h"};
  const Trained *l = &g->layer;
  KernelSpec *spec = trained_spec(program, "recurrent_gradient", l);
  steps_knobs(spec, &g->steps);
  kernel_knob(spec, "INPUT_FORGET", l->input_forget);
  kernel_knob(spec, "PEEPHOLES", l->peepholes);
  kernel_knob(spec, "INITIAL", wants(node, GRADIENT_H) || (l->cell == CELL_LSTM && wants(node, GRADIENT_C)));
  for (int d = 0; d < l->directions; d++) {
    const Activation *own = &l->activations[d * l->n_activations];
    for (int i = 0; i < l->n_activations; i++) kernel_hook(spec, hooks[d][i], slope_body(program->arena, &own[i]));
    if (l->cell == CELL_LSTM) kernel_hook(spec, functions[d], activation_body(program->arena, &own[2]));
  }
  return spec;
}

static void lower_steps(Program *program, const Node *node, const GradientPlan *g) {
  const Trained *l = &g->layer;
  bool lstm = l->cell == CELL_LSTM;
  Call *call = kernel_call(program, node, gradient_spec(program, node, g));
  give_part(call, "weights", node, &g->r, 0, 0, READ);
  operand_value(call, "peepholes", lstm ? node_input(node, INPUT_P) : NULL, READ);
  operand_value(call, "initial_h", node_input(node, INPUT_H), READ);
  operand_value(call, "initial_c", lstm ? node_input(node, INPUT_C) : NULL, READ);
  operand_value(call, "y", behind(node, GRADIENT_Y), READ);
  operand_value(call, "saved", behind(node, GRADIENT_S), READ);
  operand_value(call, "dy", behind(node, GRADIENT_DY), READ);
  operand_value(call, "dy_h", behind(node, GRADIENT_DY_H), READ);
  operand_value(call, "dy_c", lstm ? behind(node, GRADIENT_DY_C) : NULL, READ);
  give_part(call, "gates", node, &g->gates, 0, 0, WRITE);
  give_part(call, "products", node, &g->products, 0, 0, WRITE);
  operand_value(call, "initial_dh", node_output(node, GRADIENT_H), WRITE);
  operand_value(call, "initial_dc", lstm ? node_output(node, GRADIENT_C) : NULL, WRITE);
  give_part(call, "memory", node, &g->memory, 0, 0, READ_WRITE);
  give_part(call, "tiles", node, &g->tiles, 0, 0, READ_WRITE);
  give_extents(call, node, l);
  double weights = l->directions * l->gates * (double)l->hidden * (double)l->hidden;
  call_flops(call, 2 * weights, EXTENTS(l->rows));
  call_bytes(call, 4 * weights, EXTENTS(l->steps));
  call_bytes(call, 4.0 * (double)(l->directions * (l->saved + l->gates + 2) * l->hidden), EXTENTS(l->rows));
  call_products(call, RNNCC_F32);
}

/* The H columns of the rows from `first` on, transposed, and summed to places of dB, -1: none. */
static void lower_turn(Program *program, const Node *node, const GradientPlan *g, const Part *rows, int64_t row,
                       int64_t first, int64_t sums, int64_t same_sums) {
  int64_t H = g->layer.hidden;
  const Value *db = node_output(node, GRADIENT_B);
  Call *call = kernel_call(program, node, kernel_spec(program, "turn_gradients"));
  give_part(call, "from", node, rows, first, 0, READ);
  give_part(call, "to", node, &g->turned, 0, 0, WRITE);
  give_elements(program, call, "sums", sums < 0 ? NULL : db, sums < 0 ? 0 : sums, H, WRITE);
  give_elements(program, call, "same_sums", same_sums < 0 ? NULL : db, same_sums < 0 ? 0 : same_sums, H, WRITE);
  operand_dim(call, "rows", g->layer.rows);
  operand_integer(call, "columns", H);
  operand_integer(call, "from_row", row);
  operand_integer(call, "to_row", g->turned_row);
  call_bytes(call, 8 * (double)H, EXTENTS(g->layer.rows));
}

/* What each row had, as panels: X; the states before the rows; or a GRU_BEFORE's reset parts. */
static void lower_steps_packing(Program *program, const Node *node, const GradientPlan *g, const Part *target,
                                int vectors, int input, int64_t direction) {
  const Trained *l = &g->layer;
  DimTable *dims = program->graph->dims;
  bool states = input == INPUT_H, resets = input == INPUT_R;
  int64_t columns = input == INPUT_X ? l->inputs : l->hidden, H = l->hidden, D = l->directions;
  const Value *from = states ? behind(node, GRADIENT_Y) : resets ? behind(node, GRADIENT_S) : node->inputs[INPUT_X];
  const Dim *row = dim_const(dims, states ? D * H : resets ? D * l->saved * H : l->inputs);
  const Dim *time = l->batch_first ? row : dim_mul(dims, row, l->batch);
  const Dim *sample = l->batch_first ? dim_mul(dims, row, l->steps) : row;
  const Dim *first = dim_const(dims, resets ? (direction * l->saved + GRU_GATES) * H : 0);
  if (states) { /* Y has a direction's samples side by side, or batch first its directions */
    if (!l->batch_first) sample = dim_const(dims, H);
    first = dim_const(dims, direction * H);
    if (!l->batch_first) first = dim_mul(dims, first, l->batch);
  }
  KernelSpec *spec = trained_spec(program, "pack_steps", l);
  kernel_knob(spec, "UNIT_VECTORS", vectors);
  kernel_knob(spec, "BEFORE", states);
  Call *call = kernel_call(program, node, spec);
  operand_elements(call, "rows", from, first, NULL, READ);
  operand_value(call, "initial", states ? node_input(node, INPUT_H) : NULL, READ);
  give_part(call, "target", node, target, 0, 0, WRITE);
  operand_integer(call, "columns", columns);
  operand_dim(call, "time_stride", time);
  operand_dim(call, "sample_stride", sample);
  operand_integer(call, "direction", direction);
  give_extents(call, node, l);
  call_bytes(call, 8 * (double)columns, EXTENTS(l->rows));
}

/* Rows first .. first + H of dW or dR: the transposed columns times what was packed. */
static void lower_weights(Program *program, const Node *node, const GradientPlan *g, int output, int64_t first,
                          const Part *packed) {
  const TrainedProduct *product = output == GRADIENT_W ? &g->dw : &g->dr;
  if (!wants(node, output)) return;
  Call *call = lower_product(program, node, product);
  give_part(call, "a", node, &g->turned, 0, 0, READ);
  give_part(call, "b", node, packed, 0, 0, READ);
  give_elements(program, call, "c", node_output(node, output), first * product->c_row, g->layer.hidden * product->c_row,
                WRITE);
}

/* Wb and Rb of a gate have the same gradient, but of GRU_AFTER's candidate: what is added to its product with R has the
 * product's. */
static void lower_gate(Program *program, const Node *node, const GradientPlan *g, int64_t direction, int gate) {
  const Trained *l = &g->layer;
  int64_t H = l->hidden, own = l->gates * H, first = direction * own + gate * H, bias = first + direction * own;
  bool after = l->cell == CELL_GRU_AFTER && gate == GRU_h, before = l->cell == CELL_GRU_BEFORE && gate == GRU_h;
  lower_turn(program, node, g, &g->gates, l->directions * own, first, bias, after ? -1 : bias + own);
  lower_weights(program, node, g, GRADIENT_W, first, &g->x);
  if (after) lower_turn(program, node, g, &g->products, l->directions * H, direction * H, -1, bias + own);
  lower_weights(program, node, g, GRADIENT_R, first, before ? &g->resets : &g->h);
}

static void lower_gates(Program *program, const Node *node, const GradientPlan *g) {
  const Trained *l = &g->layer;
  if (!wants_weights(node) && !wants(node, GRADIENT_B)) return;
  if (g->x.floats) lower_steps_packing(program, node, g, &g->x, g->dw.knobs.vectors, INPUT_X, 0);
  for (int64_t d = 0; d < l->directions; d++) {
    if (g->h.floats) lower_steps_packing(program, node, g, &g->h, g->dr.knobs.vectors, INPUT_H, d);
    if (g->resets.floats) lower_steps_packing(program, node, g, &g->resets, g->dr.knobs.vectors, INPUT_R, d);
    for (int gate = 0; gate < l->gates; gate++) lower_gate(program, node, g, d, gate);
  }
}

static void lower_dx(Program *program, const Node *node, const GradientPlan *g) {
  const Trained *l = &g->layer;
  lower_columns(program, node, node->inputs[INPUT_W], &g->w, g->dx.knobs.vectors, 1, l->inputs,
                l->directions * l->gates * l->hidden);
  Call *call = lower_product(program, node, &g->dx);
  give_part(call, "a", node, &g->gates, 0, 0, READ);
  give_part(call, "b", node, &g->w, 0, 0, READ);
  operand_value(call, "c", node_output(node, GRADIENT_X), WRITE);
}

static void lower_peepholes(Program *program, const Node *node, const GradientPlan *g) {
  Call *call = kernel_call(program, node, trained_spec(program, "peephole_gradients", &g->layer));
  give_part(call, "gates", node, &g->gates, 0, 0, READ);
  operand_value(call, "saved", behind(node, GRADIENT_S), READ);
  operand_value(call, "initial_c", node_input(node, INPUT_C), READ);
  operand_value(call, "to", node_output(node, GRADIENT_P), WRITE);
  give_extents(call, node, &g->layer);
  call_bytes(call, 24 * (double)(g->layer.directions * g->layer.hidden), EXTENTS(g->layer.rows));
}

static void lower_node(Program *program, Node *node) {
  const GradientPlan *g = (const GradientPlan *)node->schedule;
  const Trained *l = &g->layer;
  lower_lengths(program, node, l);
  lower_columns(program, node, node->inputs[INPUT_R], &g->r, g->steps.unit_vectors, l->directions, l->hidden,
                l->gates * l->hidden);
  lower_steps(program, node, g);
  if (wants(node, GRADIENT_X)) lower_dx(program, node, g);
  lower_gates(program, node, g);
  if (l->cell == CELL_LSTM && wants(node, GRADIENT_P)) lower_peepholes(program, node, g);
}

const KernelFamily family_recurrent_gradient = {.schedule = schedule, .scratch = scratch, .lower = lower_node};
