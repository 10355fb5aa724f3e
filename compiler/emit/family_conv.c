/* SPDX-License-Identifier: MIT */
/*
 * Convolution over one or two spatial axes; one axis is a plane of one row, and so is a plane under a 1x1 window
 * without padding or stride. Where the window is padded or strides over columns, conv_pad first makes a copy of the
 * input in which conv2d finds its columns side by side.
 */
#include <string.h>

#include "emit/elementwise.h"
#include "emit/family.h"
#include "graph/shape.h"
#include "support/diagnostics.h"

/* One spatial axis as the kernel sees it. */
typedef struct ConvAxis {
  int64_t kernel, stride, dilation;
  const Dim *in, *out, *pad_begin, *pad_end;
} ConvAxis;

typedef struct ConvSchedule {
  Schedule base;
  ConvAxis h, w;
  int64_t groups, channels, kernels; /* channels and kernels of one group */
  int k_block, w_vectors;
  bool direct;               /* conv2d reads the input itself */
  const Dim *rows, *columns; /* of a padded plane: rows, and columns of each phase of a row */
} ConvSchedule;

/* The sum of the convolution and a tensor of its own shape. */
static bool is_residual(const Node *step) {
  if (strcmp(step->op->name, "Add")) return false;
  const Value *sum = step->inputs[0], *residual = step->inputs[1];
  bool same = residual->rank == sum->rank;
  for (int axis = 0; same && axis < sum->rank; axis++) same = same_dim(residual->shape[axis], sum->shape[axis]);
  return same;
}

/* The residual comes first, if there is one; what follows is a chain on the element alone. */
static bool conv_takes_epilogue(const Node *host, const Node *step) {
  return elementwise_is_epilogue(step) || (host->n_epilogue == 0 && is_residual(step));
}

static const Value *residual_of(const Node *node) {
  return node->n_epilogue && is_residual(node->epilogue[0]) ? node->epilogue[0]->inputs[1] : NULL;
}

static const char *epilogue_body(Arena *arena, const Node *node) {
  Node chain = *node;
  if (residual_of(node)) {
    chain.epilogue++;
    chain.n_epilogue--;
  }
  return chain.n_epilogue ? elementwise_epilogue_body(arena, &chain) : NULL;
}

static const ConvSchedule *schedule_of(const Node *node) { return (const ConvSchedule *)node->schedule; }

static ConvAxis window_axis(const Node *node, const Window *window, int i) {
  return (ConvAxis){.kernel = window->kernel[i],
                    .stride = window->stride[i],
                    .dilation = window->dilation[i],
                    .in = node->inputs[0]->shape[2 + i],
                    .out = window->out[i],
                    .pad_begin = window->pad_begin[i],
                    .pad_end = window->pad_end[i]};
}

static ConvAxis single_row(DimTable *dims) {
  const Dim *one = dim_const(dims, 1), *zero = dim_const(dims, 0);
  return (ConvAxis){1, 1, 1, one, one, zero, zero};
}

static bool is_zero(const Dim *dim) { return dim_is_const(dim) && dim_value(dim) == 0; }
static bool unpadded(const ConvAxis *axis) { return is_zero(axis->pad_begin) && is_zero(axis->pad_end); }
static bool pointwise(const ConvAxis *axis) { return axis->kernel == 1 && axis->stride == 1 && unpadded(axis); }

static void read_axes_of_plane(Graph *graph, const Node *node, ConvSchedule *schedule) {
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a convolution that has no shape", node->id);
  schedule->h = window.n_spatial == 1 ? single_row(graph->dims) : window_axis(node, &window, 0);
  schedule->w = window_axis(node, &window, window.n_spatial - 1);
  if (!pointwise(&schedule->h) || !pointwise(&schedule->w)) return;
  schedule->w.in = schedule->w.out = dim_mul(graph->dims, schedule->h.in, schedule->w.in);
  schedule->h = single_row(graph->dims);
}

/* Output columns that the vectors of a row's tiles cover, those past its end included. */
static int64_t covered(int64_t columns, int64_t tile) { return (columns + tile - 1) / tile * tile; }

/* As many vectors of columns as waste none, up to three; as many channels as the registers hold besides the inputs and
 * a weight, cut so that the blocks of a group are alike. */
