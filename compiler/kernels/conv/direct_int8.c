/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution of quantised tensors in blocks: templates/conv_direct_int8.c. Its loops are those of the f32
 * kernel, a step of STEP_CHANNELS bytes in the place of a channel of four bytes, so that the plans and their costs are
 * the same. It runs any convolution that integer_conv_fits(), those with results in floats alone.
 *
 * tiles_int8 is the same kernel with products of two columns by two steps, for targets that have them. Its knobs are
 * the same, too.
 */
#include "kernels/conv/direct_plan.h"
#include "kernels/conv/direct_weights.h"

#include "ir/tensor.h"
#include "kernels/conv/convolution.h"
#include "kernels/conv/requantise.h"
#include "kernels/conv/to_floats.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/integer_conv.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef struct Int8Schedule {
  ConvSchedule base;
  ConvAxis h, w; /* a plane under a 1x1 window without padding or stride is one row */
  DirectWeights weights;
  DirectLayer layer; /* its channels are steps */
  DirectPlan plan;
} Int8Schedule;

static const Int8Schedule *schedule_of(const Node *node) { return (const Int8Schedule *)node->schedule; }

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  (void)graph, (void)conv;
  return true;
}

/* A tile of sums is of two vectors of as many bytes as a block of x. */
static bool runs_by_two(const Graph *graph, const Convolution *conv) {
  return graph->config->target->has_tiles && conv->x_block == STEP_CHANNELS;
}

/* ---- choice ---- */

/* The time of a step's products of bytes without dot products, of a multiply-add's of floats: of each two bytes by one
 * instruction, or of 16 bits. Measured on layers of ResNet-50 with vectors of 256 bits. */
static const double BY_PAIRS = 2.8, WIDENED = 4;

/* Do the weights of each two channels fit DOT_PAIRS of templates/simd/int8.h? */
static bool has_pairs(const Graph *graph, const Node *node) {
  const Target *target = graph->config->target;
  return !target->has_dot && target->byte_pairs && node_int(node, ATTR_group) == 1 && integer_conv_pairs_fit(node);
}

static double step_of(const Graph *graph, const Node *node) {
  if (graph->config->target->has_dot) return 1;
  return has_pairs(graph, node) ? BY_PAIRS : WIDENED;
}

static DirectWeights weights_of(const Graph *graph, const Convolution *conv, int oc_vectors, bool by_two) {
  return (DirectWeights){.lanes = graph->config->target->lanes,
                         .in_block = conv->x_block,
                         .oc_vectors = oc_vectors,
                         .window = conv->h.kernel * conv->w.kernel,
                         .kernels = conv->groups * conv->kernels,
                         .group_channels = conv->channels,
                         .group_kernels = conv->kernels,
                         .by_two = by_two};
}

static DirectLayer layer_of(const Graph *graph, const Int8Schedule *schedule, bool by_two) {
  const Convolution *conv = &schedule->base.conv;
  int64_t lanes = graph->config->target->lanes, images = dim_optimum(conv->x->shape[0]);
  DirectWeights weights = weights_of(graph, conv, 1, by_two);
  int64_t span = direct_span(&weights), channels = min_int(span * conv->x_block, conv->groups * conv->channels);
  int64_t depth = ceil_div(channels, STEP_CHANNELS);
  DirectLayer layer = {.images = images > 0 ? images : 1,
                       .in_block = conv->x_block / STEP_CHANNELS,
                       .lanes = lanes,
                       .depth = by_two ? round_up(depth, 2) : depth,
                       .span = span,
                       .oc_vectors = ceil_div(weights.kernels, lanes),
                       .in_h = dim_optimum(schedule->h.in),
                       .in_w = dim_optimum(schedule->w.in),
                       .out_h = dim_optimum(schedule->h.out),
                       .out_w = dim_optimum(schedule->w.out),
                       .window_h = conv->h.kernel,
                       .window_w = conv->w.kernel,
                       .stride_h = conv->h.stride,
                       .stride_w = conv->w.stride,
                       .taps = (double)(conv->h.kernel * conv->w.kernel),
                       .residual = conv->residual != NULL,
                       .of_bytes = true,
                       .by_two = by_two};
  if (conv->groups > 1) layer.group_vectors = conv->kernels % lanes == 0 ? conv->kernels / lanes : 1;
  return layer;
}

