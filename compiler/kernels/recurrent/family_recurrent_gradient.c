/* SPDX-License-Identifier: MIT */
/*
 * RNNGradient, GRUGradient and LSTMGradient. The steps run from the last to the first, and write the gradients of the
 * gates, over S where nothing else reads it, or of RNN over the gradient of Y. Then each gradient is one product over
 * all steps: dW = gates' X and dR = gates' H, where H has the state that each row was given, and dX = gates W. What
 * nobody reads is not computed.
 */
#include "kernels/recurrent/kernels.h"
#include "kernels/recurrent/lowering.h"
#include "kernels/recurrent/trained.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "support/numbers.h"

/* Working memory of some of the node's calls: a value, from `lower` on; NULL: none is needed. */
typedef struct Part {
  int64_t floats;
  Value *value;
} Part;

typedef struct GradientPlan {
  Schedule base;
  Trained layer;
  TrainedSteps steps;
  TrainedProduct dx;     /* of a direction */
  int vectors;           /* of a panel of X or H */
  int64_t chunk;         /* rows of weight_gradients.c */
  bool in_turns;         /* X and H, there */
  Part r;                /* of the steps: R packed */
  int64_t memory, tiles; /* of the steps, what workers keep: where it ends in the node's scratch memory, in bytes */
  Part panels, slots;    /* of dW, dR and dB */
  Part w;                /* of dX: packed */
} GradientPlan;

static bool wants(const Node *node, int output) { return node_output(node, output) != NULL; }
static bool wants_weights(const Node *node) {
  return wants(node, GRADIENT_W) || wants(node, GRADIENT_R) || wants(node, GRADIENT_B);
}

static const Value *behind(const Node *node, GradientInput input) {
  return node_input(node, gradient_input(layer_cell(node->op->kind), input));
}

/* ---- schedule ---- */

static Part part_of(bool needed, int64_t floats) { return (Part){.floats = needed ? floats : 0}; }

static int64_t part_bytes(const Part *part) { return saturating_mul(4, part->floats); }

/* Columns of a matrix as whole panels. */
static int64_t whole(int64_t columns, int vectors, int64_t lanes) { return round_up(columns, vectors * lanes); }

/* Of the gates' gradients: floats of a row. */
static int64_t gates_row(const Trained *l) { return l->directions * l->saved * l->hidden; }

/* Rows of a chunk: so many that adding a chunk's products to those before takes little of their time; but fewer where
 * the copies of a chunk would be larger than part of what the layer saves, which is in memory beside them, and than the
 * gradient of Y, which is not any more, unless those of the gates have its place. */
enum { MOST_CHUNK = 1024, LEAST_CHUNK = 128, CHUNK_ROWS = 16, STRIP = 64, MOST_PER_MILLE = 97 };

/* Fewer rows of a chunk, where others follow, are worth transposing the gates for X and for H: its panels are then
 * those of one of them. */
enum { SHORT_CHUNK = 512 };

/* Bytes for the copies of a chunk. */
static int64_t room_for_chunk(const Trained *l, int64_t rows) {
  int64_t y = l->directions * l->hidden, saved = l->inputs + y + gates_row(l);
  int64_t bytes = saturating_mul(rows, 4 * saved) / 1000 * MOST_PER_MILLE;
  return l->cell == CELL_RNN ? bytes : saturating_add(bytes, saturating_mul(rows, 4 * y));
}

/* Returns bytes. */
static int64_t plan_chunk(const Graph *graph, const Node *node, GradientPlan *g, int64_t rows) {
  const Trained *l = &g->layer;
  int64_t lanes = graph->config->target->lanes, panel = g->vectors * lanes;
  int64_t x = wants(node, GRADIENT_W) ? whole(l->inputs, g->vectors, lanes) : 0;
  int64_t h = wants(node, GRADIENT_R) ? l->directions * whole(l->hidden, g->vectors, lanes) : 0;
  if (l->cell == CELL_GRU_BEFORE) h *= 2;
  g->chunk = rows;
  g->panels = part_of(wants_weights(node), rows * (g->in_turns ? max_int(x, h) : x + h));
  g->slots = part_of(wants_weights(node), graph->config->machine->cores * STRIP * (rows + lanes + panel));
  return saturating_add(part_bytes(&g->panels), part_bytes(&g->slots));
}

