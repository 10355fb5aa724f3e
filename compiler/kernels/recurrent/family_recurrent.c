/* SPDX-License-Identifier: MIT */
/*
 * RNN, GRU and LSTM: matrices that are not constant are packed, one product makes the input's part of all gates of all
 * steps, unless the steps make it themselves, then each direction walks its steps. What the layer is stands in
 * kernels/recurrent/layer.h. A stack that runs as a wavefront does so chunk by chunk; its calls all stand at its last
 * layer.
 */
#include "kernels/recurrent/layer.h"
#include "program/emitter.h"

static void schedule(Graph *graph, Node *node) {
  Layer *l = layer_of(graph, node);
  node->schedule = l ? &l->base : NULL;
}

static void scratch(Graph *graph, Node *node) {
  const Layer *l = (const Layer *)node->schedule;
  if (!l) return;
  graph_scratch(graph, node, "gates", dim_const(graph->dims, l->scratch_bytes));
}

/* A GRU without biases still has its after_bias: zeros. */
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
    if (matrix->source && value_is_constant(matrix->source)) {
      const float *source = matrix->source->data;
      matrix->packed = packed_constant(graph, names[i], &matrix->panels, source + matrix->first,
                                       matrix->addend < 0 ? NULL : source + matrix->addend);
    }
    if (matrix->packed) add_packed(graph, node, matrix->packed);
  }
}

/* ---- emission ---- */

static const char *scratch_at(Emitter *emitter, const Node *node, int64_t offset) {
  return arena_format(emitter_arena(emitter), "(float *)(void *)(t%d + %lld)", node->scratch->id, (long long)offset);
}

/* The packed matrix as a C expression. */
static const char *matrix_text(Emitter *emitter, const Node *node, const MatrixPlan *matrix) {
  if (matrix->packed) return arena_format(emitter_arena(emitter), "t%d", matrix->packed->id);
  return matrix->source ? scratch_at(emitter, node, matrix->scratch) : "NULL";
}

static void emit_matrix(Emitter *emitter, const Node *node, const MatrixPlan *matrix) {
  if (!matrix->source || matrix->packed) return;
  Arena *arena = emitter_arena(emitter);
  int id = matrix->source->id;
  const char *source = arena_format(arena, "t%d + %lld", id, (long long)matrix->first);
  const char *addend = matrix->addend < 0 ? NULL : arena_format(arena, "t%d + %lld", id, (long long)matrix->addend);
  const Panels *p = &matrix->panels;
  const char *target = scratch_at(emitter, node, matrix->scratch);
  KernelCall *call = emit_packing(emitter, node, p, source, addend, target);
  call_argument(call, "batches", "1");
  call_argument(call, "batch_stride", "0");
  call_integer(call, "units", p->units);
  call_integer(call, "depth", p->depth);
  call_integer(call, "column_stride", p->column_stride);
  call_integer(call, "depth_stride", p->depth_stride);
  call_cost(call, 0, 8 * (double)panels_floats(p));
}

static const char *dim_text(Emitter *emitter, const Dim *dim) {
  Text text = text_new(emitter_arena(emitter));
  dim_print_c(&text, dim);
  return text.data;
}

/* The rows that are multiplied with W: the samples of all steps, or those of a chunk. The times of a
 * batch-first chunk do not stand together: there each sample is a product of its own. */
static void give_rows(Emitter *emitter, KernelCall *call, const Node *node, const Layer *l) {
  DimTable *dims = emitter_graph(emitter)->dims;
  const Dim *inputs = dim_const(dims, l->inputs), *step = l->batch_first ? inputs : dim_mul(dims, l->batch, inputs);
  bool in_chunks = l->variant.chunk != 0, by_sample = in_chunks && l->batch_first;
  call_argument(call, "a", in_chunks ? "t%d + first * %s" : "t%d", node->inputs[INPUT_X]->id, dim_text(emitter, step));
  if (!in_chunks) call_dim(call, "m", dim_mul(dims, l->steps, l->batch));
  if (in_chunks) call_argument(call, "m", by_sample ? "count" : "count * %s", dim_text(emitter, l->batch));
  call_argument(call, "batch_rank", "%d", by_sample);
  call_dims(call, "batch_dims", by_sample, &l->batch);
  call_dims(call, "a_batch", by_sample, (const Dim *[]){dim_mul(dims, l->steps, inputs)});
  call_ints(call, "b_batch", by_sample, (const int64_t[]){0});
}

