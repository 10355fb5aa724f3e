/* SPDX-License-Identifier: MIT */
/*
 * RNN, GRU and LSTM: kernels pack matrices that are not constant, one product computes the input's part of all gates of
 * all steps, unless each step computes its own, then each direction runs its steps. See kernels/recurrent/layer.h. The
 * calls of a stack that runs as a wavefront are all made at its last layer.
 */
#include "kernels/gemm/narrow_panels.h"
#include "kernels/recurrent/bf16.h"
#include "kernels/recurrent/int8.h"
#include "kernels/recurrent/kernels.h"
#include "kernels/recurrent/layer.h"
#include "kernels/recurrent/lowering.h"
#include "program/build.h"

static void schedule(Graph *graph, Node *node) {
  Layer *l = layer_of(graph, node);
  node->schedule = l ? &l->base : NULL;
}

static void scratch(Graph *graph, Node *node) {
  const Layer *l = (const Layer *)node->schedule;
  if (!l) return;
  graph_scratch(graph, node, "gates", dim_const(graph->dims, l->scratch_bytes));
}

/* A GRU_AFTER without biases has an after_bias of zeros. */
static void pack(Graph *graph, Node *node) {
  static const char *const names[] = {"packed W",      "packed bias",     "packed R", "packed R of the candidate",
                                      "bias of reset", "packed peepholes"};
  Layer *l = (Layer *)node->schedule;
  for (int i = 0; i < MATRICES; i++) {
    MatrixPlan *matrix = &l->matrices[i];
    bool zeros = i == MATRIX_AFTER_BIAS && l->cell == CELL_GRU_AFTER && !matrix->source;
    if (zeros) {
      int64_t floats = panels_floats(&matrix->panels);
      matrix->packed = graph_constant(graph, names[i], RNNCC_F32, 1, &floats, ARENA_ARRAY(graph->arena, float, floats));
    }
    if (l->int8 && (i == MATRIX_INPUT || i == MATRIX_HIDDEN || i == MATRIX_CANDIDATE)) {
      Int8Form form = i == MATRIX_INPUT ? l->input_form : l->hidden_form;
      if (matrix->source) int8_pack(graph, node, matrix, form, names[i]);
      continue;
    }
    if (layer_narrow(l, (Matrix)i)) {
      NarrowPanels panels = packed_narrow(graph, names[i], &matrix->panels, matrix->source, matrix->first);
      matrix->packed = panels.packed;
      matrix->scales = panels.scales;
      if (panels.scales) graph_pack(graph, node, panels.scales);
    } else if (matrix->source && value_is_constant(matrix->source)) {
      const float *source = matrix->source->data;
      matrix->packed = packed_constant(graph, names[i], &matrix->panels, source + matrix->first,
                                       matrix->addend < 0 ? NULL : source + matrix->addend);
    }
    if (matrix->packed) graph_pack(graph, node, matrix->packed);
  }
}

/* ---- lowering ---- */

/* The packed matrix from element `first` on; NULL if there is none. */
static void give_part(Program *program, Call *call, const char *parameter, const MatrixPlan *matrix, int64_t first) {
  if (matrix->packed)
    operand_elements(call, parameter, matrix->packed, dim_const(program->graph->dims, first), NULL, READ);
  else
    operand_null(call, parameter);
}

void give_matrix(Program *program, Call *call, const char *parameter, const MatrixPlan *matrix) {
  give_part(program, call, parameter, matrix, 0);
}

/* Of weights of i8 or i4: the scales of part `index` of so many parts of the packed columns; else NULL. */
static void give_scales(Program *program, Call *call, const char *parameter, const MatrixPlan *matrix, int64_t index,
                        int64_t parts) {
  if (matrix->scales)
    operand_elements(call, parameter, matrix->scales,
                     dim_const(program->graph->dims, index * value_count(matrix->scales) / parts), NULL, READ);
  else
    operand_null(call, parameter);
}

/* From the matrix's element `first` on; NULL if that is less than 0. */
static void give_source(Program *program, Call *call, const char *parameter, const Value *source, int64_t first) {
  if (first < 0)
    operand_null(call, parameter);
  else
    operand_elements(call, parameter, source, dim_const(program->graph->dims, first), NULL, READ);
}