/* As few chunks as can be, all nearly alike. */
static void plan_chunks(const Graph *graph, const Node *node, GradientPlan *g, int64_t all) {
  int64_t bytes = room_for_chunk(&g->layer, all), rows;
  for (int64_t chunks = ceil_div(all, MOST_CHUNK);; chunks++) {
    rows = round_up(ceil_div(all, chunks), CHUNK_ROWS);
    if (plan_chunk(graph, node, g, rows) <= bytes || rows <= LEAST_CHUNK) return;
  }
}

static void plan_weights(const Graph *graph, const Node *node, GradientPlan *g) {
  int64_t all = max_int(1, min_int(g->layer.most_rows, INT32_MAX));
  plan_chunks(graph, node, g, all);
  g->in_turns = wants(node, GRADIENT_W) && wants(node, GRADIENT_R) && g->chunk < min_int(all, SHORT_CHUNK);
  if (g->in_turns) plan_chunks(graph, node, g, all);
}

static void plan_scratch(const Graph *graph, const Node *node, GradientPlan *g) {
  const Trained *l = &g->layer;
  int64_t lanes = graph->config->target->lanes, H = l->hidden, units = whole(H, g->steps.unit_vectors, lanes);
  int64_t row = 2 * (l->gates * H + lanes) + 2 * (units + lanes);
  Scratch steps = {0};
  scratch_floats(&steps, saturating_mul(l->most_batch, l->directions * row));
  g->memory = steps.bytes;
  scratch_floats(&steps, saturating_mul(l->most_batch, l->directions * units));
  g->tiles = steps.bytes;
  g->r = part_of(true, l->directions * l->gates * H * units);
  g->w = part_of(wants(node, GRADIENT_X), l->directions * l->gates * H * whole(l->inputs, g->dx.knobs.vectors, lanes));
  plan_weights(graph, node, g);
}

/* Loads beside the multiply-adds of a panel of so many vectors: a panel's load feeds more multiply-adds the more rows
 * there are, and a row's the wider the panel is. */
static double with_loads(const Target *target, int vectors) {
  return 1 + (1.0 / vectors + 1.0 / register_rows(target, vectors)) / 8;
}

static int most_vectors(const Target *target) { return target_has_few_registers(target) ? 2 : 4; }

/* Vectors of units in a panel: so that no worker has many more than another, as wide as registers allow. */
static int choose_vectors(const Graph *graph, const Trained *l) {
  const Target *target = graph->config->target;
  int64_t vectors = ceil_div(l->hidden, target->lanes), workers = graph->config->machine->cores / l->directions;
  if (workers < 1) workers = 1;
  int best = 1;
  double least = 0;
  for (int v = 1; v <= most_vectors(target); v++) {
    double share = (double)(ceil_div(ceil_div(vectors, v), workers) * v) * with_loads(target, v);
    if (least && share >= least) continue;
    least = share;
    best = v;
  }
  return best;
}

/* The same of panels of X's columns and H's, which all workers multiply with. */
static int choose_panel_vectors(const Target *target, const Trained *l) {
  int64_t x = ceil_div(l->inputs, target->lanes), h = ceil_div(l->hidden, target->lanes);
  int best = 1;
  double least = 0;
  for (int v = 1; v <= most_vectors(target); v++) {
    double all = (double)((ceil_div(x, v) + ceil_div(h, v)) * v) * with_loads(target, v);
    if (least && all >= least) continue;
    least = all;
    best = v;
  }
  return best;
}

static void plan_products(Graph *graph, GradientPlan *g) {
  const Trained *l = &g->layer;
  int64_t columns = l->gates * l->hidden;
  g->vectors = choose_panel_vectors(graph->config->target, l);
  g->dx = (TrainedProduct){.knobs = gemm_knobs(graph, l->inputs, columns, l->rows),
                           .m = l->rows,
                           .k = dim_const(graph->dims, columns),
                           .n = l->inputs,
                           .a_row = gates_row(l),
                           .c_row = l->inputs};
}

