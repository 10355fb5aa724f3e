/* SPDX-License-Identifier: MIT */
/*
 * Convolution of plain tensors, whose extents may be known only at run time. Where the window is padded or strides
 * over columns, conv_pad first makes a copy of the input in which conv_plain finds its columns side by side.
 */
#include "convolution/convolution.h"
#include "convolution/plain_cost.h"

#include "machine.h"

typedef struct PlainSchedule {
  ConvSchedule base;
  ConvAxis d, h, w; /* a volume under a window of one point without padding or stride is one row */
  int k_block, w_vectors;
  bool direct;                        /* conv_plain reads the input itself */
  const Dim *planes, *rows, *columns; /* padded: planes, rows of a plane, and columns of each phase of a row */
} PlainSchedule;

enum { KNOB_K, KNOB_W };
static const char *const knob_names[] = {[KNOB_K] = "k", [KNOB_W] = "w", NULL};
enum { MOST_K_BLOCK = 8, MOST_W_VECTORS = 4 }; /* of the template */

static const PlainSchedule *schedule_of(const Node *node) { return (const PlainSchedule *)node->schedule; }

/* Of a kernel: its weights. */
static int64_t points_of(const PlainSchedule *schedule) {
  return schedule->base.conv.channels * schedule->d.kernel * schedule->h.kernel * schedule->w.kernel;
}

static bool is_zero(const Dim *dim) { return dim_is_const(dim) && dim_value(dim) == 0; }
static bool unpadded(const ConvAxis *axis) { return is_zero(axis->pad_begin) && is_zero(axis->pad_end); }
static bool pointwise(const ConvAxis *axis) { return axis->kernel == 1 && axis->stride == 1 && unpadded(axis); }

static void flatten_pointwise(DimTable *dims, PlainSchedule *schedule) {
  if (!pointwise(&schedule->d) || !pointwise(&schedule->h) || !pointwise(&schedule->w)) return;
  const Dim *one = dim_const(dims, 1), *zero = dim_const(dims, 0);
  schedule->w.in = schedule->w.out = dim_mul(dims, schedule->d.in, dim_mul(dims, schedule->h.in, schedule->w.in));
  schedule->d = schedule->h = (ConvAxis){1, 1, 1, one, one, zero, zero};
}

static int least(int a, int b) { return a < b ? a : b; }

/* Output columns that the vectors of a row's tiles cover, those past its end included. */
static int64_t covered(int64_t columns, int64_t tile) { return (columns + tile - 1) / tile * tile; }

/* As many vectors of columns as waste none, up to three. */
static int vectors_of(const Target *target, int64_t columns) {
  int chosen = 1;
  for (int vectors = 2; vectors <= 3; vectors++)
    if (covered(columns, vectors * target->lanes) <= covered(columns, chosen * target->lanes)) chosen = vectors;
  return chosen;
}

/* As many channels as the registers hold besides the inputs and a weight, cut so that the blocks of a group are alike.
 */
static int k_block_of(const Target *target, const Convolution *conv, int w_vectors) {
  int most = least((target->vector_registers - 1) / w_vectors - 1, MOST_K_BLOCK);
  int64_t blocks = (conv->kernels + most - 1) / most;
  return (int)((conv->kernels + blocks - 1) / blocks);
}

/* A phase of a padded row has every column that a tile may load, past the end of the output's row too. */
static void size_padded_volume(Graph *graph, PlainSchedule *schedule) {
  DimTable *dims = graph->dims;
  const ConvAxis *d = &schedule->d, *h = &schedule->h, *w = &schedule->w;
  int64_t tile = (int64_t)schedule->w_vectors * graph->target->lanes;
  schedule->planes = dim_add(dims, d->in, dim_add(dims, d->pad_begin, d->pad_end));
  schedule->rows = dim_add(dims, h->in, dim_add(dims, h->pad_begin, h->pad_end));
  const Dim *tiles = dim_div(dims, dim_add(dims, w->out, dim_const(dims, tile - 1)), dim_const(dims, tile));
  schedule->columns = dim_add(dims, dim_mul(dims, tiles, dim_const(dims, tile)),
                              dim_const(dims, (w->kernel - 1) * w->dilation / w->stride));
}

static PlainSchedule *new_schedule(Graph *graph, const Convolution *conv) {
  PlainSchedule *schedule = ARENA_NEW(graph->arena, PlainSchedule);
  schedule->base.conv = *conv;
  schedule->d = conv->d;
  schedule->h = conv->h;
  schedule->w = conv->w;
  flatten_pointwise(graph->dims, schedule);
  return schedule;
}

static PlainSchedule *schedule_with(Graph *graph, const Convolution *conv, const ConvKnobs *knobs) {
  PlainSchedule *schedule = new_schedule(graph, conv);
  schedule->k_block = knobs->value[KNOB_K];
  schedule->w_vectors = knobs->value[KNOB_W];
  schedule->direct =
      schedule->w.stride == 1 && unpadded(&schedule->d) && unpadded(&schedule->h) && unpadded(&schedule->w);
  size_padded_volume(graph, schedule);
  return schedule;
}

