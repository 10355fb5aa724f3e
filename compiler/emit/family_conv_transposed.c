/* SPDX-License-Identifier: MIT */
/* Transposed convolution over one or two spatial axes; one axis is a plane of one row. */
#include "emit/elementwise.h"
#include "emit/family.h"
#include "graph/shape.h"

static bool transposed_takes_epilogue(const Node *host, const Node *step) {
  (void)host;
  return elementwise_is_epilogue(step);
}

static KernelSpec *transposed_spec(Emitter *emitter, const Node *node, const Window *window, bool bias) {
  bool flat = window->n_spatial == 1;
  int w = flat ? 0 : 1;
  KernelSpec *spec = kernel_spec(emitter, "conv_transposed");
  kernel_knob(spec, "WINDOW_H", flat ? 1 : window->kernel[0]);
  kernel_knob(spec, "WINDOW_W", window->kernel[w]);
  kernel_knob(spec, "STRIDE_H", flat ? 1 : window->stride[0]);
  kernel_knob(spec, "STRIDE_W", window->stride[w]);
  kernel_knob(spec, "DILATION_H", flat ? 1 : window->dilation[0]);
  kernel_knob(spec, "DILATION_W", window->dilation[w]);
  kernel_knob(spec, "BIAS", bias);
  if (node->n_epilogue) kernel_hook(spec, "epilogue", elementwise_epilogue_body(emitter_arena(emitter), node));
  return spec;
}

static void transposed_cost(Emitter *emitter, KernelCall *call, const Node *node) {
  DimTable *dims = emitter_graph(emitter)->dims;
  const Value *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
  double inputs = (double)dim_optimum(value_count_dim(emitter_graph(emitter), x, 0, x->rank));
  double outputs = (double)dim_optimum(value_count_dim(emitter_graph(emitter), y, 0, y->rank));
  double weights = (double)dim_optimum(value_count_dim(emitter_graph(emitter), w, 0, w->rank));
  double a_channel = (double)dim_optimum(dim_max(dims, x->shape[1], dim_const(dims, 1)));
  call_cost(call, 2 * inputs / a_channel * weights, 4 * (inputs + outputs + weights));
}

static void transposed_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
  const Value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
  const Dim *one = dim_const(graph->dims, 1), *zero = dim_const(graph->dims, 0);
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a transposed convolution that has no shape", node->id);
  bool flat = window.n_spatial == 1;
  int last = flat ? 0 : 1;
  int64_t groups = node_int(node, "group");
  KernelCall *call = kernel_call(emitter, node, transposed_spec(emitter, node, &window, bias != NULL));
  call_value(call, "x", x);
  call_value(call, "w", w);
  call_value(call, "bias", bias);
  call_value(call, "y", y);
  call_dim(call, "n", x->shape[0]);
  call_argument(call, "groups", "%lld", (long long)groups);
  call_argument(call, "channels", "%lld", (long long)(dim_value(x->shape[1]) / groups));
  call_dim(call, "kernels", w->shape[1]);
  call_dim(call, "in_h", flat ? one : x->shape[2]);
  call_dim(call, "in_w", x->shape[2 + last]);
  call_dim(call, "out_h", flat ? one : y->shape[2]);
  call_dim(call, "out_w", y->shape[2 + last]);
  call_dim(call, "top", flat ? zero : window.pad_begin[0]);
  call_dim(call, "left", window.pad_begin[last]);
  transposed_cost(emitter, call, node);
}

const KernelFamily family_conv_transposed = {
    .name = "conv_transposed",
    .takes_epilogue = transposed_takes_epilogue,
    .emit = transposed_emit,
};