static void choose_tile(const Target *target, ConvSchedule *schedule) {
  int64_t columns = dim_optimum(schedule->w.out);
  schedule->w_vectors = 1;
  for (int vectors = 2; vectors <= 3; vectors++)
    if (covered(columns, vectors * target->lanes) <= covered(columns, schedule->w_vectors * target->lanes))
      schedule->w_vectors = vectors;
  int64_t most = (target->vector_registers - 1) / schedule->w_vectors - 1;
  if (most > 8) most = 8;
  int64_t blocks = (schedule->kernels + most - 1) / most;
  schedule->k_block = (int)((schedule->kernels + blocks - 1) / blocks);
}

/* A phase of a padded row has every column that a tile may load, past the end of the output's row too. */
static void size_padded_plane(Graph *graph, ConvSchedule *schedule) {
  DimTable *dims = graph->dims;
  const ConvAxis *h = &schedule->h, *w = &schedule->w;
  int64_t tile = (int64_t)schedule->w_vectors * graph->target->lanes;
  schedule->rows = dim_add(dims, h->in, dim_add(dims, h->pad_begin, h->pad_end));
  const Dim *tiles = dim_div(dims, dim_add(dims, w->out, dim_const(dims, tile - 1)), dim_const(dims, tile));
  schedule->columns = dim_add(dims, dim_mul(dims, tiles, dim_const(dims, tile)),
                              dim_const(dims, (w->kernel - 1) * w->dilation / w->stride));
}

static void conv_schedule(Graph *graph, Node *node) {
  ConvSchedule *schedule = ARENA_NEW(graph->arena, ConvSchedule);
  const Value *w = node->inputs[1];
  schedule->groups = node_int(node, "group");
  schedule->channels = dim_value(w->shape[1]);
  schedule->kernels = dim_value(w->shape[0]) / schedule->groups;
  read_axes_of_plane(graph, node, schedule);
  schedule->direct = schedule->w.stride == 1 && unpadded(&schedule->h) && unpadded(&schedule->w);
  choose_tile(graph->target, schedule);
  size_padded_plane(graph, schedule);
  schedule->base.text =
      arena_format(graph->arena, "conv_%lldx%llds%lldc%lldo%lldg%lld_k%dw%d%s", (long long)schedule->h.kernel,
                   (long long)schedule->w.kernel, (long long)schedule->w.stride, (long long)schedule->channels,
                   (long long)schedule->kernels, (long long)schedule->groups, schedule->k_block, schedule->w_vectors,
                   schedule->direct ? "" : "_padded");
  node->schedule = &schedule->base;
}

static void conv_scratch(Graph *graph, Node *node) {
  const ConvSchedule *schedule = schedule_of(node);
  if (schedule->direct) return;
  DimTable *dims = graph->dims;
  const Dim *bytes = dim_mul(dims, schedule->columns, dim_const(dims, schedule->w.stride * (int64_t)sizeof(float)));
  bytes = dim_mul(dims, dim_mul(dims, bytes, schedule->rows), value_count_dim(graph, node->inputs[0], 0, 2));
  node->scratch = graph_value(graph, "padded input", node->where);
  node->scratch->dtype = RNNCC_U8;
  node->scratch->rank = 1;
  node->scratch->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  node->scratch->shape[0] = bytes;
}

/* The weights of each block of channels of a group, [K][C R S] -> [C R S][channel of the block]. */
static void pack_block(float *packed, const float *weights, int64_t points, int64_t rows) {
  for (int64_t point = 0; point < points; point++)
    for (int64_t k = 0; k < rows; k++) packed[point * rows + k] = weights[k * points + point];
}

static void conv_pack(Graph *graph, Node *node) {
  const ConvSchedule *schedule = schedule_of(node);
  const Value *w = node->inputs[1];
  if (!w->data) return;
  const float *weights = w->data;
  int64_t points = schedule->channels * schedule->h.kernel * schedule->w.kernel, count = value_count(w);
  float *packed = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t group = 0; group < schedule->groups; group++)
    for (int64_t k = 0; k < schedule->kernels; k += schedule->k_block) {
      int64_t left = schedule->kernels - k, first = (group * schedule->kernels + k) * points;
      pack_block(packed + first, weights + first, points, left < schedule->k_block ? left : schedule->k_block);
    }
  node->packed = ARENA_ARRAY(graph->arena, Value *, 1);
  node->n_packed = 1;
  node->packed[0] = graph_constant(graph, w->name, RNNCC_F32, 1, &count, packed);
}

