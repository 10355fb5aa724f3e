/* SPDX-License-Identifier: MIT */
/* DynamicQuantizeLinear: the range of x, widened to have 0, in 255 steps of u8, in f32; of zeros, in steps of 1. */
#include <math.h>

#include "reference/kernels.h"

static float saturated(float x) { return x < 0 ? 0 : x > UINT8_MAX ? UINT8_MAX : x; }

const char *ref_dynamic_quantize(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  const Tensor *x = inputs[0];
  int64_t count = tensor_extent(x, 0, x->rank);
  float least = 0, greatest = 0;
  for (int64_t i = 0; i < count; i++) {
    float value = (float)tensor_get(x, i);
    least = isnan(least) || value >= least ? least : value;
    greatest = isnan(greatest) || value <= greatest ? greatest : value;
  }
  float range = greatest - least, size = range == 0 ? 1 : range / UINT8_MAX;
  float zero = saturated(rintf((0 - least) / size));
  for (int64_t i = 0; i < count; i++)
    tensor_set(outputs[0], i, (double)saturated(rintf((float)tensor_get(x, i) / size) + zero));
  tensor_set(outputs[1], 0, (double)size);
  tensor_set(outputs[2], 0, (double)zero);
  return NULL;
}
