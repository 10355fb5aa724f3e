/* SPDX-License-Identifier: MIT */
/* The interpreter: values are tensors by value id, nodes run in graph order. */
#include "reference/reference.h"

#include <string.h>

/* A fresh tensor at the inferred shape. NULL if the named dims make an axis negative or the whole too large. */
static Tensor *tensor_for(Arena *arena, const Value *value, const int64_t *symbols) {
  int64_t shape[MAX_RANK], count = 1;
  if (value->rank < 0) bug("reference: t%d has no shape yet", value->id);
  for (int axis = 0; axis < value->rank; axis++) {
    shape[axis] = dim_eval(value->shape[axis], symbols);
    if (shape[axis] < 0 || __builtin_mul_overflow(count, shape[axis], &count)) return NULL;
  }
  if (count > INT64_MAX / 16) return NULL;
  return tensor_new(arena, value->dtype, value->rank, shape);
}

static const char *allocate_outputs(Arena *arena, const Node *node, Tensor **outputs, const int64_t *symbols) {
  for (int k = 0; k < node->n_outputs; k++) {
    outputs[k] = node->outputs[k] ? tensor_for(arena, node->outputs[k], symbols) : NULL;
    if (node->outputs[k] && !outputs[k]) return "an output's shape is negative or too large";
  }
  return NULL;
}

/* Runs each step on the result so far and its own operands; element-wise steps keep the shape. */
const char *reference_epilogue(Arena *arena, const Node *node, Tensor *result, const Tensor *const *extra,
                               Tensor **output) {
  const char *wrong = NULL;
  for (int k = 0; k < node->n_epilogue && !wrong; k++) {
    const Node *step = node->epilogue[k];
    const Tensor **operands = ARENA_ARRAY(arena, const Tensor *, step->n_inputs);
    operands[0] = result;
    for (int i = 1; i < step->n_inputs; i++) operands[i] = *extra++;
    result = tensor_new(arena, step->outputs[0]->dtype, result->rank, result->shape);
    wrong = step->op->reference(step, operands, &result);
  }
  *output = result;
  return wrong;
}

/* The host without its epilogue, then that. */
static const char *run_with_epilogue(Arena *arena, const Node *node, const Tensor *const *inputs, Tensor **outputs,
                                     const int64_t *symbols) {
  Node bare = *node;
  bare.n_inputs = node_own_inputs(node);
  Tensor *result = tensor_for(arena, node->epilogue[0]->inputs[0], symbols);
  if (!result) return "an output's shape is negative or too large";
  const char *wrong = node->op->reference(&bare, inputs, &result);
  return wrong ? wrong : reference_epilogue(arena, node, result, inputs + bare.n_inputs, outputs);
}

Tensor *reference_tensor(Arena *arena, const Value *value, const int64_t *symbols) {
  Tensor *tensor = ARENA_NEW(arena, Tensor);
  tensor->dtype = value->dtype;
  tensor->rank = value->rank;
  for (int axis = 0; axis < value->rank; axis++) tensor->shape[axis] = dim_eval(value->shape[axis], symbols);
  tensor->data = (void *)value->data; /* kernels do not write to inputs */
  return tensor;
}

const Tensor *reference_prologue(Arena *arena, const Node *node, const Tensor *input, const int64_t *symbols,
                                 const char **wrong) {
  for (int k = 0; k < node->n_prologue; k++) {
    const Node *step = node->prologue[k];
    const Tensor **operands = ARENA_ARRAY(arena, const Tensor *, step->n_inputs);
    operands[0] = input;
    for (int i = 1; i < step->n_inputs; i++)
      operands[i] = step->inputs[i] ? reference_tensor(arena, step->inputs[i], symbols) : NULL;
    Tensor *next = tensor_for(arena, step->outputs[0], symbols);
    *wrong = next ? step->op->reference(step, operands, &next) : "an output's shape is negative or too large";
    if (*wrong) return NULL;
    input = next;
  }
  return input;
}

