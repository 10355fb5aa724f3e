/* SPDX-License-Identifier: MIT */
/* Rewriting of operators whose name or defaults changed. */
#include <string.h>

#include "ir/tensor.h"
#include "load/onnx/adapt.h"

bool adapt_concat(OnnxReader *reader, Draft *draft) {
  if (!draft_attribute(draft, "axis")) draft_set_int(reader, draft, "axis", 1);
  return true;
}

/* In opset 8 a batch axis stands before all others, and lengths before all inputs. */
bool adapt_scan(OnnxReader *reader, Draft *draft) {
  unsupported_add(&reader->unsupported, draft->name, "Scan of opset 8");
  return false;
}

bool adapt_scatter(OnnxReader *reader, Draft *draft) {
  (void)reader;
  draft->op = "ScatterElements";
  return true;
}

/* Until opset 10 coordinates are divided by the scale (asymmetric); the nearest pixel is that before them, or where
 * pixels become fewer that behind them. */
static void map_asymmetrically(OnnxReader *reader, Draft *draft, Value *scales, const char *nearest) {
  draft_set_input(reader, draft, 1, NULL);
  draft_set_input(reader, draft, 2, scales);
  draft_set_string(reader, draft, "coordinate_transformation_mode", "asymmetric");
  draft_set_string(reader, draft, "nearest_mode", nearest);
}

/* The scales of axes that become shorter, or of those that become longer; of the others 1. NULL: there are none. */
static Value *scales_of_some(OnnxReader *reader, const Draft *draft, const Value *all, bool shorter) {
  int64_t n = value_count(all);
  Tensor *some = tensor_new(reader->arena, RNNCC_F32, 1, &n);
  bool any = false;
  for (int64_t i = 0; i < n; i++) {
    double scale = value_element(all, i);
    bool taken = shorter ? scale < 1 : scale > 1;
    tensor_set(some, i, taken ? scale : 1);
    any |= taken;
  }
  return any ? graph_constant(draft->scope->graph, draft->name, RNNCC_F32, 1, &n, some->data) : NULL;
}

/* The input becomes that of a Resize before this one. */
static bool shorten_first(OnnxReader *reader, Draft *draft, Value *scales) {
  Draft before = *draft;
  Value *between = graph_value(draft->scope->graph, draft->name, draft->where);
  before.inputs = arena_copy(reader->arena, draft->inputs, (size_t)draft->n_inputs * sizeof(Value *));
  before.attributes = arena_copy(reader->arena, draft->attributes, (size_t)draft->n_attributes * sizeof(Attribute));
  before.outputs = &between;
  map_asymmetrically(reader, &before, scales, "ceil");
  if (!onnx_commit(reader, &before)) return false;
  draft_set_input(reader, draft, 0, between);
  return true;
}

static bool takes_nearest(const Draft *draft) {
  const Attribute *mode = draft_attribute(draft, "mode");
  return !mode || mode->kind != ATTRIBUTE_STRING || strcmp(mode->s, "nearest") == 0;
}

bool adapt_resize(OnnxReader *reader, Draft *draft) {
  Value *scales = draft_input(draft, 1);
  bool known = scales && scales->data && scales->dtype == RNNCC_F32 && scales->rank == 1;
  Value *shorter = known && takes_nearest(draft) ? scales_of_some(reader, draft, scales, true) : NULL;
  Value *longer = shorter ? scales_of_some(reader, draft, scales, false) : NULL;
  if (longer && !shorten_first(reader, draft, shorter)) return false;
  map_asymmetrically(reader, draft, longer ? longer : scales, shorter && !longer ? "ceil" : "floor");
  return true;
}