static void emit_input_product(Emitter *emitter, const Node *node, const Layer *l) {
  const MatrixPlan *bias = &l->matrices[MATRIX_BIAS];
  KernelSpec *spec = gemm_spec(emitter, &l->gemm);
  kernel_knob(spec, "ADDEND", bias->source != NULL);
  KernelCall *call = kernel_call(emitter, node, spec);
  give_rows(emitter, call, node, l);
  call_argument(call, "b", "%s", matrix_text(emitter, node, &l->matrices[MATRIX_INPUT]));
  call_argument(call, "addend", "%s", matrix_text(emitter, node, bias));
  call_argument(call, "c", "%s", scratch_at(emitter, node, 0));
  call_argument(call, "scale", "1");
  call_argument(call, "addend_scale", "1");
  call_integer(call, "n", l->gates_row);
  call_integer(call, "k", l->inputs);
  call_integer(call, "a_row", l->inputs);
  call_argument(call, "a_depth", "1");
  call_argument(call, "addend_row", "0");
  call_integer(call, "c_row", l->gates_row);
  double m = (double)dim_optimum(l->steps) * (double)dim_optimum(l->batch), n = (double)l->gates_row;
  double k = (double)l->inputs;
  call_cost(call, 2 * m * n * k, 4 * (m * k + n * k + m * n));
}

static void emit_length_check(Emitter *emitter, const Node *node, const Layer *l) {
  if (!l->lengths || emitter_check_range(emitter, l->lengths, 0, 1, l->steps, "sequence length")) return;
  KernelSpec *spec = kernel_spec(emitter, "recurrent_lengths");
  kernel_type(spec, "Length", l->lengths->dtype);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "lengths", l->lengths);
  call_dim(call, "batch", l->batch);
  call_dim(call, "steps", l->steps);
}

static KernelSpec *steps_spec(Emitter *emitter, const Layer *l, int direction) {
  static const char *const hooks[MAX_ACTIVATIONS] = {"activation_f", "activation_g", "activation_h"};
  KernelSpec *spec = kernel_spec(emitter, "recurrent_steps");
  kernel_knob(spec, "CELL", l->cell);
  kernel_knob(spec, "UNIT_VECTORS", l->unit_vectors);
  kernel_knob(spec, "ROWS", l->rows.most);
  kernel_knob(spec, "MIN_ROWS", l->rows.least);
  kernel_knob(spec, "PARTS", l->parts);
  kernel_knob(spec, "WORKERS", l->variant.workers);
  kernel_knob(spec, "SAMPLE_WAYS", l->variant.sample_ways);
  kernel_knob(spec, "HIDE", l->variant.hide);
  kernel_knob(spec, "HALVES", l->halves);
  kernel_knob(spec, "DEPTH_BLOCK", l->variant.depth_block);
  kernel_knob(spec, "INPUT", l->variant.input == INPUT_WITH_STEP);
  kernel_knob(spec, "CLIP", l->clip > 0);
  kernel_knob(spec, "INPUT_FORGET", l->input_forget);
  kernel_knob(spec, "PEEPHOLES", l->matrices[MATRIX_PEEPHOLES].source != NULL);
  if (l->lengths) kernel_type(spec, "Length", l->lengths->dtype);
  for (int i = 0; i < MAX_ACTIVATIONS && l->activations.body[direction][i]; i++)
    kernel_hook(spec, hooks[i], l->activations.body[direction][i]);
  return spec;
}

static const Value *output(const Node *node, int index) {
  return index < node->n_outputs ? node->outputs[index] : NULL;
}

