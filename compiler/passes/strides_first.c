/* SPDX-License-Identifier: MIT */
/*
 * Does not compute pixels that are not read. If all readers of an image are strided 1x1 convolutions (the first ones of
 * a ResNet's stage), the convolution that writes it gets the stride; element-wise nodes between stay, and their other
 * operands (a residual) are sampled by a 1x1 pooling. A 1x1 convolution with a new stride may pass it on in turn.
 */
#include <string.h>

#include "ir/op.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

typedef struct Thinning {
  Graph *graph;
  UseList uses;
  int n; /* spatial axes */
  int64_t stride[MAX_SPATIAL];
} Thinning;

static bool constant_window(Graph *graph, const Node *node, Window *window) {
  if (!is_op(node, OP_Conv) || !read_window(graph, node, window)) return false;
  for (int i = 0; i < window->n_spatial; i++)
    if (!dim_is_const(window->pad_begin[i]) || !dim_is_const(window->pad_end[i])) return false;
  return true;
}

static bool pointwise_window(Graph *graph, const Node *node, Window *window) {
  return constant_window(graph, node, window) && is_pointwise(window);
}

static bool has_constant_pixels(const Value *image) {
  for (int axis = 2; axis < image->rank; axis++)
    if (!dim_is_const(image->shape[axis])) return false;
  return image->rank > 2;
}

/* ---- which nodes can get a stride ---- */

static bool steps_like(const Thinning *t, const Window *window) {
  return window->n_spatial == t->n && !memcmp(window->stride, t->stride, (size_t)t->n * sizeof *t->stride);
}

static int stepping_readers(const Thinning *t, const Value *image) {
  int found = 0;
  Window window;
  for (int n = 0; n < t->graph->n_nodes; n++) {
    const Node *node = t->graph->nodes[n];
    if (node->n_inputs && node->inputs[0] == image && pointwise_window(t->graph, node, &window))
      found += steps_like(t, &window);
  }
  return found;
}

static bool is_per_channel(const Value *value, const Value *image) {
  if (!value->data) return false;
  for (int i = 1; i <= image->rank - 2 && i <= value->rank; i++)
    if (!dim_is_const(value->shape[value->rank - i]) || dim_value(value->shape[value->rank - i]) != 1) return false;
  return true;
}

/* Does each pixel of the result depend on the same pixel of images, and on values without pixels? */
static bool is_pixelwise(const Node *node) {
  const Value *image = node->outputs[0];
  bool norm = is_op(node, OP_BatchNormalization);
  if (node->n_outputs != 1 || (!norm && node->op->layout != LAYOUT_OBLIVIOUS)) return false;
  for (int i = 0; i < node->n_inputs; i++) {
    const Value *input = node->inputs[i];
    bool constant = input && (norm && i ? input->data != NULL : is_per_channel(input, image));
    if (input && !constant && (input->data || input->dtype != RNNCC_F32 || !shapes_agree(input, image))) return false;
  }
  return image->dtype == RNNCC_F32;
}

static bool can_step(const Thinning *t, const Value *image) {
  Window window;
  const Node *node = image->producer;
  return node && t->uses.count[image->id] == 1 && (constant_window(t->graph, node, &window) || is_pixelwise(node));
}

/* The number of convolutions that get a stride if the image is thinned. */
static int count_convolutions(const Thinning *t, const Value *image) {
  const Node *node = image->producer;
  if (is_op(node, OP_Conv)) return 1;
  int count = 0;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && can_step(t, node->inputs[i])) count += count_convolutions(t, node->inputs[i]);
  return count;
}

/* ---- moving strides ---- */

static void infer_again(Thinning *t, Node *node) {
  node->outputs[0]->rank = -1;
  if (!infer_node(t->graph, node)) bug("a node of fewer pixels does not fit where it fitted before");
}

static void set_windows(Thinning *t, Node *node, const Window *window, const int64_t *stride) {
  int64_t pads[2 * MAX_SPATIAL];
  for (int i = 0; i < t->n; i++) {
    pads[i] = dim_value(window->pad_begin[i]);
    pads[t->n + i] = dim_value(window->pad_end[i]);
  }
  Arena *arena = t->graph->arena;
  set_attribute(t->graph, node, attribute_one_of(ATTR_auto_pad, AUTO_PAD_NOTSET));
  set_attribute(t->graph, node, attribute_ints(arena, ATTR_pads, 2 * t->n, pads));
  set_attribute(t->graph, node, attribute_ints(arena, ATTR_strides, t->n, stride));
}

static void step_convolution(Thinning *t, Node *node) {
  Window window;
  int64_t stride[MAX_SPATIAL];
  if (!constant_window(t->graph, node, &window)) bug("the window was good before");
  for (int i = 0; i < t->n; i++) stride[i] = window.stride[i] * t->stride[i];
  set_windows(t, node, &window, stride);
}

static Value *sample(Thinning *t, Value *image) {
  static const int64_t ones[MAX_SPATIAL] = {1, 1, 1};
  const Builder builder = {t->graph, image->name, image->where};
  const Attribute attributes[] = {attribute_ints(t->graph->arena, ATTR_kernel_shape, t->n, ones),
                                  attribute_ints(t->graph->arena, ATTR_strides, t->n, t->stride)};
  return build_op(&builder, OP_MaxPool, 1, &image, 1, 2, attributes)->outputs[0];
}

static void thin(Thinning *t, const Value *image) {
  Node *node = image->producer;
  bool convolution = is_op(node, OP_Conv);
  if (convolution) step_convolution(t, node);
  for (int i = 0; i < node->n_inputs && !convolution; i++) {
    Value *input = node->inputs[i];
    if (!input || input->data) continue;
    if (can_step(t, input))
      thin(t, input);
    else
      node->inputs[i] = sample(t, input);
  }
  infer_again(t, node);
}

/* Removes the stride of the image's readers. */
static void step_no_more(Thinning *t, const Value *image) {
  static const int64_t ones[MAX_SPATIAL] = {1, 1, 1};
  Window window;
  for (int n = 0; n < t->graph->n_nodes; n++) {
    Node *node = t->graph->nodes[n];
    if (node->n_inputs && node->inputs[0] == image && pointwise_window(t->graph, node, &window))
      set_windows(t, node, &window, ones);
  }
}

static bool is_worthwhile(const Thinning *t, const Value *image) {
  const Node *node = image->producer;
  Window window;
  bool able = node && (constant_window(t->graph, node, &window) || is_pixelwise(node)) && has_constant_pixels(image);
  return able && stepping_readers(t, image) == t->uses.count[image->id] && count_convolutions(t, image) > 0;
}

static bool steps_over_pixels(Graph *graph, const Node *node, Thinning *t) {
  Window window;
  if (!pointwise_window(graph, node, &window)) return false;
  t->n = window.n_spatial;
  memcpy(t->stride, window.stride, sizeof t->stride);
  return is_strided(&window);
}

/* needs: infer_shapes; no epilogues yet. keeps: types and shapes of what the readers of thinned images make. */
void strides_first(Graph *graph) {
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    Thinning t = {.graph = graph};
    if (!steps_over_pixels(graph, graph->nodes[n], &t)) continue;
    const Value *image = graph->nodes[n]->inputs[0];
    t.uses = graph_uses(graph);
    if (!is_worthwhile(&t, image)) continue;
    thin(&t, image);
    step_no_more(&t, image);
  }
  sort_nodes(graph);
  graph_renumber(graph);
}
