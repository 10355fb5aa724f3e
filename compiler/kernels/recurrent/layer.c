/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/layer.h"

#include "kernels/gemm/narrow_panels.h"
#include "kernels/recurrent/bf16.h"
#include "kernels/recurrent/int8.h"
#include "machine/targets.h"
#include "support/numbers.h"

/* Vectors of a panel that the kernels multiply at once. */
enum { MAX_VECTORS = 4 };

/* ---- the node ---- */

static bool read_extents(const Node *node, Layer *l) {
  const Value *x = node->inputs[INPUT_X], *w = node->inputs[INPUT_W];
  l->batch_first = node_int(node, ATTR_layout) != 0;
  l->steps = x->shape[!l->batch_first ? 0 : 1];
  l->batch = x->shape[!l->batch_first ? 1 : 0];
  l->hidden = node_int(node, ATTR_hidden_size);
  if (!dim_is_const(w->shape[2])) {
    error_at(node->where, EXIT_UNSUPPORTED, "the input size, axis 2 of W (`%.200s`), must be known at compile time",
             w->name);
    return false;
  }
  l->inputs = dim_value(w->shape[2]);
  return true;
}

static void read_attributes(const Node *node, Layer *l) {
  Direction direction = node_word(node, ATTR_direction);
  const CellKind *kind = cell_kind(node->op->kind);
  l->gates = kind->gates;
  l->n_activations = kind->activations;
  l->directions = direction == DIRECTION_bidirectional ? 2 : 1;
  l->reverse = direction == DIRECTION_reverse;
  l->input_forget = l->cell == CELL_LSTM && node_int(node, ATTR_input_forget);
  l->clip = node_has(node, ATTR_clip) ? (float)node_float(node, ATTR_clip) : 0;
  l->lengths = node_input(node, INPUT_LENGTHS);
  l->int8 = int8_asked(node);
  if (l->int8) int8_read_ranges(node, l);
  read_activations(node, l->activations);
}

/* ---- the target ---- */

/* Does the node multiply one sample in each of several steps, by weights in f32? */
static bool is_single_row(const Node *node, const Dim *steps, const Dim *batch) {
  return dim_upper(steps) > 1 && dim_upper(batch) == 1 && !int8_asked(node) && !node->inputs[INPUT_R]->narrow;
}

int layer_unit_vectors(const Node *node, const Target *target, const Dim *steps, const Dim *batch, int workers) {
  Cell cell = cell_of(node);
  int64_t hidden = node_int(node, ATTR_hidden_size);
  if (is_single_row(node, steps, batch)) return cell_unit_vectors_alone(cell, target, hidden, workers);
  return cell_unit_vectors(cell, target, hidden);
}

/* In a stack one worker runs a layer's chunks. Outside a stack, a layer may compute its product with W in chunks,
 * unless it is reverse and has lengths: then the times of a chunk of steps are each sample's own. */
static void settle_chunk(const Graph *graph, const Node *node, Layer *l) {
  RecurrentVariant *v = &l->variant;
  bool forward = l->directions == 1 && !l->reverse;
  l->stack = v->chunk ? stack_of(graph, node, &l->place) : NULL;
  if (!l->stack && ((!forward && l->lengths) || v->input == INPUT_WITH_STEP)) v->chunk = 0;
  if (v->chunk > dim_upper(l->steps)) v->chunk = (int)dim_upper(l->steps);
  if (l->stack) v->workers = v->batch_parts = 1;
}

static const NarrowWeights *narrow_input(const Node *node, int input) {
  const Value *weights = node->inputs[input];
  return narrow_columns(weights, dim_value(weights->shape[2]), 1);
}

/* Slices of R begin with a word of weights, and with a scale. The halves of `hide` may not. */
static void settle_slices(const Node *node, RecurrentVariant *v) {
  const NarrowWeights *narrow = narrow_input(node, INPUT_R);
  if (!narrow) return;
  v->depth_block = (int)round_up(v->depth_block, weights_slice(narrow));
  if (narrow->dtype == RNNCC_I4 || narrow->group) v->hide = false;
}