const char *reference_node(Arena *arena, const Node *node, const Tensor *const *inputs, Tensor **outputs,
                           const int64_t *symbols) {
  const char *wrong = allocate_outputs(arena, node, outputs, symbols);
  if (wrong) return wrong;
  if (node->n_prologue) {
    const Tensor **changed = arena_copy(arena, inputs, (size_t)node->n_inputs * sizeof *inputs);
    changed[0] = reference_prologue(arena, node, inputs[0], symbols, &wrong);
    if (wrong) return wrong;
    inputs = changed;
  }
  if (node->n_epilogue) return run_with_epilogue(arena, node, inputs, outputs, symbols);
  return node->op->reference(node, inputs, outputs);
}

/* Outputs were allocated at the maxima of their dims; the kernel has set their real shapes. */
static void bind_data_dependent(const Node *node, Tensor *const *outputs, int64_t *symbols) {
  for (int k = 0; k < node->n_outputs; k++)
    for (int axis = 0; outputs[k] && axis < outputs[k]->rank; axis++) {
      const DimSymbol *symbol = dim_as_symbol(node->outputs[k]->shape[axis]);
      if (symbol && symbol->kind == DIM_DATA_DEPENDENT) symbols[symbol->index] = outputs[k]->shape[axis];
    }
}

static int64_t *dims_at_maximum(Arena *arena, const DimTable *dims, const int64_t *given) {
  int count = dim_symbol_count(dims);
  int64_t *symbols = ARENA_ARRAY(arena, int64_t, count);
  for (int i = 0; i < count; i++) symbols[i] = i < dim_given_count(dims) ? given[i] : dim_symbol_at(dims, i)->max;
  return symbols;
}

/* One run: what each value holds, by id. */
typedef struct Interpreter {
  Arena *arena;
  int64_t *symbols;
  const Tensor **tensors;
} Interpreter;

static const Tensor *known_tensor(Interpreter *run, const Value *value) {
  Tensor *tensor = tensor_for(run->arena, value, run->symbols);
  for (int64_t i = 0; i < value_count(value); i++)
    tensor_set_int(tensor, i, dim_eval(value->elements[i], run->symbols));
  return tensor;
}

static const Tensor *tensor_of(Interpreter *run, const Value *value) {
  if (!value) return NULL;
  const Tensor **held = &run->tensors[value->id];
  if (!*held && value_is_for_shapes(value)) *held = known_tensor(run, value);
  if (!*held && value->data) *held = reference_tensor(run->arena, value, run->symbols);
  if (!*held) bug("reference: t%d is used before it is known", value->id);
  return *held;
}

static const char *run_node(Interpreter *run, const Node *node) {
  const Tensor **inputs = ARENA_ARRAY(run->arena, const Tensor *, node->n_inputs);
  Tensor **outputs = ARENA_ARRAY(run->arena, Tensor *, node->n_outputs);
  for (int k = 0; k < node->n_inputs; k++) inputs[k] = tensor_of(run, node->inputs[k]);
  const char *wrong = reference_node(run->arena, node, inputs, outputs, run->symbols);
  if (wrong) return arena_format(run->arena, "%s (%s): %s", node->name ? node->name : "", node->op->name, wrong);
  bind_data_dependent(node, outputs, run->symbols);
  for (int k = 0; k < node->n_outputs; k++)
    if (node->outputs[k]) run->tensors[node->outputs[k]->id] = outputs[k];
  return NULL;
}

const char *reference_run(Arena *arena, Graph *graph, const Tensor *const *inputs, Tensor **outputs,
                          const int64_t *symbols) {
  Interpreter run = {arena, dims_at_maximum(arena, graph->dims, symbols),
                     ARENA_ARRAY(arena, const Tensor *, graph->n_values)};
  for (int k = 0; k < graph->n_inputs; k++) run.tensors[graph->inputs[k]->id] = inputs[k];
  for (int k = 0; k < graph->n_states; k++) run.tensors[graph->states[k].input->id] = inputs[graph->n_inputs + k];
  for (int k = 0; k < graph->n_nodes; k++) {
    const char *wrong = run_node(&run, graph->nodes[k]);
    if (wrong) return wrong;
  }
  for (int k = 0; k < graph->n_outputs; k++) outputs[k] = (Tensor *)tensor_of(&run, graph->outputs[k]);
  for (int k = 0; k < graph->n_states; k++)
    outputs[graph->n_outputs + k] = (Tensor *)tensor_of(&run, graph->states[k].output);
  return NULL;
}
