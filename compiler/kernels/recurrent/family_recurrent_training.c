/* SPDX-License-Identifier: MIT */
/*
 * RNNTraining, GRUTraining and LSTMTraining: W is packed, one product of all steps puts the input's part of every gate
 * into S; R is packed where W was, and the steps turn what S has there into what the gradient needs.
 */
#include "kernels/recurrent/kernels.h"
#include "kernels/recurrent/lowering.h"
#include "kernels/recurrent/trained.h"
#include "machine/targets.h"
#include "support/numbers.h"

typedef struct TrainingPlan {
  Schedule base;
  Trained layer;
  TrainedSteps steps;
  TrainedProduct product; /* of a direction */
  /* S; of RNN, Y; NULL: S, which nobody reads, or Y has other rows, and `rows` begins in the scratch memory. */
  const Value *saved;
  int64_t rows, memory, tiles, scratch_bytes;
  Value *w, *r, *candidate;                     /* packed, from `lower` on */
  int64_t w_floats, r_floats, candidate_floats; /* of all directions */
  int64_t rows_floats, memory_bytes, tiles_bytes;
} TrainingPlan;

/* ---- schedule ---- */

/* Where the input's part of the gates goes. */
static const Value *place_of_gates(const Node *node, const Trained *l) {
  if (l->cell != CELL_RNN) return node->outputs[node->n_outputs - 1];
  return rows_are_like_x(l) ? node_output(node, 0) : NULL;
}

static void plan_scratch(const Graph *graph, TrainingPlan *s) {
  const Trained *l = &s->layer;
  int64_t lanes = graph->config->target->lanes, row = s->steps.panels * s->steps.unit_vectors * lanes;
  int64_t width = (int64_t)s->product.knobs.vectors * lanes;
  int64_t waiting = l->cell == CELL_GRU_BEFORE ? 1 : 0; /* gates of the candidate's own product */
  s->w_floats = l->directions * ceil_div(l->gates * l->hidden, width) * width * l->inputs;
  s->r_floats = l->directions * row * (l->gates - waiting) * l->hidden;
  s->candidate_floats = l->directions * row * waiting * l->hidden;
  Scratch all = {0};
  s->rows_floats = s->saved ? 0 : saturating_mul(l->most_rows, l->directions * l->saved * l->hidden);
  s->rows = scratch_floats(&all, s->rows_floats);
  s->memory = scratch_floats(&all, saturating_mul(l->most_batch, l->directions * 4 * (row + lanes)));
  s->tiles = scratch_floats(&all, saturating_mul(l->most_batch, l->directions * row * (l->gates - waiting)));
  s->memory_bytes = s->tiles - s->memory;
  s->tiles_bytes = all.bytes - s->tiles;
  s->scratch_bytes = all.bytes;
}

static void schedule(Graph *graph, Node *node) {
  TrainingPlan *s = ARENA_NEW(graph->arena, TrainingPlan);
  Trained *l = &s->layer;
  if (!read_trained(graph, node, l)) return;
  s->steps = plan_steps(graph, l, trained_unit_vectors(graph, l), cell_info(l->cell)->product_gates, l->hidden);
  int64_t columns = l->gates * l->hidden;
  s->product = (TrainedProduct){.knobs = gemm_knobs(graph, columns, l->inputs, l->rows),
                                .m = l->rows,
                                .k = dim_const(graph->dims, l->inputs),
                                .n = columns,
                                .a_row = l->inputs,
                                .c_row = l->directions * l->saved * l->hidden};
  s->saved = place_of_gates(node, l);
  plan_scratch(graph, s);
  s->base.text = arena_format(graph->arena, "%s_i%lldh%lld%s_r%d%s", cell_info(l->cell)->name, (long long)l->inputs,
                              (long long)l->hidden, l->directions == 2 ? "x2" : "", s->steps.rows.most,
                              workers_text(graph->arena, &s->steps));
  node->schedule = &s->base;
}

static void scratch(Graph *graph, Node *node) {
  const TrainingPlan *s = (const TrainingPlan *)node->schedule;
  if (s) graph_scratch(graph, node, "steps' buffers", dim_const(graph->dims, s->scratch_bytes));
}

/* ---- lowering ---- */

/* `gates` gates of a matrix [directions][all gates][hidden][depth], from gate `first` on, as panels of so many vectors,
 * in parts. Returns these, so many floats. */
static Value *lower_rows(Program *program, const Node *node, const TrainingPlan *s, const Value *source, int64_t floats,
                         int first, int gates, int unit_vectors, int parts, int64_t units, int64_t depth) {
  const Trained *l = &s->layer;
  Value *packed = program_floats(program, "packed weights", dim_const(program->graph->dims, floats));
  KernelSpec *spec = kernel_spec(program, "pack_rows");
  kernel_knob(spec, "VECTORS", gates * unit_vectors / parts);
  kernel_knob(spec, "GATES", gates);
  kernel_knob(spec, "UNIT_VECTORS", unit_vectors);
  Call *call = kernel_call(program, node, spec);
  operand_elements(call, "source", source, dim_const(program->graph->dims, first * l->hidden * depth), NULL, READ);
  operand_value(call, "target", packed, WRITE);
  operand_integer(call, "directions", l->directions);
  operand_integer(call, "direction_stride", l->gates * l->hidden * depth);
  operand_integer(call, "units", units);
  operand_integer(call, "depth", depth);
  call_bytes(call, 8 * (double)floats, EXTENTS(NULL));
  return packed;
}