/* Packs the matrix in the open block. source: the plan's, or the value outside of loops that it is. */
static void lower_matrix(Program *program, const Node *node, MatrixPlan *matrix, const Value *source) {
  const Panels *p = &matrix->panels;
  matrix->packed = program_floats(program, "packed weights", dim_const(program->graph->dims, panels_floats(p)));
  Call *call = lower_packing(program, node, p, matrix->addend >= 0);
  give_source(program, call, "source", source, matrix->first);
  give_source(program, call, "addend", source, matrix->addend);
  operand_value(call, "target", matrix->packed, WRITE);
  operand_integer(call, "batches", 1);
  operand_integer(call, "batch_stride", 0);
  operand_integer(call, "units", p->units);
  operand_integer(call, "depth", p->depth);
  operand_integer(call, "column_stride", p->column_stride);
  operand_integer(call, "depth_stride", p->depth_stride);
  call_bytes(call, 8 * (double)panels_floats(p), EXTENTS(NULL));
}

static bool is_packed_by_run(const MatrixPlan *matrix) { return matrix->source && !matrix->packed; }

static Value *outer_of(const Node *node, Value *const *outer, const Value *source) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] == source) return outer[i];
  return NULL;
}

static void lower_once(Program *program, Node *node, Value *const *outer) {
  Layer *l = (Layer *)node->schedule;
  for (int i = 0; i < MATRICES && !l->int8; i++) {
    MatrixPlan *matrix = &l->matrices[i];
    const Value *source = is_packed_by_run(matrix) ? outer_of(node, outer, matrix->source) : NULL;
    if (source) lower_matrix(program, node, matrix, source);
  }
}

/* The earliest time of a chunk's steps: a reverse direction starts at the end. */
static const Dim *first_time(DimTable *dims, const Layer *l, const Wavefront *chunks, bool reverse) {
  if (!chunks) return dim_const(dims, 0);
  const Dim *first = dim_symbol(dims, chunks->first);
  if (!reverse) return first;
  const Dim *end = dim_sub(dims, l->steps, first);
  return dim_max(dims, dim_const(dims, 0), dim_sub(dims, end, dim_symbol(dims, chunks->count)));
}

/* The rows of the product with W: the samples of all steps, or of a chunk. The times of a batch-first chunk are not
 * contiguous, so each sample is a product of its own. */
static void give_rows(Program *program, Call *call, const Node *node, const Layer *l, int product,
                      const Wavefront *chunks) {
  DimTable *dims = program->graph->dims;
  const Dim *inputs = dim_const(dims, l->inputs), *step = l->batch_first ? inputs : dim_mul(dims, l->batch, inputs);
  bool by_sample = chunks && l->batch_first;
  const Dim *first = first_time(dims, l, chunks, l->reverse || product == 1);
  const Dim *steps = chunks ? dim_symbol(dims, chunks->count) : l->steps;
  operand_elements(call, "a", node->inputs[INPUT_X], dim_mul(dims, first, step), NULL, READ);
  operand_dim(call, "m", by_sample ? steps : dim_mul(dims, steps, l->batch));
  if (l->input_in_matrices) return;
  operand_integer(call, "batch_rank", by_sample);
  operand_dim_array(call, "batch_dims", by_sample, &l->batch);
  operand_dim_array(call, "a_batch", by_sample, (const Dim *[]){dim_mul(dims, l->steps, inputs)});
  operand_integer_array(call, "b_batch", by_sample, (const int64_t[]){0});
}

static void lower_input_product(Program *program, const Node *node, const Layer *l, int product,
                                const Wavefront *chunks) {
  const MatrixPlan *weights = &l->matrices[MATRIX_INPUT];
  int64_t columns = l->gates_row / l->products, first = product * columns;
  Call *call = kernel_call(program, node, input_spec(program->arena, l, product));
  give_rows(program, call, node, l, product, chunks);
  give_part(program, call, "b", weights, product * value_count(weights->packed) / l->products);
  give_part(program, call, "addend", &l->matrices[MATRIX_BIAS], first);
  if (l->input_in_matrices)
    operand_bytes(call, "rounded", node->scratch, l->x_rounded, l->state_rounded - l->x_rounded, READ_WRITE);
  else
    give_scales(program, call, "scales", weights, product, l->products);
  operand_bytes(call, "c", node->scratch, 4 * first, l->memory - 4 * first, WRITE);
  if (l->products > 1) operand_sharing(call, "c", SHARED_BY_WORKER); /* each direction has a crew of its own */
  operand_float(call, "scale", 1);
  operand_float(call, "addend_scale", 1);
  operand_integer(call, "n", columns);
  operand_integer(call, "k", l->inputs);
  operand_integer(call, "a_row", l->inputs);
  operand_integer(call, "a_depth", 1);
  operand_integer(call, "addend_row", 0);
  operand_integer(call, "c_row", l->gates_row);
  double n = (double)columns, k = (double)l->inputs, results = (double)(l->directions * l->gates * l->hidden);
  call_flops(call, 2 * results / l->products * k, EXTENTS(l->steps, l->batch));
  call_bytes(call, 4 * (k + n), EXTENTS(l->steps, l->batch));
  call_bytes(call, (double)weights_size(node->inputs[INPUT_W]->narrow) * n * k, EXTENTS(NULL));
  weights_products(call, node->inputs[INPUT_W]->narrow, l->input_in_matrices);
}

