/* SPDX-License-Identifier: MIT */
#include "quantise/weights.h"

#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "support/numbers.h"

/* Of channels whose weights are all zero, or nearly: products of two scales stay normal floats. */
static const double LEAST_SCALE = 1e-12;

/* Rows of the axis within rows before it: [before][extent][after]. */
typedef struct Axis {
  int64_t before, extent, after;
} Axis;

static Axis axis_of(const Value *value, int axis) {
  Axis sizes = {1, dim_value(value->shape[axis]), 1};
  for (int i = 0; i < axis; i++) sizes.before *= dim_value(value->shape[i]);
  for (int i = axis + 1; i < value->rank; i++) sizes.after *= dim_value(value->shape[i]);
  return sizes;
}

/* [D, G*H, I] of recurrent weights: each direction has scales of its own. Of products of matrices in a stack
 * ([.., K, N]) all have those of the column. */
static bool scale_by_direction(const Value *weights, int axis) { return weights->rank == 3 && axis == 1; }

static int64_t place_of_scale(const Value *weights, int axis, const Axis *sizes, int64_t i) {
  int64_t row = i / sizes->after % sizes->extent;
  return scale_by_direction(weights, axis) ? i / sizes->after : row;
}

int64_t scale_place(const Value *weights, int axis, int64_t i) {
  Axis sizes = axis_of(weights, axis);
  return place_of_scale(weights, axis, &sizes, i);
}

Rounded weights_round(Arena *arena, const Value *weights, int axis, const double *least, int most) {
  Axis sizes = axis_of(weights, axis);
  const float *data = weights->data;
  int64_t count = value_count(weights);
  int64_t n = scale_by_direction(weights, axis) ? sizes.before * sizes.extent : sizes.extent;
  int8_t *rounded = ARENA_ARRAY(arena, int8_t, count + 1);
  float *scales = ARENA_ARRAY(arena, float, n + 1);
  double *largest = ARENA_ARRAY(arena, double, n + 1);
  memset(largest, 0, (size_t)n * sizeof *largest);
  for (int64_t i = 0; i < count; i++) {
    double *of = &largest[place_of_scale(weights, axis, &sizes, i)];
    *of = max_double(*of, fabs((double)data[i]));
  }
  for (int64_t k = 0; k < n; k++)
    scales[k] = (float)max_double(max_double(largest[k] / most, LEAST_SCALE), least ? least[k] : 0);
  for (int64_t i = 0; i < count; i++) {
    double steps = nearbyint((double)data[i] / (double)scales[place_of_scale(weights, axis, &sizes, i)]);
    rounded[i] = (int8_t)max_double(-most, min_double(steps, most));
  }
  return (Rounded){rounded, scales, n};
}

/* The i-th element that the integers stand for, less the f32 one. */
static double weights_error(const Value *weights, int axis, const Rounded *rounded, int64_t i) {
  Axis sizes = axis_of(weights, axis);
  double scale = (double)rounded->scales[place_of_scale(weights, axis, &sizes, i)];
  return rounded->data[i] * scale - (double)((const float *)weights->data)[i];
}

/* ---- biases ---- */

int64_t channels_of(const Layer *layer) {
  return dim_value(layer->node->inputs[layer->kind->weights[0]]->shape[layer->channel_axis]);
}

bool bias_is_plain(const Layer *layer) {
  const Node *node = layer->node;
  if (layer->kind->bias < 0) return false;
  if (is_op(node, OP_Gemm) && (node_float(node, ATTR_alpha) != 1 || node_float(node, ATTR_beta) != 1)) return false;
  const Value *bias = node_input(node, layer->kind->bias);
  return !bias ||
         (bias->data && bias->dtype == RNNCC_F32 && bias->rank == 1 && value_count(bias) == channels_of(layer));
}

/* The input channel of an element of the weights: of [M, C/group, ...] with M in groups; of [K, N] or [N, K]. */
static int64_t input_channel(const Layer *layer, const Value *weights, int64_t i) {
  if (!is_op(layer->node, OP_Conv)) {
    int64_t columns = dim_value(weights->shape[1]);
    return layer->channel_axis == 0 ? i % columns : i / columns;
  }
  int64_t outputs = dim_value(weights->shape[0]), inputs = dim_value(weights->shape[1]);
  int64_t points = value_count(weights) / (outputs * inputs);
  int64_t group = i / points / inputs / (outputs / node_int(layer->node, ATTR_group));
  return group * inputs + i / points % inputs;
}

/* Adds the mean of the layer's output that rounding is the cause of, by output channel. */
static void subtract_drift(const Layers *layers, const Layer *layer, const Rounded *rounded, double *bias) {
  const Value *weights = layer->node->inputs[layer->kind->weights[0]];
  const LayerData *input = &layers->activations[layer->data[0]];
  Axis sizes = axis_of(weights, layer->channel_axis);
  if (!input->seen.means || input->channel_axis < 0 || input->channel_axis != channels_in_data(layer->node)) return;
  for (int64_t i = 0, count = value_count(weights); i < count; i++)
    bias[i / sizes.after % sizes.extent] -=
        weights_error(weights, layer->channel_axis, rounded, i) * input->seen.means[input_channel(layer, weights, i)];
}

float *bias_corrected(const Layers *layers, const Layer *layer, const Rounded *rounded, bool correct) {
  if (!bias_is_plain(layer)) return NULL;
  Arena *arena = layers->graph->arena;
  int64_t count = channels_of(layer);
  const Value *own = node_input(layer->node, layer->kind->bias);
  double *sums = ARENA_ARRAY(arena, double, count);
  float *bias = ARENA_ARRAY(arena, float, count);
  for (int64_t i = 0; i < count; i++) sums[i] = own ? (double)((const float *)own->data)[i] : 0;
  if (correct) subtract_drift(layers, layer, rounded, sums);
  for (int64_t i = 0; i < count; i++) bias[i] = (float)sums[i];
  return bias;
}