/* The schedule without the plan. */
static Int8Schedule *new_schedule(Graph *graph, const Node *node, const Convolution *conv, bool by_two) {
  Int8Schedule *schedule = ARENA_NEW(graph->arena, Int8Schedule);
  schedule->base.conv = *conv;
  convolution_rows(graph->dims, conv, &schedule->h, &schedule->w);
  schedule->layer = layer_of(graph, schedule, by_two);
  schedule->layer.step = step_of(graph, node);
  return schedule;
}

static Knobs knobs_of(const DirectPlan *plan) {
  return (Knobs){{[KNOB_direct_int8_oc] = plan->oc_vectors,
                  [KNOB_direct_int8_px] = plan->columns,
                  [KNOB_direct_int8_unroll] = plan->unroll,
                  [KNOB_direct_int8_groups] = (int)plan->group_chunk,
                  [KNOB_direct_int8_tiles] = (int)plan->tile_chunk}};
}

static DirectPlan plan_of(const Knobs *knobs) {
  return (DirectPlan){.oc_vectors = knobs->value[KNOB_direct_int8_oc],
                      .columns = knobs->value[KNOB_direct_int8_px],
                      .unroll = knobs->value[KNOB_direct_int8_unroll],
                      .group_chunk = knobs->value[KNOB_direct_int8_groups],
                      .tile_chunk = knobs->value[KNOB_direct_int8_tiles]};
}

/* Sums are never in memory, so there is one pass. */
static void add_plan(void *candidates, const DirectPlan *plan, bool usual) {
  Knobs knobs = knobs_of(plan);
  if (plan->pass == 0) candidates_add(candidates, &knobs, plan->seconds, usual);
}

static void list_plans(Graph *graph, const Int8Schedule *schedule, ConvCandidates *candidates) {
  direct_each_plan(graph->config->target, graph->config->machine, &schedule->layer, add_plan, candidates);
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  list_plans(graph, new_schedule(graph, node, conv, false), candidates);
}

static void list_by_two(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  list_plans(graph, new_schedule(graph, node, conv, true), candidates);
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  DirectPlan plan = plan_of(knobs);
  direct_fit(&new_schedule(graph, node, conv, false)->layer, &plan);
  *knobs = knobs_of(&plan);
}

/* "direct_int8_oc2px14u2", or "tiles_int8_...", then chunks, then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const Int8Schedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  Text text = text_new(arena);
  text_add(&text, "%s_int8_", schedule->layer.by_two ? "tiles" : "direct");
  direct_plan_text(&text, &schedule->plan);
  layer_text(&text, conv, conv->h.out, conv->w.out);
  return text.data;
}

static ConvSchedule *with_plan(Graph *graph, Int8Schedule *schedule, const Knobs *knobs) {
  schedule->plan = plan_of(knobs);
  schedule->weights = weights_of(graph, &schedule->base.conv, schedule->plan.oc_vectors, schedule->layer.by_two);
  schedule->base.seconds =
      direct_seconds(graph->config->target, graph->config->machine, &schedule->layer, &schedule->plan);
  schedule->base.reads_residual_last = true;
  schedule->base.base.text = text_of(graph->arena, schedule);
  return &schedule->base;
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  return with_plan(graph, new_schedule(graph, node, conv, false), knobs);
}

static ConvSchedule *make_by_two(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  return with_plan(graph, new_schedule(graph, node, conv, true), knobs);
}

/* ---- constants ---- */

/* Behind what pack_result() appends. */
enum { PACKED_TAPS = PACKED_FINISH + 1 };

/* May products of x's zero point be other than zero? */
static bool has_point(const Graph *graph, const Node *node) {
  const Value *zero = node_input(node, integer_conv_inputs(node)->x_zero);
  if (zero && !zero->data) return true;
  return (zero ? (int)value_element(zero, 0) : 0) != step_zero(graph, node->inputs[0]);
}