void lower_length_check(Program *program, const Node *node, const Value *lengths, const Dim *batch, const Dim *steps) {
  if (!lengths || program_check_range(program, lengths, 0, 1, steps, "sequence length")) return;
  KernelSpec *spec = kernel_spec(program, "recurrent_lengths");
  kernel_type(spec, "Length", lengths->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "lengths", lengths, READ);
  operand_dim(call, "batch", batch);
  operand_dim(call, "steps", steps);
}

/* Directions write different bytes. */
static void share_directions(Call *call, const char *const *parameters) {
  for (; *parameters; parameters++) operand_sharing(call, *parameters, SHARED_APART);
}

void give_direction(Program *program, Call *call, const Node *node, const Layer *l, int direction) {
  static const char *const apart[] = {"gates", "after_bias", "y", "y_h", "y_c", "peepholes", "memory", NULL};
  operand_bytes(call, "gates", node->scratch, 0, l->memory, READ_WRITE);
  give_matrix(program, call, "after_bias", &l->matrices[MATRIX_AFTER_BIAS]);
  give_matrix(program, call, "peepholes", &l->matrices[MATRIX_PEEPHOLES]);
  operand_value(call, "lengths", l->lengths, READ);
  operand_value(call, "initial_h", node_input(node, INPUT_H), READ);
  operand_value(call, "initial_c", l->cell == CELL_LSTM ? node_input(node, INPUT_C) : NULL, READ);
  operand_value(call, "y", node_output(node, 0), WRITE);
  operand_value(call, "y_h", node_output(node, 1), WRITE);
  operand_value(call, "y_c", node_output(node, 2), WRITE);
  operand_bytes(call, "memory", node->scratch, l->memory, l->partial - l->memory, READ_WRITE);
  operand_float(call, "clip", (double)l->clip);
  operand_dim(call, "steps", l->steps);
  operand_dim(call, "batch", l->batch);
  operand_integer(call, "hidden", l->hidden);
  operand_integer(call, "directions", l->directions);
  operand_integer(call, "direction", direction);
  operand_integer(call, "reverse", direction == 1 || l->reverse);
  operand_integer(call, "batch_first", l->batch_first);
  share_directions(call, apart);
}

/* The sums of a step and what it moves. */
static void give_cost(Call *call, const Node *node, const Layer *l) {
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  double h = (double)l->hidden, weights = l->gates * h * (h + (with_step ? (double)l->inputs : 0));
  call_flops(call, 2 * weights, EXTENTS(l->steps, l->batch));
  call_bytes(call, (double)weights_size(node->inputs[INPUT_R]->narrow) * weights, EXTENTS(l->steps));
  call_bytes(call, 12 * h, EXTENTS(l->steps, l->batch));
  weights_products(call, node->inputs[INPUT_R]->narrow, l->hidden_in_matrices);
}

static void lower_steps_in_matrices(Program *program, const Node *node, const Layer *l, int direction) {
  static const char *const apart[] = {"weights", "candidate", "rounded", NULL};
  Call *call = kernel_call(program, node, steps_spec(program->arena, l, direction));
  give_matrix(program, call, "weights", &l->matrices[MATRIX_HIDDEN]);
  give_matrix(program, call, "candidate", &l->matrices[MATRIX_CANDIDATE]);
  operand_bytes(call, "rounded", node->scratch, l->state_rounded, l->scratch_bytes - l->state_rounded, READ_WRITE);
  give_direction(program, call, node, l, direction);
  give_cost(call, node, l);
  share_directions(call, apart);
}