/* Resets knobs of the variant that this layer or its kernels do not support. */
static void settle_variant(const Node *node, Layer *l) {
  RecurrentVariant *v = &l->variant;
  int64_t batch = max_int(dim_upper(l->batch), 1);
  if (v->batch_parts > batch) v->batch_parts = (int)batch;
  if (l->int8) v->input = INPUT_AHEAD, v->hide = v->depth_block = v->chunk = 0;
  bf16_settle_variant(l);
  if (l->lengths) v->input = INPUT_AHEAD; /* the samples of a reverse direction may be at different times */
  if (!weights_alike(narrow_input(node, INPUT_W), narrow_input(node, INPUT_R))) v->input = INPUT_AHEAD;
  if (batch == 1) v->depth_block = 0;
  bool two_products = l->cell == CELL_GRU_BEFORE;
  if (batch > 1 || two_products || v->workers == 1) v->hide = false;
  if (!l->int8) settle_slices(node, v);
}

/* One vector of units in a panel, if the products with W and R are fused and more would not fit in registers. */
static int unit_vectors_of(const Node *node, const Layer *l, const Target *target) {
  int vectors = layer_unit_vectors(node, target, l->steps, l->batch, l->variant.workers);
  return l->variant.input == INPUT_WITH_STEP && vectors * l->gates > MAX_VECTORS ? 1 : vectors;
}

/* The variant of plan_recurrent with the knobs that --rnn forces. --rnn overrides a planned chunk, which may bind a
 * layer to one worker. */
static RecurrentVariant chosen_variant(const Graph *graph, const Node *node) {
  if (!node->schedule) bug("n%d has no plan", node->id);
  RecurrentVariant variant = {.knobs = node->schedule->knobs};
  if (!graph->config->rnn_schedule) return variant;
  variant.chunk = 0;
  ParsedSchedule forced;
  if (schedule_parse(recurrent_kinds, graph->config->rnn_schedule, &forced)) bug("--rnn was not checked");
  schedule_set_named(&forced, &variant.knobs);
  return variant;
}

/* The product with W: its rows are the samples of all steps, or of a chunk. In a batch-first chunk each sample is a
 * product of its own; the last chunk may be shorter. */
static GemmKnobs input_gemm(Graph *graph, const NarrowWeights *narrow, const Layer *l) {
  int chunk = l->variant.chunk;
  int64_t columns = l->gates_row / l->products;
  const Dim *steps = chunk ? dim_const(graph->dims, chunk) : l->steps;
  const Dim *m = chunk && l->batch_first ? steps : dim_mul(graph->dims, steps, l->batch);
  GemmKnobs knobs = gemm_knobs(graph, columns, l->inputs, m);
  if (l->input_in_matrices) return gemm_knobs_in_matrices(graph, knobs.vectors, m, weights_row_parts(narrow));
  knobs = narrow_gemm_knobs(graph, knobs, m, narrow);
  if (!chunk) return knobs;
  if (!dim_is_const(l->steps) || dim_value(l->steps) % chunk) knobs.rows.least = 1;
  return knobs;
}

/* A direction's own product needs panels that no other direction has columns in. */
static void choose_products(Graph *graph, const NarrowWeights *narrow, Layer *l) {
  int64_t vectors = l->panels * l->gates * l->unit_vectors; /* of a direction */
  l->gates_row = l->directions * vectors * graph->config->target->lanes;
  l->products = l->variant.chunk ? (int)l->directions : 1;
  l->gemm = input_gemm(graph, narrow, l);
  if (l->products == 1 || vectors % l->gemm.vectors == 0) return;
  l->variant.chunk = 0;
  l->products = 1;
  l->gemm = input_gemm(graph, narrow, l);
}