static void schedule(Graph *graph, Node *node) {
  GradientPlan *g = ARENA_NEW(graph->arena, GradientPlan);
  Trained *l = &g->layer;
  if (!read_trained(graph, node, l)) return;
  g->steps = plan_steps(graph, l, choose_vectors(graph, l), 1, l->gates * l->hidden);
  plan_products(graph, g);
  plan_scratch(graph, node, g);
  g->base.text = arena_format(graph->arena, "%s_gradient_i%lldh%lld%s_v%dr%d%s", cell_info(l->cell)->name,
                              (long long)l->inputs, (long long)l->hidden, l->directions == 2 ? "x2" : "",
                              g->steps.unit_vectors, g->steps.rows.most, workers_text(graph->arena, &g->steps));
  node->schedule = &g->base;
}

static void scratch(Graph *graph, Node *node) {
  const GradientPlan *g = (const GradientPlan *)node->schedule;
  if (!g) return;
  graph_scratch(graph, node, "steps' buffers", dim_const(graph->dims, g->tiles));
  graph_in_place(graph, node, "gates' gradients",
                 dim_mul(graph->dims, g->layer.rows, dim_const(graph->dims, 4 * gates_row(&g->layer))));
}

/* By the gates' gradients: S, or of RNN the gradient of Y, if it has the same rows. */
static bool overwrites(const Node *node, int input) {
  const CellKind *cell = layer_cell(node->op->kind);
  if (cell_saved(cell)) return input == gradient_input(cell, GRADIENT_S);
  const GradientPlan *g = (const GradientPlan *)node->schedule;
  return rows_are_like_x(&g->layer) && input == gradient_input(cell, GRADIENT_DY);
}

/* ---- lowering ---- */

static void make_part(Program *program, Part *part, const char *name) {
  if (part->floats) part->value = program_floats(program, name, dim_const(program->graph->dims, part->floats));
}

/* A matrix whose columns stand side by side, [depth][units], as panels; of several directions one after the other. */
static void lower_columns(Program *program, const Node *node, const Value *source, const Part *target, int vectors,
                          int64_t units, int64_t depth) {
  const GradientPlan *g = (const GradientPlan *)node->schedule;
  Panels panels = {.lanes = program->graph->config->target->lanes,
                   .vectors = vectors,
                   .gates = 1,
                   .unit_vectors = vectors,
                   .directions = g->layer.directions,
                   .direction_stride = units * depth};
  Call *call = lower_packing(program, node, &panels, false);
  operand_value(call, "source", source, READ);
  operand_null(call, "addend");
  operand_value(call, "target", target->value, WRITE);
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
  operand_value(call, "weights", g->r.value, READ);
  operand_value(call, "peepholes", lstm ? node_input(node, INPUT_P) : NULL, READ);
  operand_value(call, "initial_h", node_input(node, INPUT_H), READ);
  operand_value(call, "initial_c", lstm ? node_input(node, INPUT_C) : NULL, READ);
  operand_value(call, "y", behind(node, GRADIENT_Y), READ);
  operand_value(call, "saved", l->cell == CELL_RNN ? NULL : behind(node, GRADIENT_S), READ);
  operand_value(call, "dy", behind(node, GRADIENT_DY), READ);
  operand_value(call, "dy_h", behind(node, GRADIENT_DY_H), READ);
  operand_value(call, "dy_c", lstm ? behind(node, GRADIENT_DY_C) : NULL, READ);
  operand_value(call, "gates", node->in_place, WRITE);
  operand_value(call, "initial_dh", node_output(node, GRADIENT_H), WRITE);
  operand_value(call, "initial_dc", lstm ? node_output(node, GRADIENT_C) : NULL, WRITE);
  operand_bytes(call, "memory", node->scratch, 0, g->memory, READ_WRITE);
  operand_bytes(call, "tiles", node->scratch, g->memory, g->tiles - g->memory, READ_WRITE);
  give_extents(call, node, l);
  double weights = l->directions * l->gates * (double)l->hidden * (double)l->hidden;
  call_flops(call, 2 * weights, EXTENTS(l->rows));
  call_bytes(call, 4 * weights, EXTENTS(l->steps));
  call_bytes(call, 4.0 * (double)(l->directions * (l->saved + l->gates + 2) * l->hidden), EXTENTS(l->rows));
  call_products(call, RNNCC_F32);
}

