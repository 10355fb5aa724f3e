/* SPDX-License-Identifier: MIT */
#include "differentiate/over_turns.h"

#include "ir/op.h"
#include "shapes/shape.h"
#include "support/list.h"
#include "support/numbers.h"

typedef struct Taking {
  const Formula *body;
  TurnParts *parts;
  int input;
  HowKept *how;
  const void *context;
} Taking;

/* Adds what a turn has to leave of the value. False if its rows cannot be kept. */
static bool add_kept(const Taking *t, const Value *value, int64_t *bytes) {
  Kept kept = t->how(value, t->context);
  if (kept == KEPT_BY_COLLECTING) *bytes = saturating_add(*bytes, value_max_bytes(value));
  return kept == KEPT_BY_COLLECTING || kept == KEPT_ANYWAY;
}

static TurnPart *add_part(const Taking *t, TurnPart part) {
  for (int k = 0; k < MAX_TURN_GRADIENTS; k++) part.gradients[k] = -1;
  TurnPart *added = LIST_ADD(t->body->graph->arena, t->parts->list, t->parts->count, t->parts->capacity);
  *added = part;
  return added;
}

/* ---- products ---- */

/* The value that a matrix is another shape of, with as long a last axis: its rows are the same. */
static Value *value_of_rows(Value *x) {
  while (x->producer && op_is_view(x->producer->op)) {
    Value *of = x->producer->inputs[0];
    if (of->rank < 1 || of->rank == MAX_RANK || !same_dim(extent_from_end(of, 1), extent_from_end(x, 1))) break;
    x = of;
  }
  return x;
}

static bool turns_matrix(const Node *node) {
  const Attribute *perm = is_op(node, OP_Transpose) ? node_attribute(node, ATTR_perm) : NULL;
  return is_op(node, OP_Transpose) && node->inputs[0]->rank == 2 && (!perm || perm->ints[0] == 1);
}

/* Is d A' D, or that turned over? */
static bool take_product(const Taking *t, const Value *d) {
  bool turned = turns_matrix(d->producer);
  const Node *node = turned ? d->producer->inputs[0]->producer : d->producer;
  if (!is_op(node, OP_Gemm) || node_input(node, 2)) return false;
  if (!node_int(node, ATTR_transA) || node_int(node, ATTR_transB)) return false;
  TurnPart part = {.alpha = node_float(node, ATTR_alpha)};
  int64_t bytes = 0;
  for (int i = 0; i < 2; i++) {
    part.rows[i].value = value_of_rows(node->inputs[i ^ turned]);
    if (!add_kept(t, part.rows[i].value, &bytes)) return false;
  }
  if (bytes > value_max_bytes(d)) return false;
  add_part(t, part)->gradients[0] = t->input;
  return true;
}

/* ---- recurrent layers ---- */

static bool is_weight_gradient(int output) {
  return output == GRADIENT_W || output == GRADIENT_R || output == GRADIENT_B || output == GRADIENT_P;
}

static bool is_weight(const CellKind *cell, int input) {
  return input == INPUT_W || input == INPUT_R || input == INPUT_B || (input == INPUT_P && input < layer_inputs(cell));
}

/* The axis of an input of a layer's gradient that has the samples. */
static int batch_axis(const Node *layer, int input) {
  const CellKind *cell = layer_cell(layer->op->kind);
  if (node_int(layer, ATTR_layout)) return 0;
  return input == gradient_input(cell, GRADIENT_Y) || input == gradient_input(cell, GRADIENT_DY) ? 2 : 1;
}

/* Are the slices of all turns, one behind the other, those of one batch? */
static bool is_batch(const Node *layer, int input) {
  for (int axis = 0; axis < batch_axis(layer, input); axis++)
    if (!dim_equals(layer->inputs[input]->shape[axis], 1)) return false;
  return true;
}

/* Can the layer run over the samples of all turns, and is that worth what a turn has to leave? Of one step its gates'
 * gradients are computed once more without a product. */
