/* SPDX-License-Identifier: MIT */
/*
 * The plan of a direct convolution (kernels/conv/direct_plan.h) is that of all phases: tiles are at the same place of
 * each, and a place is one of the plan's tiles.
 */
#include "kernels/conv_transposed/blocked.h"

#include "kernels/conv/direct_plan.h"
#include "kernels/conv_transposed/phases.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "layout/layout.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/diagnostics.h"
#include "support/numbers.h"

typedef struct TransposedSchedule {
  Schedule base;
  Convolution conv;
  PhaseAxis h, w;
  DirectWeights weights;
  DirectLayer layer;
  DirectPlan plan;
} TransposedSchedule;

static const TransposedSchedule *schedule_of(const Node *node) { return (const TransposedSchedule *)node->schedule; }

Convolution transposed_of(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = convolution_tensors(graph, node);
  conv.channels = dim_value(conv.weights->shape[0]) / conv.groups;
  conv.kernels = dim_value(conv.weights->shape[1]);
  conv.x_block = layout_block(graph, conv.x, layout.reads);
  conv.y_block = layout_block(graph, conv.y, layout.writes);
  return conv;
}

/* ---- choice ---- */

/* As the template's knobs are bounded. */
static bool fits_crop(const Graph *graph, const ConvAxis *axis) {
  enum { MAX_PAD = 1 << 20 };
  return axis_is_padded(graph, axis) && dim_upper(axis->pad_begin) <= MAX_PAD;
}

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  return value_is_constant(conv->weights) && fits_crop(graph, &conv->h) && fits_crop(graph, &conv->w);
}

static bool is_depthwise(const Convolution *conv) {
  return conv->groups > 1 && conv->channels == 1 && conv->kernels == 1;
}

LayoutSet transposed_layouts(const Graph *graph, const Convolution *conv) {
  if (!runs_blocked(graph, conv)) return 0;
  if (is_depthwise(conv)) return LAYOUT_SET_BLOCKED;
  LayoutSet set = LAYOUT_SET_BLOCKED | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_BLOCKED) | LAYOUT_SET_WIDE;
  return conv->groups == 1 ? set : set & ~LAYOUT_SET_NARROW;
}

static PhaseAxis phases_of(const ConvAxis *axis) { return phase_axis_of(axis->kernel, axis->stride, axis->dilation); }

/* The taps inside the input, of all phases together, on average over the outputs of a phase. The convolution from the
 * output to the input has the same pairs of points. */
static double taps_inside(const ConvAxis *axis) {
  ConvAxis from_output = *axis;
  from_output.in = axis->out;
  from_output.out = axis->in;
  double pairs = convolution_taps_inside(&from_output) * (double)dim_optimum(axis->in);
  return pairs / (double)ceil_div(dim_optimum(axis->out), axis->stride);
}

/* Of depthwise ones an output channel has one weight a point: as if all read one channel. */
static DirectWeights weights_of(const Graph *graph, const Convolution *conv, int oc_vectors) {
  bool depthwise = is_depthwise(conv);
  return (DirectWeights){.lanes = graph->config->target->lanes,
                         .in_block = depthwise ? 1 : conv->x_block,
                         .oc_vectors = oc_vectors,
                         .window = conv->h.kernel * conv->w.kernel,
                         .kernels = conv->groups * conv->kernels,
                         .group_channels = conv->channels,
                         .group_kernels = depthwise ? conv->groups : conv->kernels};
}