static Value *scales_of(OnnxReader *reader, const Draft *draft) {
  const Attribute *given = draft_attribute(draft, "scales");
  if (!given || given->kind != ATTRIBUTE_FLOATS) return draft_input(draft, 1);
  int64_t n = (int64_t)given->count;
  Tensor *scales = tensor_new(reader->arena, RNNCC_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) tensor_set(scales, i, given->floats[i]);
  return graph_constant(draft->scope->graph, draft->name, RNNCC_F32, 1, &n, scales->data);
}

bool adapt_upsample(OnnxReader *reader, Draft *draft) {
  const Attribute *mode = draft_attribute(draft, "mode");
  draft->op = "Resize";
  if (mode && mode->kind == ATTRIBUTE_STRING && strcmp(mode->s, "bilinear") == 0)
    draft_set_string(reader, draft, "mode", "linear");
  map_asymmetrically(reader, draft, scales_of(reader, draft), "floor");
  draft_drop(draft, "scales");
  return true;
}

bool adapt_grid_sample(OnnxReader *reader, Draft *draft) {
  const Attribute *mode = draft_attribute(draft, "mode");
  if (!mode || mode->kind != ATTRIBUTE_STRING) return true;
  if (strcmp(mode->s, "bilinear") == 0)
    draft_set_string(reader, draft, "mode", "linear");
  else if (strcmp(mode->s, "bicubic") == 0)
    draft_set_string(reader, draft, "mode", "cubic");
  return true;
}

bool adapt_roi_align(OnnxReader *reader, Draft *draft) {
  draft_set_string(reader, draft, "coordinate_transformation_mode", "output_half_pixel");
  return true;
}

static void default_number(OnnxReader *reader, Draft *draft, const char *name, double number) {
  if (draft_attribute(draft, name)) return;
  draft_set_int(reader, draft, name, 0);
  Attribute *attribute = draft_attribute(draft, name);
  attribute->kind = ATTRIBUTE_FLOAT;
  attribute->f = number;
}

bool adapt_selu(OnnxReader *reader, Draft *draft) {
  default_number(reader, draft, "alpha", 1.6732);
  default_number(reader, draft, "gamma", 1.0507);
  return true;
}

/* ONNX lists two names as the default of RNN's activations, also of a layer in one direction, which has the first: a
 * tool that writes defaults out writes both. */
static void drop_other_direction(const Draft *draft) {
  const Attribute *direction = draft_attribute(draft, "direction");
  Attribute *names = draft_attribute(draft, "activations");
  bool two = names && names->kind == ATTRIBUTE_STRINGS && names->count == 2;
  if (strcmp(draft->op, "RNN") != 0 || !two || strcmp(names->strings[0], "Tanh") || strcmp(names->strings[1], "Tanh"))
    return;
  if (!direction || direction->kind != ATTRIBUTE_STRING || strcmp(direction->s, "bidirectional")) names->count = 1;
}

/* hidden_size may be left out; R [D, G*H, H] has it. Before opset 7 output_sequence says what outputs say themselves.
 */
bool adapt_recurrent(OnnxReader *reader, Draft *draft) {
  const Value *weights = draft_input(draft, 2);
  drop_other_direction(draft);
  draft_drop(draft, "output_sequence");
  if (draft_attribute(draft, "hidden_size") || !weights) return true;
  int rank = draft_rank(reader, draft, weights);
  if (rank == 3 && dim_is_const(weights->shape[2]))
    draft_set_int(reader, draft, "hidden_size", dim_value(weights->shape[2]));
  if (rank < 0)
    unsupported_add(&reader->unsupported, draft->name, "%s without `hidden_size`, of weights of unknown shape,",
                    draft->op);
  return rank >= 0;
}

bool adapt_batch_norm(OnnxReader *reader, Draft *draft) {
  if (draft_int(draft, "spatial", 1) == 0) {
    unsupported_add(&reader->unsupported, draft->name, "`spatial`=0 of BatchNormalization");
    return false;
  }
  draft_drop(draft, "spatial");
  if (draft->scope->opset < 7) draft_drop(draft, "is_test");
  return true;
}