static void lower_steps(Program *program, const Node *node, const Layer *l, int direction, const Wavefront *chunks) {
  static const char *const apart[] = {"input",        "bias",   "weights",          "candidate", "partial",
                                      "input_scales", "scales", "candidate_scales", NULL};
  static const MatrixPlan none = {0};
  Call *call = kernel_call(program, node, steps_spec(program->arena, l, direction));
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  DimTable *dims = program->graph->dims;
  operand_value(call, "x", with_step ? node->inputs[INPUT_X] : NULL, READ);
  give_matrix(program, call, "input", with_step ? &l->matrices[MATRIX_INPUT] : &none);
  give_matrix(program, call, "bias", with_step ? &l->matrices[MATRIX_BIAS] : &none);
  give_matrix(program, call, "weights", &l->matrices[MATRIX_HIDDEN]);
  give_matrix(program, call, "candidate", &l->matrices[MATRIX_CANDIDATE]);
  give_direction(program, call, node, l, direction);
  operand_bytes(call, "partial", node->scratch, l->partial, l->partial_bytes, READ_WRITE);
  operand_dim(call, "first", chunks ? dim_symbol(dims, chunks->first) : dim_const(dims, 0));
  operand_dim(call, "count", chunks ? dim_symbol(dims, chunks->count) : l->steps);
  operand_integer(call, "inputs", l->inputs);
  give_scales(program, call, "input_scales", with_step ? &l->matrices[MATRIX_INPUT] : &none, 0, 1);
  give_scales(program, call, "scales", &l->matrices[MATRIX_HIDDEN], 0, 1);
  give_scales(program, call, "candidate_scales", &l->matrices[MATRIX_CANDIDATE], 0, 1);
  give_cost(call, node, l);
  share_directions(call, apart);
}

static void lower_preparation(Program *program, const Node *node) {
  Layer *l = (Layer *)node->schedule;
  lower_length_check(program, node, l->lengths, l->batch, l->steps);
  for (int i = 0; i < MATRICES; i++) {
    MatrixPlan *matrix = &l->matrices[i];
    if (is_packed_by_run(matrix)) lower_matrix(program, node, matrix, matrix->source);
  }
}

static void lower_layer(Program *program, const Node *node, const Layer *l, const Wavefront *chunks) {
  for (int product = 0; l->variant.input == INPUT_AHEAD && product < l->products; product++)
    lower_input_product(program, node, l, product, chunks);
  for (int direction = 0; direction < l->directions; direction++) {
    if (l->hidden_in_matrices)
      lower_steps_in_matrices(program, node, l, direction);
    else
      lower_steps(program, node, l, direction, chunks);
  }
}

static void lower_wavefront(Program *program, const Stack *stack) {
  const Layer *first = (const Layer *)stack->layers[0]->schedule;
  for (int i = 0; i < stack->n_layers; i++) lower_preparation(program, stack->layers[i]);
  const Node *top = stack->layers[stack->n_layers - 1];
  const Wavefront *wavefront = program_wavefront(program, top, stack->n_layers, first->variant.chunk, first->steps);
  for (int i = 0; i < stack->n_layers; i++) {
    const Layer *l = (const Layer *)stack->layers[i]->schedule;
    if (l->stack != stack || l->variant.chunk != first->variant.chunk) bug("the layers of a stack have other chunks");
    program_layer(program, i);
    lower_layer(program, stack->layers[i], l, wavefront);
  }
  program_end(program);
}

static void lower_alone(Program *program, const Node *node, const Layer *l) {
  lower_preparation(program, node);
  if (!l->variant.chunk) {
    if (l->int8)
      int8_lower(program, node, l);
    else
      lower_layer(program, node, l, NULL);
    return;
  }
  lower_layer(program, node, l, program_wavefront(program, node, 1, l->variant.chunk, l->steps));
  program_end(program);
}

static void lower_node(Program *program, Node *node) {
  const Layer *l = (const Layer *)node->schedule;
  if (!l->stack) {
    lower_alone(program, node, l);
  } else if (l->place + 1 == l->stack->n_layers) {
    lower_wavefront(program, l->stack);
  }
}

static void dump_stack(Text *out, const Graph *graph, const Node *node) {
  int layer;
  const Stack *stack = stack_of(graph, node, &layer);
  if (stack)
    text_add(out, "  layer %d of the stack n%d..n%d\n", layer, stack->layers[0]->id,
             stack->layers[stack->n_layers - 1]->id);
}

/* Only after choose_schedules; before, the schedule is a plan. */
static void dump_knobs(Text *out, const Graph *graph, const Node *node) {
  dump_stack(out, graph, node);
  if (node->schedule && node->schedule->text) gemm_dump(out, &((const Layer *)node->schedule)->gemm);
}

const KernelFamily family_recurrent = {
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .dump_knobs = dump_knobs,
    .lower_once = lower_once,
    .lower = lower_node,
};
