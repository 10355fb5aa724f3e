/* SPDX-License-Identifier: MIT */
/* DeformConv, element by element. */
#include <math.h>

#include "reference/kernels.h"

typedef struct Sizes {
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
} Sizes;

static Sizes sizes_of(const Node *node, const Tensor *x, const Tensor *w, const Tensor *y) {
  Sizes s;
  for (int k = 0; k < 2; k++) {
    s.in[k] = x->shape[2 + k];
    s.out[k] = y->shape[2 + k];
    s.kernel[k] = w->shape[2 + k];
    s.stride[k] = node_int_at(node, ATTR_strides, k, 1);
    s.dilation[k] = node_int_at(node, ATTR_dilations, k, 1);
    s.pad[k] = node_int_at(node, ATTR_pads, k, 0);
  }
  return s;
}

/* Between the four pixels around a place of a plane; pixels beyond the border are 0. */
static double between(const Tensor *x, const Sizes *s, int64_t plane, const double place[2]) {
  double sum = 0;
  for (int corner = 0; corner < 4; corner++) {
    double at[2] = {floor(place[0]) + (corner >> 1), floor(place[1]) + (corner & 1)}, weight = 1;
    bool inside = true;
    for (int k = 0; k < 2; k++) {
      weight *= 1 - fabs(place[k] - at[k]);
      inside &= at[k] >= 0 && at[k] < (double)s->in[k];
    }
    if (inside) sum += weight * tensor_get(x, (plane * s->in[0] + (int64_t)at[0]) * s->in[1] + (int64_t)at[1]);
  }
  return sum;
}

/* What channel c gives to output o of an image: a sum over the window. w: where the kernel's weights for c begin. */
static double channel_sum(const Node *node, const Tensor *const *inputs, const Sizes *s, int64_t image, int64_t c,
                          const int64_t o[2], int64_t w) {
  const Tensor *x = inputs[0], *offset = inputs[2], *mask = optional_input(node, inputs, 4);
  int64_t groups = node_int(node, ATTR_offset_group), C = x->shape[1], group = c / (C / groups);
  int64_t taps = s->kernel[0] * s->kernel[1], outputs = s->out[0] * s->out[1], point = o[0] * s->out[1] + o[1];
  double sum = 0;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t at = (image * groups + group) * taps + tap, window[2] = {tap / s->kernel[1], tap % s->kernel[1]};
    double place[2];
    for (int k = 0; k < 2; k++)
      place[k] = (double)(o[k] * s->stride[k] - s->pad[k] + window[k] * s->dilation[k]) +
                 tensor_get(offset, (2 * at + k) * outputs + point);
    double scale = mask ? tensor_get(mask, at * outputs + point) : 1;
    sum += tensor_get(inputs[1], w + tap) * scale * between(x, s, image * C + c, place);
  }
  return sum;
}

const char *ref_deform_conv(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *w = inputs[1], *bias = optional_input(node, inputs, 3);
  Tensor *y = outputs[0];
  Sizes s = sizes_of(node, x, w, y);
  int64_t C = w->shape[1], K = w->shape[0] / node_int(node, ATTR_group), taps = s.kernel[0] * s.kernel[1], i = 0;
  Walk walk = walk_over(4, y->shape);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t m = walk.index[1];
    double sum = bias ? tensor_get(bias, m) : 0;
    for (int64_t c = 0; c < C; c++)
      sum += channel_sum(node, inputs, &s, walk.index[0], m / K * C + c, &walk.index[2], (m * C + c) * taps);
    tensor_set(y, i, sum);
  }
  return NULL;
}