static void lower_weights(Program *program, const Node *node, const GradientPlan *g) {
  const Trained *l = &g->layer;
  const Value *dw = node_output(node, GRADIENT_W), *dr = node_output(node, GRADIENT_R);
  KernelSpec *spec = trained_spec(program, "weight_gradients", l);
  kernel_knob(spec, "UNIT_VECTORS", g->vectors);
  kernel_knob(spec, "ROWS", register_rows(program->graph->config->target, g->vectors));
  kernel_knob(spec, "DEPTH_BLOCK", panel_depth_block(program->graph, g->vectors, g->chunk));
  kernel_knob(spec, "CHUNK", g->chunk);
  kernel_knob(spec, "STRIP", STRIP);
  kernel_knob(spec, "IN_TURNS", g->in_turns);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "gates", node->in_place, READ);
  operand_value(call, "x", dw ? node->inputs[INPUT_X] : NULL, READ);
  operand_value(call, "y", dr ? behind(node, GRADIENT_Y) : NULL, READ);
  operand_value(call, "initial_h", dr ? node_input(node, INPUT_H) : NULL, READ);
  operand_value(call, "panels", g->panels.value, WRITE);
  operand_value(call, "slots", g->slots.value, WRITE);
  operand_value(call, "dw", dw, WRITE);
  operand_value(call, "dr", dr, WRITE);
  operand_value(call, "db", node_output(node, GRADIENT_B), WRITE);
  operand_integer(call, "workers", program->graph->config->machine->cores);
  operand_integer(call, "inputs", l->inputs);
  give_extents(call, node, l);
  int64_t gates = l->directions * l->gates * l->hidden, columns = (dw ? l->inputs : 0) + (dr ? l->hidden : 0);
  call_flops(call, 2 * (double)gates * (double)columns, EXTENTS(l->rows));
  call_bytes(call, 4 * (double)(gates_row(l) + columns), EXTENTS(l->rows));
  call_bytes(call, 4 * (double)gates * (double)columns, EXTENTS(NULL));
  call_products(call, RNNCC_F32);
}

/* Of several directions, the sum. */
static void lower_dx(Program *program, const Node *node, const GradientPlan *g) {
  const Trained *l = &g->layer;
  int64_t gates = l->gates * l->hidden, panels = g->w.floats / l->directions;
  lower_columns(program, node, node->inputs[INPUT_W], &g->w, g->dx.knobs.vectors, l->inputs, gates);
  for (int64_t d = 0; d < l->directions; d++) {
    Call *call = lower_product(program, node, &g->dx, d > 0);
    operand_part(call, "a", node->in_place, dim_const(program->graph->dims, 4 * d * l->saved * l->hidden), NULL, READ);
    operand_elements(call, "b", g->w.value, dim_const(program->graph->dims, d * panels), NULL, READ);
    operand_value(call, "c", node_output(node, GRADIENT_X), d > 0 ? READ_WRITE : WRITE);
  }
}

static void lower_peepholes(Program *program, const Node *node, const GradientPlan *g) {
  Call *call = kernel_call(program, node, trained_spec(program, "peephole_gradients", &g->layer));
  operand_value(call, "gates", node->in_place, READ);
  operand_value(call, "initial_c", node_input(node, INPUT_C), READ);
  operand_value(call, "to", node_output(node, GRADIENT_P), WRITE);
  give_extents(call, node, &g->layer);
  call_bytes(call, 24 * (double)(g->layer.directions * g->layer.hidden), EXTENTS(g->layer.rows));
}

static void lower_node(Program *program, Node *node) {
  GradientPlan *g = (GradientPlan *)node->schedule;
  make_part(program, &g->r, "packed weights");
  make_part(program, &g->panels, "a chunk's panels");
  make_part(program, &g->slots, "workers' strips");
  make_part(program, &g->w, "packed weights");
  const Trained *l = &g->layer;
  lower_length_check(program, node, l->lengths, l->batch, l->steps);
  lower_columns(program, node, node->inputs[INPUT_R], &g->r, g->steps.unit_vectors, l->hidden, l->gates * l->hidden);
  lower_steps(program, node, g);
  if (l->cell == CELL_LSTM && wants(node, GRADIENT_P)) lower_peepholes(program, node, g);
  if (wants_weights(node)) lower_weights(program, node, g);
  if (wants(node, GRADIENT_X)) lower_dx(program, node, g); /* last, so that it may be where X was */
}

const KernelFamily family_recurrent_gradient = {
    .schedule = schedule, .scratch = scratch, .overwrites = overwrites, .lower = lower_node};
