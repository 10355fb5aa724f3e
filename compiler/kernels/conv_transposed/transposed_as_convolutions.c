/* SPDX-License-Identifier: MIT */
/*
 * A transposed convolution as an ordinary one that has the channels of all phases, beside each other, and whose result
 * is moved to where the outputs are. It multiplies by zeros where the window has no point for a phase, but Winograd's
 * algorithm may compute it; it fills vectors where there are few output channels, and tiles where there are few pixels.
 *
 *   ConvTranspose(x [N, C, H, W], w [C, K, R, S], strides u, v)
 *     -> Conv(x, w' [u v K, C, D, E]) as [N, u v K, H, W], whose pixels are shuffled to [N, K, u H, v W]
 *
 * Output q u + p of an axis takes input q + d by point p + crop - d u of the window, for D neighbouring d, of which
 * `before` are negative. Where the window has no such point, w' is zero.
 */
#include "ir/config.h"
#include "ir/family.h"
#include "kernels/conv_transposed/pixel_shuffle.h"
#include "layout/layout.h"
#include "layout/layout_costs.h"
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

typedef struct Phases {
  int n_axes;
  Axis axes[AXES];
  int64_t count;
} Phases;

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

static bool is_known(const Value *weights) {
  return weights->data && weights->dtype == RNNCC_F32 && !weights->block && !weights->narrow;
}

/* So many times the transposed one's weights, packed by vectors, are the convolution's at most, zeros among them; where
 * memory is little. Winograd's algorithm makes more of them. */
enum { MOST_WEIGHTS = 4, MOST_AT_EDGE = 2 };

static bool has_few_weights(const Graph *graph, const Phases *phases, int64_t K) {
  int lanes = graph->config->target->lanes;
  int64_t taps = 1, window = 1, most = graph->config->edge ? MOST_AT_EDGE : MOST_WEIGHTS;
  for (int i = 0; i < phases->n_axes; i++) {
    taps *= points(&phases->axes[i]);
    window *= phases->axes[i].window;
  }
  return round_up(phases->count * K, lanes) * taps <= most * round_up(K, lanes) * window;
}

/* Is there such a convolution? */
static bool has_phases(Graph *graph, const Node *node, Phases *phases) {
  Window window;
  if (!is_op(node, OP_ConvTranspose) || node_int(node, ATTR_group) != 1 || !is_known(node->inputs[1])) return false;
  if (node_input(node, 2) && !is_known(node->inputs[2])) return false;
  if (!read_window(graph, node, &window) || window.n_spatial > AXES) return false;
  const Value *x = node->inputs[0];
  *phases = (Phases){.n_axes = window.n_spatial, .count = 1};
  for (int i = 0; i < window.n_spatial; i++) {
    if (!read_axis(graph, &window, i, x->shape[2 + i], &phases->axes[i])) return false;
    phases->count *= window.stride[i];
  }
  return phases->count > 1 && has_few_weights(graph, phases, dim_value(node->inputs[1]->shape[1]));
}

/* ---- weights ---- */

/* The point of the window by which output `phase` of an input takes the one at `point`; negative: it does not. */
static int64_t point_of(const Axis *axis, int64_t phase, int64_t point) {
  int64_t at = phase + axis->crop - (point - axis->before) * axis->stride;
  return at < axis->window ? at : -1;
}

/* A sequence as a plane of one row. */
static void as_plane(const Phases *phases, Axis plane[AXES]) {
  plane[0] = phases->n_axes == AXES ? phases->axes[0] : (Axis){.window = 1, .stride = 1};
  plane[1] = phases->axes[phases->n_axes - 1];
}

/* Those of one output and one input channel in one phase. from: [R][S]; to: [D][E]. */
static void gather_phase(const Axis plane[AXES], int64_t row, int64_t column, const float *from, float *to) {
  for (int64_t d = 0; d < points(&plane[0]); d++)
    for (int64_t e = 0; e < points(&plane[1]); e++) {
      int64_t r = point_of(&plane[0], row, d), s = point_of(&plane[1], column, e);
      *to++ = r < 0 || s < 0 ? 0 : from[r * plane[1].window + s];
    }
}

/* Of [C, K, R, S] those of [u v K, C, D, E]. */
static float *weights_of_phases(Arena *arena, const Value *weights, const Phases *phases) {
  Axis plane[AXES];
  as_plane(phases, plane);
  int64_t C = dim_value(weights->shape[0]), K = dim_value(weights->shape[1]), columns = plane[1].stride;
  int64_t window = plane[0].window * plane[1].window, taps = points(&plane[0]) * points(&plane[1]);
  float *numbers = ARENA_ARRAY(arena, float, phases->count *K *C *taps), *to = numbers;
  for (int64_t phase = 0; phase < phases->count; phase++)
    for (int64_t k = 0; k < K; k++)
      for (int64_t c = 0; c < C; c++, to += taps)
        gather_phase(plane, phase / columns, phase % columns, (const float *)weights->data + (c * K + k) * window, to);
  return numbers;
}