/* Each phase's plane, with the taps of all. */
static DirectLayer layer_of(const Graph *graph, const Convolution *conv) {
  int64_t lanes = graph->config->target->lanes, images = dim_optimum(conv->x->shape[0]);
  DirectWeights weights = weights_of(graph, conv, 1);
  DirectLayer layer = {.images = max_int(images, 1),
                       .step = 1,
                       .in_block = weights.in_block,
                       .lanes = lanes,
                       .depth = min_int(direct_span(&weights) * weights.in_block, conv->groups * conv->channels),
                       .span = direct_span(&weights),
                       .oc_vectors = ceil_div(weights.kernels, lanes),
                       .in_h = dim_optimum(conv->h.in),
                       .in_w = dim_optimum(conv->w.in),
                       .out_h = ceil_div(dim_optimum(conv->h.out), conv->h.stride),
                       .out_w = ceil_div(dim_optimum(conv->w.out), conv->w.stride),
                       .window_h = conv->h.kernel,
                       .window_w = conv->w.kernel,
                       .stride_h = 1,
                       .stride_w = 1,
                       .up_h = conv->h.stride,
                       .up_w = conv->w.stride,
                       .taps = taps_inside(&conv->h) * taps_inside(&conv->w)};
  if (conv->groups > 1) layer.group_vectors = conv->kernels % lanes == 0 ? conv->kernels / lanes : 1;
  return layer;
}

/* The kernel has one pass, and so have the usual plans. */
static void keep_best(void *kept, const DirectPlan *plan, bool usual) {
  DirectPlan *best = kept;
  if (usual && (best->columns == 0 || plan->seconds < best->seconds)) *best = *plan;
}

static DirectPlan best_plan(const Graph *graph, const DirectLayer *layer) {
  DirectPlan best = {.columns = 0};
  direct_each_plan(graph->config->target, graph->config->machine, layer, keep_best, &best);
  if (best.columns == 0) bug("no plan of a transposed convolution");
  return best;
}

double transposed_seconds(const Graph *graph, const Convolution *conv) {
  DirectLayer layer = layer_of(graph, conv);
  return best_plan(graph, &layer).seconds;
}

/* "transposed_oc2px6u8", then chunks, then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const TransposedSchedule *schedule) {
  const Convolution *conv = &schedule->conv;
  Text text = text_new(arena);
  text_add(&text, "transposed_");
  direct_plan_text(&text, &schedule->plan);
  layer_text(&text, conv, conv->h.in, conv->w.in);
  return text.data;
}

void transposed_schedule(Graph *graph, Node *node) {
  TransposedSchedule *schedule = ARENA_NEW(graph->arena, TransposedSchedule);
  schedule->conv = transposed_of(graph, node, node->layout);
  schedule->h = phases_of(&schedule->conv.h);
  schedule->w = phases_of(&schedule->conv.w);
  schedule->layer = layer_of(graph, &schedule->conv);
  schedule->plan = best_plan(graph, &schedule->layer);
  schedule->weights = weights_of(graph, &schedule->conv, schedule->plan.oc_vectors);
  schedule->base.text = text_of(graph->arena, schedule);
  node->schedule = &schedule->base;
}

void transposed_pack(Graph *graph, Node *node) {
  const TransposedSchedule *schedule = schedule_of(node);
  const DirectWeights *weights = &schedule->weights;
  const Value *source = schedule->conv.weights;
  int64_t floats = direct_floats(weights);
  float *packed = ARENA_ARRAY(graph->arena, float, floats);
  float *taps = ARENA_ARRAY(graph->arena, float, weights->kernels * weights->group_channels * weights->window);
  phases_pack(weights, &schedule->h, &schedule->w, source->data, taps, packed);
  graph_pack_floats(graph, node, source->name, floats, packed);
}

/* ---- the call ---- */

static void phase_knobs(KernelSpec *spec, const TransposedSchedule *schedule) {
  const PhaseAxis *h = &schedule->h, *w = &schedule->w;
  kernel_knob(spec, "WINDOW_H", h->window);
  kernel_knob(spec, "WINDOW_W", w->window);
  kernel_knob(spec, "UP_H", h->up);
  kernel_knob(spec, "UP_W", w->up);
  kernel_knob(spec, "PERIOD_H", h->period);
  kernel_knob(spec, "PERIOD_W", w->period);
  kernel_knob(spec, "DILATION_H", h->dilation);
  kernel_knob(spec, "DILATION_W", w->dilation);
  kernel_knob(spec, "INVERSE_H", h->inverse);
  kernel_knob(spec, "INVERSE_W", w->inverse);
}