static bool read_layer(const Taking *t, const Node *layer, TurnPart *part) {
  const CellKind *cell = layer_cell(layer->op->kind);
  int64_t bytes = 0, gradients = 0;
  if (!dim_equals(layer->inputs[INPUT_X]->shape[1 - batch_axis(layer, INPUT_X)], 1)) return false;
  *part = (TurnPart){.layer = layer};
  for (int i = 0; i < layer->n_inputs; i++) {
    Value *value = layer->inputs[i];
    if (!value) continue;
    if (is_weight(cell, i)) {
      if (t->how(value, t->context) != KEPT_OUTSIDE) return false;
      gradients = saturating_add(gradients, value_max_bytes(value));
      continue;
    }
    if (i == INPUT_LENGTHS || !is_batch(layer, i) || !add_kept(t, value, &bytes)) return false;
    part->rows[i].value = value;
  }
  return bytes <= gradients;
}

static bool take_layer(const Taking *t, const Value *d) {
  const Node *layer = d->producer;
  TurnPart part;
  if (!layer || !op_is_layer_gradient(layer->op->kind) || !is_weight_gradient(d->producer_output)) return false;
  TurnPart *found = NULL;
  for (int i = 0; i < t->parts->count; i++)
    if (t->parts->list[i].layer == layer) found = &t->parts->list[i];
  if (!found && !read_layer(t, layer, &part)) return false;
  if (!found) found = add_part(t, part);
  if (found->gradients[d->producer_output] >= 0) return false;
  found->gradients[d->producer_output] = t->input;
  return true;
}

/* The slices of all turns [turns, ...] as one batch. */
static Value *as_batch(const Formula *f, const Node *layer, int input, Value *all) {
  const Dim *shape[MAX_RANK];
  for (int axis = 1; axis < all->rank; axis++) shape[axis - 1] = all->shape[axis];
  int batch = batch_axis(layer, input);
  shape[batch] = dim_mul(f->graph->dims, all->shape[0], shape[batch]);
  return in_shape(f, all, all->rank - 1, shape);
}

static Value **layer_gradients(const Formula *f, const TurnPart *part, Value *const *all) {
  const Node *layer = part->layer;
  Value **inputs = ARENA_ARRAY(f->graph->arena, Value *, layer->n_inputs);
  for (int i = 0; i < layer->n_inputs; i++) inputs[i] = part->rows[i].value ? as_batch(f, layer, i, all[i]) : all[i];
  Node *node =
      build_op(f, layer->op->kind, layer->n_inputs, inputs, layer->n_outputs, layer->n_attributes, layer->attributes);
  for (int k = 0; k < node->n_outputs; k++)
    if (part->gradients[k] < 0) node->outputs[k] = NULL;
  return node->outputs;
}

/* ---- both ---- */

static bool is_sum(const Value *d) {
  const Node *node = d->producer;
  return is_op(node, OP_Add) && shapes_agree(node->inputs[0], d) && shapes_agree(node->inputs[1], d);
}

static Value *take(const Taking *t, Value *d) {
  if (is_sum(d)) {
    Value **terms = d->producer->inputs, *a = take(t, terms[0]), *b = take(t, terms[1]);
    if (!a || !b) return a ? a : b;
    return a == terms[0] && b == terms[1] ? d : plus(t->body, a, b);
  }
  return take_product(t, d) || take_layer(t, d) ? NULL : d;
}

Value *take_turn_parts(const Formula *body, TurnParts *parts, int input, Value *d, HowKept *how, const void *context) {
  return take(&(Taking){body, parts, input, how, context}, d);
}

Value **turn_part_gradients(const Formula *f, const TurnPart *part, Value *const *all) {
  if (part->layer) return layer_gradients(f, part, all);
  Value **gradient = ARENA_NEW(f->graph->arena, Value *);
  *gradient = matrix_product(f, as_matrix(f, all[0]), true, as_matrix(f, all[1]), false, part->alpha);
  return gradient;
}