/* At the dims' optimum. */
static double seconds_of(const Graph *graph, const PlainSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  int64_t images = dim_optimum(conv->x->shape[0]);
  PlainLayer layer = {.images = images > 0 ? images : 1,
                      .groups = conv->groups,
                      .channels = conv->channels,
                      .kernels = conv->kernels,
                      .window = schedule->d.kernel * schedule->h.kernel * schedule->w.kernel,
                      .in_plane =
                          dim_optimum(schedule->d.in) * dim_optimum(schedule->h.in) * dim_optimum(schedule->w.in),
                      .out_rows = dim_optimum(schedule->d.out) * dim_optimum(schedule->h.out),
                      .out_w = dim_optimum(schedule->w.out),
                      .k_block = schedule->k_block,
                      .w_vectors = schedule->w_vectors,
                      .residual = conv->residual != NULL};
  int64_t row = dim_optimum(schedule->columns) * schedule->w.stride;
  if (!schedule->direct) layer.padded_plane = dim_optimum(schedule->planes) * dim_optimum(schedule->rows) * row;
  return plain_seconds(graph->target, graph->machine, &layer);
}

/* The other numbers of vectors after the one that wastes least. */
static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  int best = vectors_of(graph->target, dim_optimum(new_schedule(graph, conv)->w.out));
  for (int i = 0; i < 3; i++) {
    int vectors = i == 0 ? best : i < best ? i : i + 1;
    ConvKnobs knobs = {{k_block_of(graph->target, conv, vectors), vectors}};
    candidates_add(candidates, &knobs, seconds_of(graph, schedule_with(graph, conv, &knobs)), i == 0);
  }
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, ConvKnobs *knobs) {
  (void)graph, (void)node;
  int most = (int)(conv->kernels < MOST_K_BLOCK ? conv->kernels : MOST_K_BLOCK);
  knobs->value[KNOB_K] = knobs->value[KNOB_K] < 1 ? 1 : least(knobs->value[KNOB_K], most);
  knobs->value[KNOB_W] = knobs->value[KNOB_W] < 1 ? 1 : least(knobs->value[KNOB_W], MOST_W_VECTORS);
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const ConvKnobs *knobs) {
  (void)node;
  PlainSchedule *schedule = schedule_with(graph, conv, knobs);
  schedule->base.reads_residual_last = true;
  schedule->base.candidate.seconds = seconds_of(graph, schedule);
  schedule->base.base.text = arena_format(
      graph->arena, "plain_%lldx%llds%lldc%lldo%lldg%lld_k%dw%d%s", (long long)schedule->h.kernel,
      (long long)schedule->w.kernel, (long long)schedule->w.stride, (long long)conv->channels, (long long)conv->kernels,
      (long long)conv->groups, schedule->k_block, schedule->w_vectors, schedule->direct ? "" : "_padded");
  return &schedule->base;
}

static void scratch(Graph *graph, Node *node) {
  const PlainSchedule *schedule = schedule_of(node);
  if (schedule->direct) return;
  DimTable *dims = graph->dims;
  const Dim *bytes = dim_mul(dims, schedule->columns, dim_const(dims, schedule->w.stride * (int64_t)sizeof(float)));
  bytes = dim_mul(dims, dim_mul(dims, bytes, dim_mul(dims, schedule->planes, schedule->rows)),
                  value_count_dim(graph, node->inputs[0], 0, 2));
  graph_scratch(graph, node, "padded input", bytes);
}

/* The weights of each block of channels of a group, [K][C Q R S] -> [C Q R S][channel of the block]. */
static void pack_block(float *packed, const float *weights, int64_t points, int64_t rows) {
  for (int64_t point = 0; point < points; point++)
    for (int64_t k = 0; k < rows; k++) packed[point * rows + k] = weights[k * points + point];
}

static void pack(Graph *graph, Node *node) {
  const PlainSchedule *schedule = schedule_of(node);
  const Value *w = node->inputs[1];
  if (!w->data) return;
  const float *weights = w->data;
  int64_t points = points_of(schedule), count = value_count(w);
  float *packed = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t group = 0; group < schedule->base.conv.groups; group++)
    for (int64_t k = 0; k < schedule->base.conv.kernels; k += schedule->k_block) {
      int64_t left = schedule->base.conv.kernels - k, first = (group * schedule->base.conv.kernels + k) * points;
      pack_block(packed + first, weights + first, points, left < schedule->k_block ? left : schedule->k_block);
    }
  node->packed = ARENA_ARRAY(graph->arena, Value *, 1);
  node->n_packed = 1;
  node->packed[0] = graph_constant(graph, w->name, RNNCC_F32, 1, &count, packed);
}

