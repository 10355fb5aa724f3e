/* SPDX-License-Identifier: MIT */
/*
 * A transposed convolution of few output channels, as the last one of a generator of pictures, leaves lanes of its
 * vectors idle. An ordinary convolution that has the channels of all phases, beside each other, fills them; and
 * Winograd's may compute it. Its result is moved to where the outputs are.
 *
 *   ConvTranspose(x [N, C, H, W], w [C, K, R, S], strides u, v)
 *     -> Conv(x, w' [K u v, C, D, E]) as [N, K, u, v, H, W], transposed to [N, K, H, u, W, v], as [N, K, u H, v W]
 *
 * Output q u + p of an axis takes input q + d by point p + crop - d u of the window, for D neighbouring d, of which
 * `before` are negative. Where the window has no such point, w' is zero.
 */
#include "ir/config.h"
#include "ir/op.h"
#include "machine/targets.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"
#include "support/numbers.h"

enum { AXES = 2 }; /* at most; a volume stays as it is */

typedef struct Axis {
  int64_t window, stride, crop;
  int64_t before, after; /* the inputs before and after its own that an output takes */
} Axis;

static int64_t points(const Axis *axis) { return axis->before + 1 + axis->after; }

/* False: there are not as many outputs as inputs times the stride, or the window has gaps. */
static bool read_axis(Graph *graph, const Window *window, int i, const Dim *in, Axis *axis) {
  *axis = (Axis){.window = window->kernel[i], .stride = window->stride[i]};
  if (!dim_is_const(window->pad_begin[i]) || window->dilation[i] != 1) return false;
  if (window->out[i] != dim_mul(graph->dims, in, dim_const(graph->dims, axis->stride))) return false;
  axis->crop = dim_value(window->pad_begin[i]);
  if (axis->crop >= axis->window) return false;
  axis->before = (axis->window - 1 - axis->crop) / axis->stride;
  axis->after = (axis->stride - 1 + axis->crop) / axis->stride;
  return true;
}

/* Vectors that are multiplied for the outputs of one input, of a convolution of so many channels and points. */
static int64_t vectors(const Graph *graph, int64_t channels, int64_t window) {
  return ceil_div(channels, graph->config->target->lanes) * window;
}

/* Are at least half of a vector's lanes idle, and would about as many vectors or fewer be multiplied? Of 4x4 windows of
 * stride 2, three channels and vectors of 8 lanes 18 are, and were 16: they have lanes of two vectors a load. */
static bool gains(const Graph *graph, const Node *node, int n_axes, const Axis *axes) {
  int64_t kernels = dim_value(node->inputs[1]->shape[1]), phases = 1, window = 1, taps = 1;
  for (int i = 0; i < n_axes; i++) {
    phases *= axes[i].stride;
    window *= axes[i].window;
    taps *= points(&axes[i]);
  }
  if (phases == 1 || 2 * kernels > graph->config->target->lanes) return false;
  return 4 * vectors(graph, kernels * phases, taps) <= 5 * vectors(graph, kernels, window);
}

static bool is_known(const Value *weights) {
  return weights->data && weights->dtype == RNNCC_F32 && !weights->block && !weights->narrow;
}

/* A Reshape finds one extent that only the run knows. */
static bool has_one_extent_of_run(const Value *x) {
  int of_run = 0;
  for (int axis = 0; axis < x->rank; axis++) of_run += !dim_is_const(x->shape[axis]);
  return of_run <= 1;
}

static bool becomes_convolution(Graph *graph, const Node *node, Axis axes[AXES]) {
  Window window;
  if (!is_op(node, OP_ConvTranspose) || node_int(node, ATTR_group) != 1 || !is_known(node->inputs[1])) return false;
  if (node_input(node, 2) && !is_known(node->inputs[2])) return false;
  if (!read_window(graph, node, &window) || window.n_spatial > AXES) return false;
  const Value *x = node->inputs[0];
  for (int i = 0; i < window.n_spatial; i++)
    if (!read_axis(graph, &window, i, x->shape[2 + i], &axes[i])) return false;
  return has_one_extent_of_run(x) && gains(graph, node, window.n_spatial, axes);
}

/* ---- weights ---- */

/* The point of the window by which output `phase` of an input takes the one at `point`; negative: it
 * does not. */
static int64_t point_of(const Axis *axis, int64_t phase, int64_t point) {
  int64_t at = phase + axis->crop - (point - axis->before) * axis->stride;
  return at < axis->window ? at : -1;
}