/* The sums of weights over the input's channels, [R * S][kernels in whole vectors]. */
static Value *sums_of_taps(Graph *graph, const Int8Schedule *schedule, const IntegerConv *numbers) {
  int64_t window = schedule->weights.window, channels = round_up(numbers->kernels, graph->config->target->lanes);
  int64_t count = window * channels;
  int32_t *sums = ARENA_ARRAY(graph->arena, int32_t, count);
  for (int64_t i = 0; i < count; i++) sums[i] = 0;
  for (int64_t i = 0; i < numbers->kernels * numbers->depth; i++)
    sums[i % window * channels + i / numbers->depth] += numbers->weights[i];
  return graph_constant(graph, "taps", RNNCC_I32, 1, &count, sums);
}

static void pack(Graph *graph, Node *node) {
  const Int8Schedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t bytes = direct_floats(&schedule->weights);
  int8_t *weights = ARENA_ARRAY(graph->arena, int8_t, bytes);
  direct_pack_bytes(&schedule->weights, numbers.weights, weights);
  graph_pack(graph, node, graph_constant(graph, conv->weights->name, RNNCC_I8, 1, &bytes, weights));
  pack_result(graph, node, &numbers, START_OF_DOTS);
  graph_pack(graph, node, has_point(graph, node) ? sums_of_taps(graph, schedule, &numbers) : NULL);
}

/* ---- the call ---- */

static KernelSpec *direct_int8_spec(const Graph *graph, const Node *node) {
  const Int8Schedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const DirectPlan *plan = &schedule->plan;
  int64_t steps = ceil_div(conv->groups * conv->channels, STEP_CHANNELS);
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_direct_int8");
  kernel_window(spec, 2, &schedule->w, &schedule->h, NULL);
  kernel_plane(spec, &schedule->h, &schedule->w);
  kernel_knob(spec, "IN_BLOCK", conv->x_block);
  kernel_knob(spec, "STEP_TAIL", steps % schedule->layer.in_block);
  kernel_knob(spec, "OC_VECTORS", plan->oc_vectors);
  kernel_knob(spec, "OC_TAIL", schedule->layer.oc_vectors % plan->oc_vectors);
  kernel_knob(spec, "COLUMNS", plan->columns);
  kernel_knob(spec, "UNROLL", plan->unroll);
  kernel_knob(spec, "GROUPED", conv->groups > 1);
  if (schedule->layer.by_two) kernel_knob(spec, "BY_TWO", 1);
  if (!axis_is_known(&schedule->w)) kernel_knob(spec, "ANY_WIDTH", 1);
  kernel_knob(spec, "FORM", has_pairs(graph, node));
  kernel_knob(spec, "POINT", has_point(graph, node));
  knobs_result(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Graph *graph = program->graph;
  const Int8Schedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const DirectPlan *plan = &schedule->plan;
  int64_t groups = direct_oc_groups(&schedule->weights);
  Call *call = kernel_call(program, node, direct_int8_spec(graph, node));
  operands_result(call, graph, node);
  operand_value(call, "taps", node->packed[PACKED_TAPS], READ);
  operand_integer(call, "channels", conv->groups * conv->channels);
  operand_integer(call, "kernels", conv->groups * conv->kernels);
  operand_integer(call, "group_channels", conv->channels);
  operand_integer(call, "group_kernels", conv->kernels);
  operand_integer(call, "span", direct_span(&schedule->weights));
  operand_integer(call, "group_chunk", plan->group_chunk && plan->group_chunk < groups ? plan->group_chunk : groups);
  operand_extent(call, "tile_chunk", direct_chunk_dim(graph, &schedule->layer, plan, schedule->h.out, schedule->w.out));
  operands_plane(call, &schedule->h, &schedule->w);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_direct_int8 = {.kind = {"direct_int8", direct_int8_knobs},
                                               .integer = true,
                                               .to_floats = true,
                                               .runs_blocked = runs_blocked,
                                               .list = list,
                                               .fit = fit,
                                               .make = make,
                                               .spec = direct_int8_spec,
                                               .pack = pack,
                                               .lower = lower_node};

const ConvAlgorithm convolution_tiles_int8 = {.kind = {"tiles_int8", tiles_int8_knobs},
                                              .integer = true,
                                              .to_floats = true,
                                              .runs_blocked = runs_by_two,
                                              .list = list_by_two,
                                              .fit = fit,
                                              .make = make_by_two,
                                              .spec = direct_int8_spec,
                                              .pack = pack,
                                              .lower = lower_node};