/* Of each phase the same. */
static Value *bias_of_phases(Graph *graph, const Value *bias, const Phases *phases) {
  int64_t K = value_count(bias), all = phases->count * K;
  float *numbers = ARENA_ARRAY(graph->arena, float, all);
  for (int64_t i = 0; i < all; i++) numbers[i] = ((const float *)bias->data)[i % K];
  return graph_constant(graph, bias->name, RNNCC_F32, 1, &all, numbers);
}

/* The convolution, without its weights' numbers: they are the transposed one's. */
static Node *convolution(const Builder *builder, const Node *node, const Phases *phases) {
  Graph *graph = builder->graph;
  const Value *weights = node->inputs[1];
  int64_t shape[2 + AXES] = {phases->count * dim_value(weights->shape[1]), dim_value(weights->shape[0])};
  int64_t pads[2 * AXES];
  for (int i = 0; i < phases->n_axes; i++) {
    shape[2 + i] = points(&phases->axes[i]);
    pads[i] = phases->axes[i].before;
    pads[phases->n_axes + i] = phases->axes[i].after;
  }
  Value *inputs[] = {node->inputs[0],
                     graph_constant(graph, weights->name, RNNCC_F32, weights->rank, shape, weights->data),
                     node_input(node, 2) ? bias_of_phases(graph, node->inputs[2], phases) : NULL};
  const Attribute padded = attribute_ints(graph->arena, ATTR_pads, 2 * phases->n_axes, pads);
  return build_op(builder, OP_Conv, inputs[2] ? 3 : 2, inputs, 1, 1, &padded);
}

/* ---- choice ---- */

static const NodeLayout row_major = {LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR}, blocked = {LAYOUT_BLOCKED, LAYOUT_BLOCKED};

/* Of a convolution and the transform of its result, if another layout is wanted. */
static double seconds_in(Graph *graph, const Node *node, NodeLayout layout, bool wants_blocks) {
  int lanes = graph->config->target->lanes, from = layout.writes == LAYOUT_BLOCKED ? lanes : 0;
  double transform = layout_transform_seconds(graph, node->outputs[0], from, wants_blocks ? lanes : 0);
  return layout_node_seconds(graph, node, layout).estimated + transform;
}

static double seconds_of(Graph *graph, const Node *node, bool wants_blocks) {
  double seconds = seconds_in(graph, node, row_major, wants_blocks);
  if (!(possible_layouts(graph, node) & LAYOUT_SET_BLOCKED)) return seconds;
  return min_double(seconds, seconds_in(graph, node, blocked, wants_blocks));
}

/* Does what reads the result, behind activations, seek blocked tensors? */
static bool is_read_blocked(const UseList *uses, const Node *node) {
  const Node *reader = uses->single[node->outputs[0]->id];
  while (reader && reader->op->layout == LAYOUT_OBLIVIOUS && reader->n_outputs == 1)
    reader = uses->single[reader->outputs[0]->id];
  return reader && reader->op->family && reader->op->family->seeks_blocked;
}

static double convolution_seconds(Graph *graph, const Node *conv, const Value *y, bool wants_blocks) {
  int lanes = graph->config->target->lanes;
  bool in_blocks = pixel_shuffle_runs_blocked(graph, y);
  double transform = layout_transform_seconds(graph, y, in_blocks ? lanes : 0, wants_blocks ? lanes : 0);
  return seconds_of(graph, conv, in_blocks) + pixel_shuffle_seconds(graph, y, in_blocks) + transform;
}

static bool gains(Graph *graph, const UseList *uses, const Node *node, const Node *conv) {
  bool wants_blocks = is_read_blocked(uses, node);
  double transposed = seconds_of(graph, node, wants_blocks);
  return convolution_seconds(graph, conv, node->outputs[0], wants_blocks) < transposed;
}

/* ---- nodes ---- */

static void replace(const Builder *builder, const UseList *uses, const Node *node, Node *conv, const Phases *phases) {
  Graph *graph = builder->graph;
  int64_t strides[AXES];
  for (int i = 0; i < phases->n_axes; i++) strides[i] = phases->axes[i].stride;
  conv->inputs[1]->data = weights_of_phases(graph->arena, node->inputs[1], phases);
  Value *y = node->outputs[0], *made = build_activated(builder, uses, conv->outputs[0], &y);
  pixel_shuffle(graph, made, y, strides);
}

/* needs: infer_shapes, simplify (constant weights). keeps: types and shapes of what remains; results but for the order
 * of sums. breaks: that every node is one of ops.def. */
void transposed_as_convolutions(Graph *graph) {
  UseList uses = graph_uses(graph);
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    Builder builder = {graph, node->name, node->where};
    Phases phases;
    if (!has_phases(graph, node, &phases)) continue;
    Node *conv = convolution(&builder, node, &phases);
    if (gains(graph, &uses, node, conv)) {
      replace(&builder, &uses, node, conv, &phases);
      graph->nodes[n] = NULL;
    } else {
      graph_withdraw(graph, conv);
    }
    any = true;
  }
  if (any) graph_tidy(graph);
}