static void choose_knobs(Graph *graph, const Node *node, Layer *l) {
  const Target *target = graph->config->target;
  l->unit_vectors = unit_vectors_of(node, l, target);
  int product_vectors = cell_info(l->cell)->product_gates * l->unit_vectors;
  l->panels = ceil_div(l->hidden, (int64_t)l->unit_vectors * target->lanes);
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  bool whole = with_step || l->int8 || l->hidden_in_matrices;
  l->panel_parts = whole ? 1 : cell_panel_parts(target, product_vectors, dim_upper(l->batch));
  product_vectors /= l->panel_parts;
  int block_vectors = with_step ? l->gates * l->unit_vectors : product_vectors, ways = l->variant.batch_parts;
  if (l->hidden_in_matrices)
    l->rows = block_rows(MATRIX_ROWS / l->row_parts, l->batch, ways);
  else if (!l->int8 && weights_in_tiles(target, narrow_input(node, INPUT_R)))
    l->rows = bf16_block_rows(graph, block_vectors, l->batch, ways);
  else
    l->rows = block_rows(register_rows(target, block_vectors), l->batch, ways);
  bool waits = l->cell == CELL_LSTM || l->cell == CELL_GRU_AFTER; /* for an activation of an activation */
  l->cells_first = waits && l->rows.most > 1 && target_has_few_registers(target);
  l->parts = cell_partial_sums(target, product_vectors);
  l->halves = !l->int8 && !l->hidden_in_matrices && l->panels % 2 && l->panels >= 3 && l->variant.workers > 1 &&
              !l->variant.hide;
  choose_products(graph, l->int8 ? NULL : narrow_input(node, INPUT_W), l);
}

/* ---- the matrices ---- */

/* A vector for each gate, as [direction][gate][unit] in the source. */
static Panels vector_panels(const Layer *l, const Target *target, int gates, int64_t direction_stride) {
  return (Panels){.lanes = target->lanes,
                  .vectors = 1,
                  .gates = gates,
                  .unit_vectors = l->unit_vectors,
                  .addend_gates = gates,
                  .directions = l->directions,
                  .units = l->hidden,
                  .depth = 1,
                  .direction_stride = direction_stride,
                  .column_stride = 1,
                  .depth_stride = 1};
}

/* Rows of `depth` elements, as [direction][all gates][unit][depth] in the source, of which `gates` are packed. */
static Panels matrix_panels(const Layer *l, const Target *target, int gates, int vectors, int64_t depth) {
  Panels panels = vector_panels(l, target, gates, l->gates * l->hidden * depth);
  panels.vectors = vectors;
  panels.depth = panels.column_stride = depth;
  return panels;
}

static void plan_biases(const Node *node, const Target *target, Layer *l) {
  const Value *b = node_input(node, INPUT_B);
  int64_t of_direction = 2 * l->gates * l->hidden;
  Panels panels = vector_panels(l, target, l->gates, of_direction);
  if (l->cell == CELL_GRU_AFTER) {
    panels.addend_gates = GRU_h;
    Panels after = vector_panels(l, target, 1, of_direction);
    l->matrices[MATRIX_AFTER_BIAS] =
        (MatrixPlan){.source = b, .first = (GRU_GATES + GRU_h) * l->hidden, .addend = -1, .panels = after};
  }
  l->matrices[MATRIX_BIAS] = (MatrixPlan){.source = b, .addend = l->gates * l->hidden, .panels = panels};
}

static void plan_matrices(const Node *node, const Target *target, Layer *l) {
  int product = cell_info(l->cell)->product_gates, unit_vectors = l->unit_vectors;
  const Value *r = node->inputs[INPUT_R];
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  Panels input = matrix_panels(l, target, l->gates, with_step ? l->gates * unit_vectors : l->gemm.vectors, l->inputs);
  Panels hidden = matrix_panels(l, target, product, product * unit_vectors / l->panel_parts, l->hidden);
  input.in_matrices = l->input_in_matrices;
  hidden.in_matrices = l->hidden_in_matrices;
  l->matrices[MATRIX_INPUT] = (MatrixPlan){.source = node->inputs[INPUT_W], .addend = -1, .panels = input};
  l->matrices[MATRIX_HIDDEN] = (MatrixPlan){.source = r, .addend = -1, .panels = hidden};
  if (l->cell == CELL_GRU_BEFORE) {
    Panels last = matrix_panels(l, target, 1, unit_vectors, l->hidden);
    last.in_matrices = l->hidden_in_matrices;
    int64_t first = GRU_h * l->hidden * l->hidden;
    l->matrices[MATRIX_CANDIDATE] = (MatrixPlan){.source = r, .first = first, .addend = -1, .panels = last};
  }
  if (l->cell == CELL_LSTM) {
    Panels peepholes = vector_panels(l, target, 3, 3 * l->hidden);
    l->matrices[MATRIX_PEEPHOLES] =
        (MatrixPlan){.source = node_input(node, INPUT_P), .addend = -1, .panels = peepholes};
  }
  plan_biases(node, target, l);
}

