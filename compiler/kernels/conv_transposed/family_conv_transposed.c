/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution over one to three spatial axes; one axis is a plane of one row. On row-major tensors extents
 * may be dims.
 */
#include "ir/family.h"
#include "kernels/conv/convolution.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "layout/row_tiles.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"

typedef struct TransposedSchedule {
  Schedule base;
  Convolution conv;
  int k_vectors, columns;
} TransposedSchedule;

/* As in the template. */
enum { MAX_WINDOW_W = 16, MAX_STRIDE_W = 4, MAX_COLUMNS = 28 };

/* The node as a Convolution with weights [groups * channels][kernels][R][S], whose pads crop the output. */
static Convolution transposed_of(Graph *graph, const Node *node) {
  Convolution conv = convolution_tensors(graph, node);
  conv.channels = dim_value(conv.weights->shape[0]) / conv.groups;
  conv.kernels = dim_value(conv.weights->shape[1]);
  return conv;
}

/* Multiply-adds at the dims' optimum: the whole window for every input. */
static double transposed_macs(const Convolution *conv) {
  double inputs = (double)dim_optimum(conv->x->shape[0]) * (double)dim_optimum(conv->d.in) *
                  (double)dim_optimum(conv->h.in) * (double)dim_optimum(conv->w.in) *
                  (double)(conv->groups * conv->channels);
  return inputs * (double)(conv->kernels * conv->d.kernel * conv->h.kernel * conv->w.kernel);
}

/* ---- blocked tensors: choice ---- */

static int64_t vectors_of(const Graph *graph, const Convolution *conv) {
  return ceil_div(conv->kernels, graph->config->target->lanes);
}

static void give_cost(Call *call, const Convolution *conv, const Value *weights) {
  int64_t window = conv->d.kernel * conv->h.kernel * conv->w.kernel;
  call_flops_of(call, 2 * (double)(conv->kernels * window), conv->x);
  call_bytes_of(call, 4, conv->x);
  call_bytes_of(call, 4, conv->y);
  call_bytes_of(call, 4, weights);
}

/* The tiles of a phase's pixels, the same for all phases, at the dims' optimum. Tiles of a width that only the run
 * knows have code for any edge. */
static RowTiles phase_tiles(const Convolution *conv, int64_t most) {
  const ConvAxis *w = &conv->w;
  int64_t pad = dim_value(w->pad_begin), behind = (w->kernel - 1) * w->dilation - pad;
  int64_t first = behind > 0 ? ceil_div(behind, w->stride) : 0;
  int64_t end = dim_optimum(w->in) - (w->stride - 1 + pad) / w->stride;
  int64_t pixels = ceil_div(dim_optimum(w->out), w->stride);
  RowTiles tiles = row_tiles_of(pixels, most < MAX_COLUMNS ? most : MAX_COLUMNS, 1, 1, end - first, first);
  if (!axis_is_known(w)) tiles.variants = 1;
  return tiles;
}

/* Registers hold the sums, a weight for each vector of output channels, and an input. If a phase is so short that two
 * vectors leave registers unused, more vectors save reading the input again. */
static int choose_vectors(const Graph *graph, const Convolution *conv) {
  int64_t vectors = vectors_of(graph, conv), pixels = ceil_div(dim_upper(conv->w.out), conv->w.stride);
  for (int k = 4; k > 2; k--)
    if (vectors % k == 0 && k * (pixels + 1) < graph->config->target->vector_registers) return k;
  return vectors > 1 ? 2 : 1;
}

static RowTiles choose_tiles(const Graph *graph, const Convolution *conv) {
  int k_vectors = choose_vectors(graph, conv);
  return phase_tiles(conv, (graph->config->target->vector_registers - 1) / k_vectors - 1);
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  Convolution conv = transposed_of(graph, node);
  if (!value_is_constant(conv.weights) || conv.w.kernel > MAX_WINDOW_W || conv.w.stride > MAX_STRIDE_W) return 0;
  if (!dim_is_const(conv.h.pad_begin) || !dim_is_const(conv.w.pad_begin)) return 0;
  if (conv.groups > 1 && conv.kernels % graph->config->target->lanes) return 0;
  return choose_tiles(graph, &conv).variants <= ROW_TILE_VARIANTS ? LAYOUT_SET_BLOCKED : 0;
}

static void schedule(Graph *graph, Node *node) {
  if (!is_blocked(node)) return;
  TransposedSchedule *schedule = ARENA_NEW(graph->arena, TransposedSchedule);
  Convolution conv = transposed_of(graph, node);
  schedule->conv = conv;
  schedule->k_vectors = choose_vectors(graph, &conv);
  schedule->columns = choose_tiles(graph, &conv).columns;
  Text text = text_new(graph->arena);
  text_add(&text, "transposed_%lldx%llds%lld_", (long long)conv.h.kernel, (long long)conv.w.kernel,
           (long long)conv.w.stride);
  plane_text(&text, conv.h.in, conv.w.in);
  text_add(&text, "c%lldo%lldg%lld_oc%dpx%d", (long long)conv.channels, (long long)conv.kernels, (long long)conv.groups,
           schedule->k_vectors, schedule->columns);
  schedule->base.text = text.data;
  node->schedule = &schedule->base;
}

static const TransposedSchedule *schedule_of(const Node *node) { return (const TransposedSchedule *)node->schedule; }

/* ---- blocked tensors: weights ---- */

