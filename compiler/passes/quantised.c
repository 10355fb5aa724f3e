/* SPDX-License-Identifier: MIT */
#include "passes/quantised.h"

#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"

bool has_pairs(const Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++)
    if (is_op(graph->nodes[n], OP_QuantizeLinear) || is_op(graph->nodes[n], OP_DequantizeLinear)) return true;
  return false;
}

/* ---- reading ---- */

static bool is_single(const Value *value) { return !value || value_max_count(value) == 1; }

static bool read_parameters(const Node *node, const Value *whole, DType dtype, Quantisation *how) {
  *how = (Quantisation){dtype, node->inputs[1], node_input(node, 2), WHOLE_TENSOR};
  bool reads = dtype == RNNCC_I8 || dtype == RNNCC_U8 || dtype == RNNCC_I32;
  if (!reads || how->scale->dtype != RNNCC_F32 || node_int(node, ATTR_block_size) != 0) return false;
  if (!is_single(how->scale) || !is_single(how->zero)) how->axis = normal_axis(node_int(node, ATTR_axis), whole->rank);
  return true;
}

bool read_quantize(const Node *node, Quantisation *how) {
  if (!is_op(node, OP_QuantizeLinear) || node->inputs[0]->dtype != RNNCC_F32) return false;
  DType precision = node_dtype(node, ATTR_precision);
  if (precision != RNNCC_NONE && precision != RNNCC_F32) return false;
  return read_parameters(node, node->inputs[0], node->outputs[0]->dtype, how);
}

static bool read_dequantize(const Node *node, Quantisation *how) {
  return is_op(node, OP_DequantizeLinear) && node->outputs[0]->dtype == RNNCC_F32 &&
         read_parameters(node, node->inputs[0], node->inputs[0]->dtype, how);
}

Value *dequantised_from(const Value *value, Quantisation *how) {
  return value && read_dequantize(value->producer, how) ? value->producer->inputs[0] : NULL;
}

bool has_8_bits(const Quantisation *how) { return dtype_is_byte(how->dtype); }

bool is_whole(const Quantisation *how) { return how->axis == WHOLE_TENSOR; }

bool is_known(const Quantisation *how) { return how->scale->data && (!how->zero || how->zero->data); }

/* ---- numbers ---- */

/* Of a list of one number for all positions, or of one each. */
static double number_at(const Value *value, int64_t position) {
  return value_element(value, value_count(value) == 1 ? 0 : position);
}

double scale_at(const Quantisation *how, int64_t position) { return number_at(how->scale, position); }

int64_t zero_at(const Quantisation *how, int64_t position) {
  return how->zero ? (int64_t)number_at(how->zero, position) : 0;
}

static int64_t length_of(const Quantisation *how) {
  int64_t scales = value_count(how->scale), zeros = how->zero ? value_count(how->zero) : 1;
  return scales > zeros ? scales : zeros;
}

bool same_quantisation(const Quantisation *a, const Quantisation *b) {
  if (a->dtype != b->dtype || a->axis != b->axis) return false;
  if (a->scale == b->scale && a->zero == b->zero) return true;
  if (!is_known(a) || !is_known(b) || length_of(a) != length_of(b)) return false;
  for (int64_t i = 0; i < length_of(a); i++) {
    float scale = (float)scale_at(a, i), other = (float)scale_at(b, i);
    if (scale < other || scale > other || zero_at(a, i) != zero_at(b, i)) return false;
  }
  return true;
}

int64_t quantised_number(const Quantisation *how, int64_t position, float x) {
  float least = (float)dtype_min(how->dtype), most = (float)dtype_max(how->dtype);
  float y = rintf(x / (float)scale_at(how, position)) + (float)zero_at(how, position);
  return isnan(y) ? 0 : (int64_t)fminf(fmaxf(y, least), most);
}

/* ---- building ---- */

Value *integer_scalar(const Builder *builder, DType dtype, int64_t number) {
  Tensor *tensor = tensor_new(builder->graph->arena, dtype, 0, NULL);
  tensor_set_int(tensor, 0, number);
  return graph_constant(builder->graph, builder->name, dtype, 0, NULL, tensor->data);
}

Value *zero_of(const Builder *builder, const Quantisation *how) {
  return how->zero ? how->zero : integer_scalar(builder, how->dtype, 0);
}

static Node *build_linear(const Builder *builder, OpKind op, Value *value, const Quantisation *how) {
  Value *const inputs[] = {value, how->scale, zero_of(builder, how)};
  const Attribute axis = attribute_int(ATTR_axis, how->axis);
  return build_op(builder, op, 3, inputs, 1, is_whole(how) ? 0 : 1, &axis);
}

Node *build_dequantize(const Builder *builder, Value *value, const Quantisation *how) {
  return build_linear(builder, OP_DequantizeLinear, value, how);
}

Node *build_quantize(const Builder *builder, Value *value, const Quantisation *how) {
  return build_linear(builder, OP_QuantizeLinear, value, how);
}
