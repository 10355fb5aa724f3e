/* SPDX-License-Identifier: MIT */
#include "tune/trial_case.h"

#include <string.h>

#include "kernels/conv/convolution.h"
#include "layout/layout.h"

enum { MAX_WEIGHT = 1, MAX_ACTIVATION = 4 };

/* ---- whole numbers ---- */

/* -most to most. */
static void fill(float *data, int64_t count, int most, uint32_t seed) {
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    data[i] = (float)((int)((seed >> 16) % (uint32_t)(2 * most + 1)) - most);
  }
}

/* A constant of the same shape, with numbers of its own. */
static Value *constant_like(Arena *arena, const Value *value, int most) {
  Value *copy = arena_copy(arena, value, sizeof *value);
  int64_t count = value_count(value);
  float *data = ARENA_ARRAY(arena, float, count);
  fill(data, count, most, (uint32_t)count);
  copy->data = data;
  return copy;
}

static Value **copied_inputs(Arena *arena, const Node *node) {
  return arena_copy(arena, (void *)node->inputs, (size_t)node->n_inputs * sizeof *node->inputs);
}

static bool is_normalisation(const Node *step) { return is_op(step, OP_BatchNormalization); }

/* A batch normalisation with other scales and shifts: fold_affine has left mean 0 and variance 1 of it. */
static Node *normalisation_like(Arena *arena, const Node *step) {
  Node *copy = arena_copy(arena, step, sizeof *step);
  copy->inputs = copied_inputs(arena, step);
  for (int i = 1; i <= 2; i++) copy->inputs[i] = constant_like(arena, step->inputs[i], MAX_ACTIVATION);
  return copy;
}

static void change_prologue(TrialCase *trial) {
  Node *node = &trial->node;
  node->prologue = arena_copy(trial->arena, (void *)node->prologue, (size_t)node->n_prologue * sizeof *node->prologue);
  for (int i = 0; i < node->n_prologue; i++) {
    const Node *step = node->prologue[i];
    if (is_normalisation(step)) node->prologue[i] = normalisation_like(trial->arena, step);
    trial->exact_input &= is_op(step, OP_Relu) || (is_normalisation(step) && node_float(step, ATTR_epsilon) == 0);
  }
}

/* ---- the case ---- */

static const Value *residual_of(const Node *node) {
  int own = node->op->max_inputs;
  const Value *added = node->n_epilogue ? node_input(node, own) : NULL;
  return added && !added->data ? added : NULL;
}

bool can_be_tried(const Node *node) {
  for (int i = 1; i < node->n_inputs; i++) {
    const Value *input = node->inputs[i];
    if (input && input != residual_of(node) && (!input->data || input->dtype != RNNCC_F32)) return false;
  }
  return node->inputs[0]->dtype == RNNCC_F32 && node->n_outputs == 1;
}

static void add_input(TrialCase *trial, const Value *value) {
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_eval(value->shape[axis], trial->symbols);
  Tensor *tensor = tensor_new(trial->arena, RNNCC_F32, value->rank, shape);
  fill(tensor->data, tensor_count(tensor), MAX_ACTIVATION, (uint32_t)trial->n_inputs + 1);
  trial->values[trial->n_inputs] = value;
  trial->inputs[trial->n_inputs++] = tensor;
}

TrialCase trial_case(Arena *arena, const Graph *model, const Node *node, NodeLayout layout) {
  TrialCase trial = {.arena = arena, .model = model, .node = *node, .exact_input = true};
  int symbols = dim_symbol_count(model->dims);
  trial.symbols = ARENA_ARRAY(arena, int64_t, symbols + 1);
  for (int i = 0; i < symbols; i++) trial.symbols[i] = dim_symbol_at(model->dims, i)->opt;
  trial.node.layout = layout;
  trial.node.inputs = copied_inputs(arena, node);
  trial.node.inputs[1] = constant_like(arena, node->inputs[1], MAX_WEIGHT);
  if (node_input(node, 2)) trial.node.inputs[2] = constant_like(arena, node->inputs[2], MAX_ACTIVATION);
  if (node->n_prologue) change_prologue(&trial);
  add_input(&trial, node->inputs[0]);
  if (residual_of(node)) add_input(&trial, residual_of(node));
  return trial;
}

/* ---- the graph ---- */

static Graph *graph_like(Arena *arena, const Graph *model, const char *schedule) {
  Graph *graph = graph_new(arena);
  Config *config = arena_copy(arena, model->config, sizeof *config);
  config->conv_schedule = schedule;
  graph->dims = model->dims;
  graph->config = config;
  graph->name = "trial";
  graph->file = model->file;
  memcpy(graph->model_sha256, model->model_sha256, sizeof graph->model_sha256);
  return graph;
}

/* A row-major input of the graph, in blocks of `block`. */
static Value *input_like(Graph *graph, const Value *like, const char *name, int block) {
  Value *input = graph_value_like(graph, name, LOCATION_FILE(graph->file), like);
  input->is_input = true;
  graph->inputs[graph->n_inputs++] = input;
  return is_as_wanted(graph, input, block) ? input : layout_transform(graph, input, block);
}

/* Values are new, because the node's own belong to the model. Constants are shared. */
Graph *trial_graph(const TrialCase *trial, const char *schedule) {
  static const char *const names[MAX_TRIAL_INPUTS] = {"x", "residual"};
  Arena *arena = trial->arena;
  Graph *graph = graph_like(arena, trial->model, schedule);
  Node *node = arena_copy(arena, &trial->node, sizeof trial->node);
  graph->inputs = ARENA_ARRAY(arena, Value *, MAX_TRIAL_INPUTS);
  graph->outputs = ARENA_ARRAY(arena, Value *, 1);
  node->inputs = copied_inputs(arena, node);
  node->outputs = ARENA_ARRAY(arena, Value *, 1);
  node->name = TRIAL_NODE;
  Value *y = graph_value_like(graph, "y", LOCATION_FILE(graph->file), trial->node.outputs[0]);
  graph_set_output(node, 0, y);
  lay_out(graph, node, node->layout);
  for (int i = 0; i < trial->n_inputs; i++) {
    int place = i == 0 ? 0 : node->op->max_inputs;
    int block = input_block(graph, node, node->layout, place);
    node->inputs[place] = input_like(graph, trial->values[i], names[i], block);
  }
  graph_append(graph, node);
  graph->outputs[graph->n_outputs++] = is_as_wanted(graph, y, 0) ? y : layout_transform(graph, y, 0);
  graph_renumber(graph);
  return graph;
}