static KernelSpec *spec_of(Program *program, const Node *node) {
  const TransposedSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->conv;
  const DirectPlan *plan = &schedule->plan;
  const Target *target = program->graph->config->target;
  KernelSpec *spec = kernel_spec(program, "conv_transposed_blocked");
  phase_knobs(spec, schedule);
  kernel_plane(spec, &conv->h, &conv->w);
  kernel_knob(spec, "IN_BLOCK", conv->x_block);
  kernel_knob(spec, "CHANNEL_TAIL", is_depthwise(conv) ? 0 : conv->groups * conv->channels % conv->x_block);
  kernel_knob(spec, "OUT_VECTORS", conv->y_block / target->lanes);
  kernel_knob(spec, "OC_VECTORS", plan->oc_vectors);
  kernel_knob(spec, "OC_TAIL", schedule->layer.oc_vectors % plan->oc_vectors);
  kernel_knob(spec, "COLUMNS", plan->columns);
  if (!axis_is_known(&conv->w)) kernel_knob(spec, "ANY_WIDTH", 1);
  if (target->lane_operands && !is_depthwise(conv)) kernel_knob(spec, "BY_LANES", 1);
  kernel_knob(spec, "UNROLL", plan->unroll);
  kernel_knob(spec, "GROUPED", conv->groups > 1);
  kernel_knob(spec, "DEPTHWISE", is_depthwise(conv));
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

/* Tiles whose input and output, for an oc group, fill half of L2. */
static int64_t turn_of(const Machine *machine, const DirectLayer *layer, const DirectPlan *plan) {
  int64_t input = layer->depth, output = layer->up_h * layer->up_w * plan->oc_vectors * layer->lanes;
  return max_int(1, machine->l2_bytes / 2 / ((input + output) * plan->columns * (int64_t)sizeof(float)));
}

/* The plan's number, or all. */
static int64_t group_chunk_of(const TransposedSchedule *schedule) {
  int64_t all = direct_oc_groups(&schedule->weights), chosen = schedule->plan.group_chunk;
  return chosen && chosen < all ? chosen : all;
}

void transposed_cost(Call *call, const Convolution *conv, const Value *weights) {
  int64_t window = conv->d.kernel * conv->h.kernel * conv->w.kernel;
  call_flops_of(call, 2 * (double)(conv->kernels * window), conv->x);
  call_bytes_of(call, 4, conv->x);
  call_bytes_of(call, 4, conv->y);
  call_bytes_of(call, 4, weights);
}

/* The outputs of the first phase, which has the most. */
static const Dim *phase_extent(DimTable *dims, const ConvAxis *axis) {
  return dim_ceil_div(dims, axis->out, dim_const(dims, axis->stride));
}

void transposed_lower(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const TransposedSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->conv;
  const Dim *rows = phase_extent(graph->dims, &conv->h), *columns = phase_extent(graph->dims, &conv->w);
  Call *call = kernel_call(program, node, spec_of(program, node));
  operand_value(call, "x", conv->x, READ);
  operand_value(call, "w", node->packed[0], READ);
  operand_value(call, "bias", conv->bias, READ);
  operand_value(call, "y", conv->y, WRITE);
  operand_dim(call, "n", conv->x->shape[0]);
  operand_extent(call, "x_image", blocked_of(graph, conv->x).image);
  operand_extent(call, "y_image", blocked_of(graph, conv->y).image);
  operand_integer(call, "channels", conv->groups * conv->channels);
  operand_integer(call, "kernels", conv->groups * conv->kernels);
  operand_integer(call, "group_channels", conv->channels);
  operand_integer(call, "group_kernels", conv->kernels);
  operand_integer(call, "span", direct_span(&schedule->weights));
  operand_integer(call, "group_chunk", group_chunk_of(schedule));
  operand_extent(call, "tile_chunk", direct_chunk_dim(graph, &schedule->layer, &schedule->plan, rows, columns));
  operand_integer(call, "turn", turn_of(graph->config->machine, &schedule->layer, &schedule->plan));
  operands_plane(call, &conv->h, &conv->w);
  transposed_cost(call, conv, node->packed[0]);
}