/* A sequence as a plane of one row. */
static void as_plane(int n_axes, const Axis *axes, Axis plane[AXES]) {
  plane[0] = n_axes == AXES ? axes[0] : (Axis){.window = 1, .stride = 1};
  plane[1] = axes[n_axes - 1];
}

/* Those of one output and one input channel in one phase. from: [R][S]; to: [D][E]. */
static void gather_phase(const Axis plane[AXES], int64_t row, int64_t column, const float *from, float *to) {
  for (int64_t d = 0; d < points(&plane[0]); d++)
    for (int64_t e = 0; e < points(&plane[1]); e++) {
      int64_t r = point_of(&plane[0], row, d), s = point_of(&plane[1], column, e);
      *to++ = r < 0 || s < 0 ? 0 : from[r * plane[1].window + s];
    }
}

/* [C, K, R, S] as [K u v, C, D, E]. */
static Value *weights_of_phases(Graph *graph, const Value *weights, int n_axes, const Axis *axes) {
  Axis plane[AXES];
  as_plane(n_axes, axes, plane);
  int64_t C = dim_value(weights->shape[0]), K = dim_value(weights->shape[1]),
          window = plane[0].window * plane[1].window;
  int64_t taps = points(&plane[0]) * points(&plane[1]), columns = plane[1].stride, phases = plane[0].stride * columns;
  int64_t shape[2 + AXES] = {K * phases, C};
  for (int i = 0; i < n_axes; i++) shape[2 + i] = points(&axes[i]);
  float *numbers = ARENA_ARRAY(graph->arena, float, K *phases *C *taps), *to = numbers;
  for (int64_t k = 0; k < K; k++)
    for (int64_t phase = 0; phase < phases; phase++)
      for (int64_t c = 0; c < C; c++, to += taps)
        gather_phase(plane, phase / columns, phase % columns, (const float *)weights->data + (c * K + k) * window, to);
  return graph_constant(graph, weights->name, RNNCC_F32, 2 + n_axes, shape, numbers);
}

/* ---- nodes ---- */

static Value *convolution(const Builder *builder, const Node *node, int n_axes, const Axis *axes) {
  Graph *graph = builder->graph;
  Value *inputs[] = {node->inputs[0], weights_of_phases(graph, node->inputs[1], n_axes, axes), node_input(node, 2)};
  int64_t channels = dim_value(node->inputs[1]->shape[1]), all = dim_value(inputs[1]->shape[0]);
  if (inputs[2]) inputs[2] = build_repeated(builder, inputs[2], all / channels);
  int64_t pads[2 * AXES];
  for (int i = 0; i < n_axes; i++) {
    pads[i] = axes[i].before;
    pads[n_axes + i] = axes[i].after;
  }
  const Attribute padded = attribute_ints(graph->arena, ATTR_pads, 2 * n_axes, pads);
  return build_op(builder, OP_Conv, inputs[2] ? 3 : 2, inputs, 1, 1, &padded)->outputs[0];
}

/* Each phase's outputs to between those of the others. */
static Value *between(const Builder *builder, Value *made, const Value *y, int n_axes, const Axis *axes) {
  const Dim *shape[2 + 2 * AXES] = {y->shape[0], y->shape[1]};
  int64_t perm[2 + 2 * AXES] = {0, 1};
  for (int i = 0; i < n_axes; i++) {
    shape[2 + i] = dim_const(builder->graph->dims, axes[i].stride);
    shape[2 + n_axes + i] = made->shape[2 + i];
    perm[2 + 2 * i] = 2 + n_axes + i;
    perm[3 + 2 * i] = 2 + i;
  }
  Value *turned = build_transpose(builder, build_reshape(builder, made, 2 + 2 * n_axes, shape), perm);
  return build_reshape(builder, turned, y->rank, y->shape);
}

/* needs: infer_shapes, simplify (constant weights). keeps: types and shapes of what remains; results but for the order
 * of sums. */
void transposed_as_convolutions(Graph *graph) {
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    Axis axes[AXES];
    if (!becomes_convolution(graph, node, axes)) continue;
    Builder builder = {graph, node->name, node->where};
    int n_axes = node->inputs[0]->rank - 2;
    Value *y = node->outputs[0], *made = convolution(&builder, node, n_axes, axes);
    graph_set_output(between(&builder, made, y, n_axes, axes)->producer, 0, y);
    graph->nodes[n] = NULL;
    any = true;
  }
  if (any) graph_tidy(graph);
}