static void lower_recurrent_weights(Program *program, const Node *node, TrainingPlan *s) {
  const Trained *l = &s->layer;
  int gates = cell_info(l->cell)->product_gates, units = s->steps.unit_vectors;
  const Value *r = node->inputs[INPUT_R];
  s->r = lower_rows(program, node, s, r, s->r_floats, 0, gates, units, s->steps.parts, l->hidden, l->hidden);
  if (s->candidate_floats)
    s->candidate = lower_rows(program, node, s, r, s->candidate_floats, GRU_h, 1, units, 1, l->hidden, l->hidden);
}

/* The gates from float `first` of a row on. */
static void give_gates(Call *call, const char *parameter, const Node *node, const TrainingPlan *s, int64_t first,
                       AccessMode mode) {
  if (s->saved)
    operand_part(call, parameter, s->saved, dim_const(call->program->graph->dims, 4 * first), NULL, mode);
  else
    operand_bytes(call, parameter, node->scratch, s->rows + 4 * first, 4 * (s->rows_floats - first), mode);
}

/* The input's part of the gates. */
static void lower_inputs(Program *program, const Node *node, TrainingPlan *s) {
  const Trained *l = &s->layer;
  int64_t floats = s->w_floats / l->directions;
  s->w = lower_rows(program, node, s, node->inputs[INPUT_W], s->w_floats, 0, 1, s->product.knobs.vectors, 1,
                    l->gates * l->hidden, l->inputs);
  for (int64_t d = 0; d < l->directions; d++) {
    Call *call = lower_product(program, node, &s->product, false);
    operand_value(call, "a", node->inputs[INPUT_X], READ);
    operand_elements(call, "b", s->w, dim_const(program->graph->dims, d * floats), NULL, READ);
    give_gates(call, "c", node, s, d * l->saved * l->hidden, WRITE);
  }
}

static KernelSpec *training_spec(Program *program, const TrainingPlan *s) {
  static const char *const hooks[2][MAX_ACTIVATIONS] = {{"activation_f", "activation_g", "activation_h"},
                                                        {"second_f", "second_g", "second_h"}};
  const Trained *l = &s->layer;
  KernelSpec *spec = trained_spec(program, "recurrent_training", l);
  steps_knobs(spec, &s->steps);
  kernel_knob(spec, "INPUT_FORGET", l->input_forget);
  kernel_knob(spec, "PEEPHOLES", l->peepholes);
  for (int i = 0; i < l->directions * l->n_activations; i++)
    kernel_hook(spec, hooks[i / l->n_activations][i % l->n_activations],
                activation_body(program->arena, &l->activations[i]));
  return spec;
}

static void lower_steps(Program *program, const Node *node, const TrainingPlan *s) {
  const Trained *l = &s->layer;
  bool lstm = l->cell == CELL_LSTM;
  Call *call = kernel_call(program, node, training_spec(program, s));
  operand_value(call, "weights", s->r, READ);
  operand_value(call, "candidate", s->candidate, READ);
  operand_value(call, "bias", node_input(node, INPUT_B), READ);
  operand_value(call, "peepholes", lstm ? node_input(node, INPUT_P) : NULL, READ);
  operand_value(call, "initial_h", node_input(node, INPUT_H), READ);
  operand_value(call, "initial_c", lstm ? node_input(node, INPUT_C) : NULL, READ);
  give_gates(call, "saved", node, s, 0, READ_WRITE);
  operand_value(call, "y", s->saved == node_output(node, 0) ? NULL : node_output(node, 0), WRITE);
  operand_value(call, "y_h", node_output(node, 1), WRITE);
  operand_value(call, "y_c", lstm ? node_output(node, 2) : NULL, WRITE);
  operand_bytes(call, "memory", node->scratch, s->memory, s->memory_bytes, READ_WRITE);
  operand_bytes(call, "tiles", node->scratch, s->tiles, s->tiles_bytes, READ_WRITE);
  give_extents(call, node, l);
  double weights = l->directions * l->gates * (double)l->hidden * (double)l->hidden;
  call_flops(call, 2 * weights, EXTENTS(l->rows));
  call_bytes(call, 4 * weights, EXTENTS(l->steps));
  call_bytes(call, 4.0 * (double)(l->directions * (l->saved + l->gates + 1) * l->hidden), EXTENTS(l->rows));
  call_products(call, RNNCC_F32);
}

static void lower_node(Program *program, Node *node) {
  TrainingPlan *s = (TrainingPlan *)node->schedule;
  lower_length_check(program, node, s->layer.lengths, s->layer.batch, s->layer.steps);
  lower_inputs(program, node, s);
  lower_recurrent_weights(program, node, s);
  lower_steps(program, node, s);
}

const KernelFamily family_recurrent_training = {.schedule = schedule, .scratch = scratch, .lower = lower_node};