/* ---- scratch memory: gates, the steps' buffers, partial sums ---- */

static int64_t aligned(int64_t bytes) { return bytes > INT64_MAX - 63 ? INT64_MAX : (bytes + 63) & ~INT64_C(63); }

static void plan_scratch(const Target *target, Layer *l) {
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  int64_t batch = dim_upper(l->batch), steps = l->variant.chunk ? l->variant.chunk : dim_upper(l->steps);
  int64_t samples = with_step ? batch : saturating_mul(steps, batch);
  int64_t state_row = round_up(l->panels * l->unit_vectors * target->lanes, STATE_LINE) + STATE_LINE;
  int64_t gates = aligned(saturating_mul(samples, l->gates_row * 4));
  int64_t buffers = l->directions * cell_info(l->cell)->buffers * state_row * 4;
  l->memory = gates;
  l->partial = aligned(saturating_add(gates, saturating_mul(batch, buffers)));
  int64_t product = l->directions * l->panels * cell_info(l->cell)->product_gates * l->unit_vectors * target->lanes;
  bool suspends = l->variant.hide || l->variant.depth_block || l->halves || l->panel_parts > 1;
  l->partial_bytes = suspends ? saturating_mul(batch, 4 * product) : 0;
  l->scratch_bytes = aligned(saturating_add(l->partial, l->partial_bytes));
}

/* "lstm_i256h256_r1_p2_hide". */
static const char *schedule_text(Arena *arena, const Layer *l) {
  const RecurrentVariant *v = &l->variant;
  Text text = text_new(arena);
  text_add(&text, "%s_i%lldh%lld%s_r%d", cell_info(l->cell)->name, (long long)l->inputs, (long long)l->hidden,
           l->directions == 2 ? "x2" : "", l->rows.most);
  if (v->workers < ALL_WORKERS) text_add(&text, "_p%d", v->workers);
  if (v->batch_parts > 1) text_add(&text, "_s%d", v->batch_parts);
  if (v->hide) text_add(&text, "_hide");
  if (v->depth_block) text_add(&text, "_k%d", v->depth_block);
  if (v->input == INPUT_WITH_STEP) text_add(&text, "_step");
  if (l->int8) text_add(&text, l->fixed_ranges ? "_int8s" : "_int8");
  if (l->int8 && l->hidden_form == IN_MATRICES) text_add(&text, "_matrices");
  if (l->hidden_in_matrices) text_add(&text, "_bf16");
  if (v->chunk) text_add(&text, l->stack ? "_w%d" : "_c%d", v->chunk);
  return text.data;
}

Layer *layer_run_by(Graph *graph, Node *node, const RecurrentVariant *variant) {
  Layer *l = ARENA_NEW(graph->arena, Layer);
  l->cell = cell_of(node);
  if (!read_extents(node, l)) return NULL;
  const char *obstacle = int8_asked(node) ? int8_obstacle(node) : NULL;
  if (obstacle) {
    error_at(node->where, EXIT_UNSUPPORTED, "precision %s %s", node_string(node, ATTR_precision), obstacle);
    return NULL;
  }
  read_attributes(node, l);
  l->variant = *variant;
  bf16_settle_products(graph, node, l);
  settle_chunk(graph, node, l);
  settle_variant(node, l);
  choose_knobs(graph, node, l);
  if (l->int8) int8_plan_products(graph, node, l);
  plan_matrices(node, graph->config->target, l);
  plan_scratch(graph->config->target, l);
  if (l->int8) int8_plan_scratch(l);
  bf16_plan_scratch(graph, l);
  l->base = (Schedule){schedule_text(graph->arena, l), &recurrent_kind, l->variant.knobs};
  return l;
}

Layer *layer_of(Graph *graph, Node *node) {
  RecurrentVariant variant = chosen_variant(graph, node);
  return layer_run_by(graph, node, &variant);
}