/* One group, [C][K][R S] -> [block of k_vectors vectors][R][C][S][channel of the block]; packed is zero before. */
static void pack_group(const TransposedSchedule *schedule, int64_t width, const float *weights, float *packed) {
  const Convolution *conv = &schedule->conv;
  int64_t C = conv->channels, R = conv->h.kernel, S = conv->w.kernel;
  for (int64_t c = 0; c < C; c++)
    for (int64_t k = 0; k < conv->kernels; k++)
      for (int64_t r = 0; r < R; r++)
        for (int64_t s = 0; s < S; s++)
          packed[(((k / width * R + r) * C + c) * S + s) * width + k % width] =
              weights[((c * conv->kernels + k) * R + r) * S + s];
}

static void pack(Graph *graph, Node *node) {
  if (!is_blocked(node)) return;
  const TransposedSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->conv;
  int64_t width = (int64_t)graph->config->target->lanes * schedule->k_vectors, blocks = ceil_div(conv->kernels, width);
  int64_t points = conv->channels * conv->h.kernel * conv->w.kernel, count = conv->groups * blocks * width * points;
  const float *weights = conv->weights->data;
  float *packed = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t group = 0; group < conv->groups; group++)
    pack_group(schedule, width, weights + group * conv->kernels * points, packed + group * blocks * width * points);
  graph_pack_floats(graph, node, conv->weights->name, count, packed);
}

/* ---- blocked tensors: kernel ---- */

static KernelSpec *blocked_spec(Program *program, const Node *node) {
  const TransposedSchedule *schedule = schedule_of(node);
  const ConvAxis *h = &schedule->conv.h, *w = &schedule->conv.w;
  KernelSpec *spec = kernel_spec(program, "conv_transposed_blocked");
  kernel_window(spec, 2, w, h, NULL);
  kernel_plane(spec, h, w);
  kernel_knob(spec, "K_VECTORS", schedule->k_vectors);
  kernel_knob(spec, "COLUMNS", schedule->columns);
  if (!axis_is_known(w)) kernel_knob(spec, "ANY_WIDTH", 1);
  kernel_knob(spec, "BIAS", schedule->conv.bias != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

static void lower_blocked(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const Convolution *conv = &schedule_of(node)->conv;
  Call *call = kernel_call(program, node, blocked_spec(program, node));
  operand_value(call, "x", conv->x, READ);
  operand_value(call, "w", node->packed[0], READ);
  operand_value(call, "bias", conv->bias, READ);
  operand_value(call, "y", conv->y, WRITE);
  operand_dim(call, "n", conv->x->shape[0]);
  operand_integer(call, "groups", conv->groups);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_extent(call, "x_image", blocked_of(graph, conv->x).image);
  operand_extent(call, "y_image", blocked_of(graph, conv->y).image);
  operands_plane(call, &conv->h, &conv->w);
  give_cost(call, conv, node->packed[0]);
}

/* ---- row-major tensors ---- */

static KernelSpec *plain_spec(Program *program, const Node *node, const Convolution *conv) {
  KernelSpec *spec = kernel_spec(program, "conv_transposed");
  kernel_window(spec, 3, &conv->w, &conv->h, &conv->d);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

static void lower_plain(Program *program, const Node *node) {
  Convolution conv = transposed_of(program->graph, node);
  Call *call = kernel_call(program, node, plain_spec(program, node, &conv));
  operand_value(call, "x", conv.x, READ);
  operand_value(call, "w", conv.weights, READ);
  operand_value(call, "bias", conv.bias, READ);
  operand_value(call, "y", conv.y, WRITE);
  operand_dim(call, "n", conv.x->shape[0]);
  operand_integer(call, "groups", conv.groups);
  operand_integer(call, "channels", conv.channels);
  operand_integer(call, "kernels", conv.kernels);
  operand_dim(call, "in_d", conv.d.in);
  operand_dim(call, "in_h", conv.h.in);
  operand_dim(call, "in_w", conv.w.in);
  operand_dim(call, "out_d", conv.d.out);
  operand_dim(call, "out_h", conv.h.out);
  operand_dim(call, "out_w", conv.w.out);
  operand_dim(call, "front", conv.d.pad_begin);
  operand_dim(call, "top", conv.h.pad_begin);
  operand_dim(call, "left", conv.w.pad_begin);
  give_cost(call, &conv, conv.weights);
}

/* ---- both ---- */

/* Share of the machine's peak, measured on two cores with AVX-512: of the blocked kernel, and of the row-major one,
 * which uses no vectors. */
static const double BLOCKED_SHARE = 0.65, PLAIN_SHARE = 0.04;

static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = transposed_of(graph, node);
  double flops = 2 * transposed_macs(&conv),
         peak = 1e9 * graph->config->machine->gflops * graph->config->machine->cores;
  if (layout.writes == LAYOUT_ROW_MAJOR) return flops / (PLAIN_SHARE * peak);
  int64_t lanes = graph->config->target->lanes, vectors = ceil_div(conv.kernels, lanes);
  return flops * (double)(vectors * lanes) / (double)conv.kernels / (BLOCKED_SHARE * peak);
}

static void lower_node(Program *program, Node *node) {
  if (is_blocked(node))
    lower_blocked(program, node);
  else
    lower_plain(program, node);
}

const KernelFamily family_conv_transposed = {
    .layouts = layouts,
    .runs_any_plane = true,
    .seeks_blocked = true,
    .seconds = seconds,
    .schedule = schedule,
    .pack = pack,
    .takes_epilogue = elementwise_follows,
    .lower = lower_node,
};
