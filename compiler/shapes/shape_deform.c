/* SPDX-License-Identifier: MIT */
/* Deformable convolution. */
#include "shapes/shape.h"
#include "support/numbers.h"

enum { MAX_EXTENT = 1 << 29 };

/* A number of the node's, which must divide the channels. */
static bool check_divides(const Node *node, AttributeName name, int64_t channels) {
  int64_t groups = node_int(node, name);
  return (groups >= 1 && channels % groups == 0) ||
         shape_error(node, "`%s` is %lld; it must divide the channels, %lld", attribute_name(name), (long long)groups,
                     (long long)channels);
}

/* X [N, C, H, W], W [M, C/group, R, S]. */
static bool check_channels(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0], *w = node->inputs[1];
  if (!dim_is_const(x->shape[1]) || !dim_is_const(w->shape[0]) || !dim_is_const(w->shape[1]))
    return shape_unsupported(node, "channels must be constant, found %s and %s", shape_text(graph, x),
                             shape_text(graph, w));
  int64_t C = dim_value(x->shape[1]), M = dim_value(w->shape[0]);
  if (!check_divides(node, ATTR_group, C) || !check_divides(node, ATTR_group, M) ||
      !check_divides(node, ATTR_offset_group, C))
    return false;
  int64_t own = C / node_int(node, ATTR_group);
  return dim_value(w->shape[1]) == own ||
         shape_error(node, "the weights are %s; axis 1 must be %lld, the channels of %s by group", shape_text(graph, w),
                     (long long)own, shape_text(graph, x));
}

/* Pixels are counted in 32 bits, and places of samples beyond the padded image. */
static bool check_size(Graph *graph, const Node *node, const Window *window) {
  int64_t pixels = 1;
  for (int i = 0; i < 2; i++) {
    const Dim *in = node->inputs[0]->shape[2 + i];
    const Dim *padded = dim_add(graph->dims, dim_add(graph->dims, in, window->pad_begin[i]), window->pad_end[i]);
    pixels = saturating_mul(pixels, dim_upper(in));
    if (dim_upper(padded) > MAX_EXTENT)
      return shape_unsupported(node, "the padded input may have %lld on spatial axis %d; at most %d is supported",
                               (long long)dim_upper(padded), i, MAX_EXTENT);
  }
  return pixels <= INT32_MAX || shape_unsupported(node, "an image may have %lld pixels; at most %d are supported",
                                                  (long long)pixels, INT32_MAX);
}

bool shape_deform_conv(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, MAX_RANK)) return false;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  if (x->rank != 4)
    return shape_unsupported(node, "%d-D windows are not supported, only 2-D; found %s", x->rank - 2,
                             shape_text(graph, x));
  Window window;
  if (!check_rank(graph, node, 1, 4, 4) || !check_channels(graph, node) || !read_window(graph, node, &window) ||
      !check_size(graph, node, &window))
    return false;
  int64_t taps = window.kernel[0] * window.kernel[1] * node_int(node, ATTR_offset_group);
  const Dim *M = w->shape[0], *y[] = {x->shape[0], M, window.out[0], window.out[1]};
  const Dim *mask[] = {y[0], dim_const(graph->dims, taps), y[2], y[3]};
  const Dim *offset[] = {y[0], dim_const(graph->dims, 2 * taps), y[2], y[3]};
  return check_shape(graph, node, 2, 4, offset, "[N, offset_group * kernel * 2, H, W of the output]") &&
         check_shape(graph, node, 3, 1, &M, "the bias, [M]") &&
         check_shape(graph, node, 4, 4, mask, "[N, offset_group * kernel, H, W of the output]") &&
         set_shape(graph, node, 0, 4, y);
}
