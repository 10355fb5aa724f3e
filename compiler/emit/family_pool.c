/* SPDX-License-Identifier: MIT */
/* MaxPool and AveragePool over one or two spatial axes; one axis is a plane of one row. */
#include <string.h>

#include "emit/family.h"
#include "graph/shape.h"
#include "layout/blocked.h"
#include "layout/row_tiles.h"

/* As in templates/pool2d.c. */
enum { KIND_MAX, KIND_MEAN, KIND_MEAN_WITH_PADDING };

static int pool_kind(const Node *node) {
  if (!strcmp(node->op->name, "MaxPool")) return KIND_MAX;
  return node_int(node, "count_include_pad") ? KIND_MEAN_WITH_PADDING : KIND_MEAN;
}

static Window window_of(Graph *graph, const Node *node) {
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a pooling that has no shape", node->id);
  return window;
}

static KernelSpec *window_spec(Emitter *emitter, const Node *node, const Window *window, const char *name) {
  bool flat = window->n_spatial == 1;
  int w = flat ? 0 : 1;
  KernelSpec *spec = kernel_spec(emitter, name);
  kernel_knob(spec, "KIND", pool_kind(node));
  kernel_knob(spec, "WINDOW_H", flat ? 1 : window->kernel[0]);
  kernel_knob(spec, "WINDOW_W", window->kernel[w]);
  kernel_knob(spec, "STRIDE_H", flat ? 1 : window->stride[0]);
  kernel_knob(spec, "STRIDE_W", window->stride[w]);
  kernel_knob(spec, "DILATION_H", flat ? 1 : window->dilation[0]);
  kernel_knob(spec, "DILATION_W", window->dilation[w]);
  return spec;
}

static void pool_cost(Graph *graph, KernelCall *call, const Node *node, const Window *window) {
  const Value *x = node->inputs[0], *y = node->outputs[0];
  double inputs = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  double outputs = (double)dim_optimum(value_count_dim(graph, y, 0, y->rank));
  double points = (double)(window->kernel[0] * (window->n_spatial == 1 ? 1 : window->kernel[1]));
  call_cost(call, outputs * points, 4 * (inputs + outputs));
}

/* ---- blocked tensors ---- */

/* A window's columns are vectors of their own in registers, of which a few are wanted for other things. */
enum { MOST_WINDOW_W = 32, OTHER_REGISTERS = 8 };

static RowTiles blocked_tiles(Graph *graph, const Node *node, const Window *window) {
  int w = window->n_spatial - 1, axis = 2 + w;
  int64_t reach = (window->kernel[w] - 1) * window->dilation[w] + 1;
  int64_t most = (graph->target->vector_registers - OTHER_REGISTERS - reach) / window->stride[w] + 1;
  return row_tiles_of(dim_value(node->outputs[0]->shape[axis]), most > 14 ? 14 : most, window->stride[w], reach,
                      dim_value(node->inputs[0]->shape[axis]), dim_value(window->pad_begin[w]));
}

static bool runs_blocked(Graph *graph, const Node *node) {
  Window window = window_of(graph, node);
  int w = window.n_spatial - 1;
  return window.kernel[w] <= MOST_WINDOW_W && blocked_tiles(graph, node, &window).variants <= ROW_TILE_VARIANTS;
}

static void emit_blocked(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  Blocked x = blocked_of(graph, node->inputs[0]), y = blocked_of(graph, node->outputs[0]);
  Window window = window_of(graph, node);
  bool flat = window.n_spatial == 1;
  int w = flat ? 0 : 1;
  KernelSpec *spec = window_spec(emitter, node, &window, "pool_blocked");
  kernel_knob(spec, "IN_H", x.height);
  kernel_knob(spec, "IN_W", x.width);
  kernel_knob(spec, "OUT_H", y.height);
  kernel_knob(spec, "OUT_W", y.width);
  kernel_knob(spec, "PAD_TOP", flat ? 0 : dim_value(window.pad_begin[0]));
  kernel_knob(spec, "PAD_LEFT", dim_value(window.pad_begin[w]));
  kernel_knob(spec, "PAD_BOTTOM", flat ? 0 : dim_value(window.pad_end[0]));
  kernel_knob(spec, "PAD_RIGHT", dim_value(window.pad_end[w]));
  kernel_knob(spec, "COLUMNS", blocked_tiles(graph, node, &window).columns);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", node->inputs[0]);
  call_value(call, "y", node->outputs[0]);
  call_dim(call, "n", node->inputs[0]->shape[0]);
  call_integer(call, "blocks", x.blocks);
  call_integer(call, "x_image", x.image);
  call_integer(call, "y_image", y.image);
  pool_cost(graph, call, node, &window);
}

/* ---- plain tensors ---- */

static void emit_plain(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *one = dim_const(graph->dims, 1), *zero = dim_const(graph->dims, 0);
  Window window = window_of(graph, node);
  bool flat = window.n_spatial == 1;
  int w = flat ? 0 : 1;
  KernelCall *call = kernel_call(emitter, node, window_spec(emitter, node, &window, "pool2d"));
  call_value(call, "x", x);
  call_value(call, "y", y);
  call_dim(call, "planes", dim_mul(graph->dims, x->shape[0], x->shape[1]));
  call_dim(call, "height", flat ? one : x->shape[2]);
  call_dim(call, "width", x->shape[2 + w]);
  call_dim(call, "out_h", flat ? one : y->shape[2]);
  call_dim(call, "out_w", y->shape[2 + w]);
  call_dim(call, "top", flat ? zero : window.pad_begin[0]);
  call_dim(call, "left", window.pad_begin[w]);
  call_dim(call, "bottom", flat ? zero : window.pad_end[0]);
  call_dim(call, "right", window.pad_end[w]);
  pool_cost(graph, call, node, &window);
}

static void pool_emit(Emitter *emitter, Node *node) {
  if (node->blocked)
    emit_blocked(emitter, node);
  else
    emit_plain(emitter, node);
}

const KernelFamily family_pool = {.name = "pool", .runs_blocked = runs_blocked, .emit = pool_emit};