static void emit_pad_call(Emitter *emitter, const Node *node) {
  Graph *graph = emitter_graph(emitter);
  const PlainSchedule *schedule = schedule_of(node);
  const Value *x = node->inputs[0];
  KernelSpec *spec = kernel_spec(emitter, "conv_pad");
  kernel_knob(spec, "STRIDE_W", schedule->w.stride);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", x);
  call_argument(call, "out", "(float *)(void *)t%d", node->scratch->id);
  call_dim(call, "volumes", value_count_dim(graph, x, 0, 2));
  call_dim(call, "depth", schedule->d.in);
  call_dim(call, "height", schedule->h.in);
  call_dim(call, "width", schedule->w.in);
  call_dim(call, "planes", schedule->planes);
  call_dim(call, "rows", schedule->rows);
  call_dim(call, "columns", schedule->columns);
  call_dim(call, "front", schedule->d.pad_begin);
  call_dim(call, "top", schedule->h.pad_begin);
  call_dim(call, "left", schedule->w.pad_begin);
  call_cost(call, 0,
            4.0 * (double)dim_optimum(value_count_dim(graph, x, 0, x->rank)) +
                (double)dim_optimum(node->scratch->shape[0]));
}

/* Strides of the input that conv_plain reads: the dense one, or conv_pad's. */
static void emit_input_arguments(Emitter *emitter, KernelCall *call, const Node *node) {
  DimTable *dims = emitter_graph(emitter)->dims;
  const PlainSchedule *schedule = schedule_of(node);
  const Dim *row =
      schedule->direct ? schedule->w.in : dim_mul(dims, schedule->columns, dim_const(dims, schedule->w.stride));
  if (schedule->direct)
    call_value(call, "x", node->inputs[0]);
  else
    call_argument(call, "x", "(const float *)(const void *)t%d", node->scratch->id);
  const Dim *plane = dim_mul(dims, row, schedule->direct ? schedule->h.in : schedule->rows);
  call_dim(call, "x_channel", dim_mul(dims, plane, schedule->direct ? schedule->d.in : schedule->planes));
  call_dim(call, "x_plane", plane);
  call_dim(call, "x_row", row);
  call_dim(call, "x_phase", schedule->columns);
}

static KernelSpec *conv_spec(Emitter *emitter, const Node *node, bool bias) {
  const PlainSchedule *schedule = schedule_of(node);
  KernelSpec *spec = kernel_spec(emitter, "conv_plain");
  kernel_knob(spec, "WINDOW_D", schedule->d.kernel);
  kernel_knob(spec, "WINDOW_H", schedule->h.kernel);
  kernel_knob(spec, "WINDOW_W", schedule->w.kernel);
  kernel_knob(spec, "STRIDE_D", schedule->d.stride);
  kernel_knob(spec, "STRIDE_H", schedule->h.stride);
  kernel_knob(spec, "STRIDE_W", schedule->w.stride);
  kernel_knob(spec, "DILATION_D", schedule->d.dilation);
  kernel_knob(spec, "DILATION_H", schedule->h.dilation);
  kernel_knob(spec, "DILATION_W", schedule->w.dilation);
  kernel_knob(spec, "K_BLOCK", schedule->k_block);
  kernel_knob(spec, "K_TAIL", schedule->base.conv.kernels % schedule->k_block);
  kernel_knob(spec, "W_VECTORS", schedule->w_vectors);
  kernel_knob(spec, "PACKED", node->n_packed);
  kernel_knob(spec, "DIRECT", schedule->direct);
  kernel_knob(spec, "BIAS", bias);
  kernel_knob(spec, "RESIDUAL", schedule->base.conv.residual != NULL);
  const char *body = convolution_epilogue(emitter_arena(emitter), node);
  if (body) kernel_hook(spec, "epilogue", body);
  return spec;
}

static void emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const PlainSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const Value *x = conv->x, *y = conv->y, *bias = conv->bias;
  if (!schedule->direct) emit_pad_call(emitter, node);
  KernelCall *call = kernel_call(emitter, node, conv_spec(emitter, node, bias != NULL));
  emit_input_arguments(emitter, call, node);
  call_value(call, "w", node->n_packed ? node->packed[0] : node->inputs[1]);
  call_value(call, "bias", bias);
  call_value(call, "residual", schedule->base.conv.residual);
  call_value(call, "y", y);
  call_dim(call, "n", x->shape[0]);
  call_integer(call, "groups", schedule->base.conv.groups);
  call_integer(call, "channels", schedule->base.conv.channels);
  call_integer(call, "kernels", schedule->base.conv.kernels);
  call_dim(call, "out_d", schedule->d.out);
  call_dim(call, "out_h", schedule->h.out);
  call_dim(call, "out_w", schedule->w.out);
  double points = (double)points_of(schedule);
  double outputs = (double)dim_optimum(value_count_dim(graph, y, 0, y->rank));
  double inputs = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  call_cost(call, 2 * points * outputs, 4 * (inputs + outputs + points * (double)dim_value(y->shape[1])));
}

const ConvAlgorithm convolution_plain = {.name = "plain",
                                         .knobs = knob_names,
                                         .list = list,
                                         .fit = fit,
                                         .make = make,
                                         .scratch = scratch,
                                         .pack = pack,
                                         .emit = emit};
