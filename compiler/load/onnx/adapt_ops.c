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

/* Until opset 10 coordinates are divided by the scale (asymmetric) and rounded down. */
static void map_asymmetrically(OnnxReader *reader, Draft *draft, Value *scales) {
  draft_set_input(reader, draft, 1, NULL);
  draft_set_input(reader, draft, 2, scales);
  draft_set_string(reader, draft, "coordinate_transformation_mode", "asymmetric");
  draft_set_string(reader, draft, "nearest_mode", "floor");
}

bool adapt_resize(OnnxReader *reader, Draft *draft) {
  map_asymmetrically(reader, draft, draft_input(draft, 1));
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
  map_asymmetrically(reader, draft, scales_of(reader, draft));
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

/* hidden_size may be left out; R [D, G*H, H] has it. Before opset 7 output_sequence says what outputs say themselves.
 */
bool adapt_recurrent(OnnxReader *reader, Draft *draft) {
  const Value *weights = draft_input(draft, 2);
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
