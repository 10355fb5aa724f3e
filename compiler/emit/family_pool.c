/* SPDX-License-Identifier: MIT */
/* MaxPool and AveragePool over one or two spatial axes; one axis is a plane of one row. */
#include <string.h>

#include "emit/family.h"
#include "graph/shape.h"

/* As in templates/pool2d.c. */
enum { KIND_MAX, KIND_MEAN, KIND_MEAN_WITH_PADDING };

static int pool_kind(const Node *node) {
  if (!strcmp(node->op->name, "MaxPool")) return KIND_MAX;
  return node_int(node, "count_include_pad") ? KIND_MEAN_WITH_PADDING : KIND_MEAN;
}

static void pool_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *one = dim_const(graph->dims, 1), *zero = dim_const(graph->dims, 0);
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a pooling that has no shape", node->id);
  bool flat = window.n_spatial == 1;
  int w = flat ? 0 : 1;
  KernelSpec *spec = kernel_spec(emitter, "pool2d");
  kernel_knob(spec, "KIND", pool_kind(node));
  kernel_knob(spec, "WINDOW_H", flat ? 1 : window.kernel[0]);
  kernel_knob(spec, "WINDOW_W", window.kernel[w]);
  kernel_knob(spec, "STRIDE_H", flat ? 1 : window.stride[0]);
  kernel_knob(spec, "STRIDE_W", window.stride[w]);
  kernel_knob(spec, "DILATION_H", flat ? 1 : window.dilation[0]);
  kernel_knob(spec, "DILATION_W", window.dilation[w]);
  KernelCall *call = kernel_call(emitter, node, spec);
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
  double inputs = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  double outputs = (double)dim_optimum(value_count_dim(graph, y, 0, y->rank));
  call_cost(call, outputs * (double)(window.kernel[0] * (flat ? 1 : window.kernel[1])), 4 * (inputs + outputs));
}

const KernelFamily family_pool = {.name = "pool", .emit = pool_emit};