static void emit_steps(Emitter *emitter, const Node *node, const Layer *l, int direction) {
  static const char *const parameters[MATRICES] = {[MATRIX_HIDDEN] = "weights",
                                                   [MATRIX_CANDIDATE] = "candidate",
                                                   [MATRIX_AFTER_BIAS] = "after_bias",
                                                   [MATRIX_PEEPHOLES] = "peepholes"};
  KernelCall *call = kernel_call(emitter, node, steps_spec(emitter, l, direction));
  bool with_step = l->variant.input == INPUT_WITH_STEP;
  call_value(call, "x", with_step ? node->inputs[INPUT_X] : NULL);
  call_argument(call, "input", "%s", with_step ? matrix_text(emitter, node, &l->matrices[MATRIX_INPUT]) : "NULL");
  call_argument(call, "bias", "%s", with_step ? matrix_text(emitter, node, &l->matrices[MATRIX_BIAS]) : "NULL");
  call_argument(call, "gates", "%s", scratch_at(emitter, node, 0));
  for (int i = 0; i < MATRICES; i++)
    if (parameters[i]) call_argument(call, parameters[i], "%s", matrix_text(emitter, node, &l->matrices[i]));
  call_value(call, "lengths", l->lengths);
  call_value(call, "initial_h", layer_input(node, INPUT_H));
  call_value(call, "initial_c", l->cell == CELL_LSTM ? layer_input(node, INPUT_C) : NULL);
  call_value(call, "y", output(node, 0));
  call_value(call, "y_h", output(node, 1));
  call_value(call, "y_c", output(node, 2));
  call_argument(call, "memory", "%s", scratch_at(emitter, node, l->memory));
  call_argument(call, "partial", "%s", scratch_at(emitter, node, l->partial));
  call_argument(call, "clip", "%af", (double)l->clip);
  call_dim(call, "steps", l->steps);
  call_argument(call, "first", l->variant.chunk ? "first" : "0");
  call_argument(call, "count", "%s", l->variant.chunk ? "count" : dim_text(emitter, l->steps));
  call_dim(call, "batch", l->batch);
  call_integer(call, "inputs", l->inputs);
  call_integer(call, "hidden", l->hidden);
  call_integer(call, "directions", l->directions);
  call_argument(call, "direction", "%d", direction);
  call_argument(call, "reverse", "%d", direction == 1 || l->reverse);
  call_argument(call, "batch_first", "%d", l->batch_first);
  double steps = (double)dim_optimum(l->steps), batch = (double)dim_optimum(l->batch), h = (double)l->hidden;
  call_cost(call, 2 * steps * batch * l->gates * h * h, 4 * steps * (l->gates * h * h + 3 * batch * h));
  if (direction + 1 < l->directions) call_no_barrier(call);
}

static void emit_preparation(Emitter *emitter, const Node *node, const Layer *l) {
  emit_length_check(emitter, node, l);
  for (int i = 0; i < MATRICES; i++) emit_matrix(emitter, node, &l->matrices[i]);
}

static void emit_layer(Emitter *emitter, const Node *node, const Layer *l) {
  if (l->variant.input == INPUT_AHEAD) emit_input_product(emitter, node, l);
  for (int direction = 0; direction < l->directions; direction++) emit_steps(emitter, node, l, direction);
}

static void emit_wavefront(Emitter *emitter, const Stack *stack) {
  const Layer *first = (const Layer *)stack->layers[0]->schedule;
  for (int i = 0; i < stack->n_layers; i++)
    emit_preparation(emitter, stack->layers[i], (const Layer *)stack->layers[i]->schedule);
  Wavefront *wavefront = ARENA_NEW(emitter_arena(emitter), Wavefront);
  *wavefront = (Wavefront){.layers = stack->n_layers, .chunk = first->variant.chunk, .steps = first->steps};
  for (int i = 0; i < stack->n_layers; i++) {
    const Layer *l = (const Layer *)stack->layers[i]->schedule;
    if (l->stack != stack || l->variant.chunk != first->variant.chunk) bug("the layers of a stack have other chunks");
    emitter_in_wavefront(emitter, wavefront, i);
    emit_layer(emitter, stack->layers[i], l);
  }
  emitter_in_wavefront(emitter, NULL, 0);
}

static void emit_alone(Emitter *emitter, const Node *node, const Layer *l) {
  emit_preparation(emitter, node, l);
  Wavefront *chunks = ARENA_NEW(emitter_arena(emitter), Wavefront);
  *chunks = (Wavefront){.layers = 1, .chunk = l->variant.chunk, .steps = l->steps};
  emitter_in_wavefront(emitter, l->variant.chunk ? chunks : NULL, 0);
  emit_layer(emitter, node, l);
  emitter_in_wavefront(emitter, NULL, 0);
}

static void emit(Emitter *emitter, Node *node) {
  const Layer *l = (const Layer *)node->schedule;
  if (!l->stack) {
    emit_alone(emitter, node, l);
  } else if (l->place + 1 == l->stack->n_layers) {
    emit_wavefront(emitter, l->stack);
  }
}

const KernelFamily family_recurrent = {
    .name = "recurrent",
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .emit = emit,
};
