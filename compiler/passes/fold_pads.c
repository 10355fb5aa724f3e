/* SPDX-License-Identifier: MIT */
/*
 * Pad along the spatial axes becomes pads of the window that reads it, if its value is the one that the window pads
 * with: 0 for a convolution and for an average that counts pads, any value that is never the maximum for a MaxPool.
 */
#include <math.h>

#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

typedef struct Padding {
  Value *x; /* the input of the Pad */
  int64_t before[MAX_RANK], after[MAX_RANK];
  float fill;
} Padding;

/* ---- Pad ---- */

static bool read_fill(const Node *pad, float *fill) {
  const Value *given = node_input(pad, 2);
  if (given && !given->data) return false;
  *fill = given ? *(const float *)given->data : (float)node_float(pad, ATTR_value);
  return true;
}

/* False if a pad is not constant. */
static bool constant_pads(Graph *graph, const Node *node, Padding *padding) {
  const Dim *before[MAX_RANK], *after[MAX_RANK];
  if (!read_pads(graph, node, before, after)) bug("the pads were good before");
  for (int axis = 0; axis < padding->x->rank; axis++) {
    if (!dim_is_const(before[axis]) || !dim_is_const(after[axis])) return false;
    padding->before[axis] = dim_value(before[axis]);
    padding->after[axis] = dim_value(after[axis]);
  }
  return true;
}

/* False if the node is not a Pad by constants, with a constant, along spatial axes. */
static bool padding_of(Graph *graph, const Node *node, Padding *padding) {
  if (!is_op(node, OP_Pad) || node_word(node, ATTR_mode) != PAD_constant) return false;
  *padding = (Padding){.x = node->inputs[0]};
  if (padding->x->dtype != RNNCC_F32 || !read_fill(node, &padding->fill)) return false;
  if (!constant_pads(graph, node, padding)) return false;
  for (int axis = 0; axis < padding->x->rank; axis++) {
    if (padding->before[axis] < 0 || padding->after[axis] < 0) return false;
    if (axis < 2 && (padding->before[axis] || padding->after[axis])) return false;
  }
  return true;
}

/* ---- windows ---- */

/* The sum of the window's and the Pad's pads, [begins][ends]. False if the window's are not constant. */
static bool add_pads(const Window *window, const Padding *padding, int64_t pads[2 * MAX_SPATIAL]) {
  int n = window->n_spatial;
  for (int i = 0; i < n; i++) {
    if (!dim_is_const(window->pad_begin[i]) || !dim_is_const(window->pad_end[i])) return false;
    pads[i] = dim_value(window->pad_begin[i]) + padding->before[2 + i];
    pads[n + i] = dim_value(window->pad_end[i]) + padding->after[2 + i];
  }
  return true;
}

static bool is_zero(float x) { return !(x < 0 || x > 0) && !isnan(x); }

static bool conv_takes(const Node *node, const Window *window, const Padding *padding) {
  (void)node, (void)window;
  return is_zero(padding->fill);
}

/* The Pad's elements are counted, so the pool must count its own pads, or have none. */
static bool average_takes(const Node *node, const Window *window, const Padding *padding) {
  bool alike = node_int(node, ATTR_count_include_pad) != 0 || is_unpadded(window);
  return is_zero(padding->fill) && alike && !window->partial;
}

static bool is_not_negative(const Value *bound) { return bound->data && *(const float *)bound->data >= 0; }

/* Where the bounds cross, the result is the upper one. */
static bool bounds_are_not_negative(const Node *clip) {
  const Value *low = node_input(clip, 1), *high = node_input(clip, 2);
  return low && is_not_negative(low) && (!high || is_not_negative(high));
}

static bool never_negative(const Value *value) {
  static const bool always[N_OPS] = {[OP_Abs] = true,  [OP_Exp] = true,     [OP_HardSigmoid] = true,
                                     [OP_Relu] = true, [OP_Sigmoid] = true, [OP_Softplus] = true};
  const Node *node = value->producer;
  return node && (always[node->op->kind] || (is_op(node, OP_Clip) && bounds_are_not_negative(node)));
}

/* Every window needs an element of the image, so that padding is never the maximum: pads are smaller than the kernel,
 * and the kernel has no gaps. Places of maxima are of the padded image. */
static bool maximum_takes(const Node *node, const Window *window, const Padding *padding) {
  if (node_output(node, 1)) return false;
  bool loses = padding->fill <= -INFINITY || (is_zero(padding->fill) && never_negative(padding->x));
  for (int i = 0; i < window->n_spatial; i++) loses &= window->dilation[i] == 1;
  return loses && !window->partial;
}

static bool smaller_than_kernel(const Window *window, const int64_t *pads) {
  for (int i = 0; i < 2 * window->n_spatial; i++)
    if (pads[i] >= window->kernel[i % window->n_spatial]) return false;
  return true;
}

static const struct PadRow {
  bool (*takes)(const Node *, const Window *, const Padding *);
  bool pools; /* pads must be smaller than the kernel */
} rows[N_OPS] = {
    [OP_AveragePool] = {average_takes, true}, [OP_Conv] = {conv_takes, false}, [OP_MaxPool] = {maximum_takes, true}};

/* ---- folding ---- */

static void set_pads(Graph *graph, Node *node, const int64_t *pads, int count) {
  set_attribute(graph, node, attribute_one_of(ATTR_auto_pad, AUTO_PAD_NOTSET));
  set_attribute(graph, node, attribute_ints(graph->arena, ATTR_pads, count, pads));
  if (is_op(node, OP_AveragePool)) set_attribute(graph, node, attribute_int(ATTR_count_include_pad, 1));
}

/* True if the Pad before the node became its pads. */
static bool fold(Graph *graph, Node *node) {
  const struct PadRow *row = &rows[node->op->kind];
  Window window;
  Padding padding;
  int64_t pads[2 * MAX_SPATIAL];
  if (!row->takes || !padding_of(graph, node->inputs[0]->producer, &padding)) return false;
  if (!read_window(graph, node, &window)) bug("the window was good before");
  if (!add_pads(&window, &padding, pads) || !row->takes(node, &window, &padding)) return false;
  if (row->pools && !smaller_than_kernel(&window, pads)) return false;
  set_pads(graph, node, pads, 2 * window.n_spatial);
  node->inputs[0] = padding.x;
  return true;
}

/* needs: infer_shapes. keeps: types and shapes. Removes every Pad that is not read any more. */
void fold_pads(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++)
    while (fold(graph, graph->nodes[n])) {
    }
  graph_remove_dead(graph);
}