static void emit_pad_call(Emitter *emitter, const Node *node) {
  Graph *graph = emitter_graph(emitter);
  const ConvSchedule *schedule = schedule_of(node);
  const Value *x = node->inputs[0];
  KernelSpec *spec = kernel_spec(emitter, "conv_pad");
  kernel_knob(spec, "STRIDE_W", schedule->w.stride);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", x);
  call_argument(call, "out", "(float *)(void *)t%d", node->scratch->id);
  call_dim(call, "planes", value_count_dim(graph, x, 0, 2));
  call_dim(call, "height", schedule->h.in);
  call_dim(call, "width", schedule->w.in);
  call_dim(call, "rows", schedule->rows);
  call_dim(call, "columns", schedule->columns);
  call_dim(call, "top", schedule->h.pad_begin);
  call_dim(call, "left", schedule->w.pad_begin);
  call_cost(call, 0,
            4.0 * (double)dim_optimum(value_count_dim(graph, x, 0, x->rank)) +
                (double)dim_optimum(node->scratch->shape[0]));
}

/* Strides of the input that conv2d reads: the dense one, or conv_pad's. */
static void emit_input_arguments(Emitter *emitter, KernelCall *call, const Node *node) {
  DimTable *dims = emitter_graph(emitter)->dims;
  const ConvSchedule *schedule = schedule_of(node);
  const Dim *row =
      schedule->direct ? schedule->w.in : dim_mul(dims, schedule->columns, dim_const(dims, schedule->w.stride));
  if (schedule->direct)
    call_value(call, "x", node->inputs[0]);
  else
    call_argument(call, "x", "(const float *)(const void *)t%d", node->scratch->id);
  call_dim(call, "x_channel", dim_mul(dims, row, schedule->direct ? schedule->h.in : schedule->rows));
  call_dim(call, "x_row", row);
  call_dim(call, "x_phase", schedule->columns);
}

static KernelSpec *conv_spec(Emitter *emitter, const Node *node, bool bias) {
  const ConvSchedule *schedule = schedule_of(node);
  KernelSpec *spec = kernel_spec(emitter, "conv2d");
  kernel_knob(spec, "WINDOW_H", schedule->h.kernel);
  kernel_knob(spec, "WINDOW_W", schedule->w.kernel);
  kernel_knob(spec, "STRIDE_H", schedule->h.stride);
  kernel_knob(spec, "STRIDE_W", schedule->w.stride);
  kernel_knob(spec, "DILATION_H", schedule->h.dilation);
  kernel_knob(spec, "DILATION_W", schedule->w.dilation);
  kernel_knob(spec, "K_BLOCK", schedule->k_block);
  kernel_knob(spec, "K_TAIL", schedule->kernels % schedule->k_block);
  kernel_knob(spec, "W_VECTORS", schedule->w_vectors);
  kernel_knob(spec, "PACKED", node->n_packed);
  kernel_knob(spec, "DIRECT", schedule->direct);
  kernel_knob(spec, "BIAS", bias);
  kernel_knob(spec, "RESIDUAL", residual_of(node) != NULL);
  const char *body = epilogue_body(emitter_arena(emitter), node);
  if (body) kernel_hook(spec, "epilogue", body);
  return spec;
}

static void conv_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const ConvSchedule *schedule = schedule_of(node);
  const Value *x = node->inputs[0], *y = node->outputs[0], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
  if (!schedule->direct) emit_pad_call(emitter, node);
  KernelCall *call = kernel_call(emitter, node, conv_spec(emitter, node, bias != NULL));
  emit_input_arguments(emitter, call, node);
  call_value(call, "w", node->n_packed ? node->packed[0] : node->inputs[1]);
  call_value(call, "bias", bias);
  call_value(call, "residual", residual_of(node));
  call_value(call, "y", y);
  call_dim(call, "n", x->shape[0]);
  call_argument(call, "groups", "%lld", (long long)schedule->groups);
  call_argument(call, "channels", "%lld", (long long)schedule->channels);
  call_argument(call, "kernels", "%lld", (long long)schedule->kernels);
  call_dim(call, "out_h", schedule->h.out);
  call_dim(call, "out_w", schedule->w.out);
  double points = (double)(schedule->channels * schedule->h.kernel * schedule->w.kernel);
  double outputs = (double)dim_optimum(value_count_dim(graph, y, 0, y->rank));
  double inputs = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  call_cost(call, 2 * points * outputs, 4 * (inputs + outputs + points * (double)dim_value(y->shape[1])));
}

const KernelFamily family_conv = {
    .name = "conv",
    .schedule = conv_schedule,
    .scratch = conv_scratch,
    .pack = conv_pack,
    .takes_epilogue = conv_takes_epilogue,
    .emit = conv_emit,
};
