/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution of blocked tensors whose weights are constant: templates/conv_direct.c. It runs any window, so
 * there is always an algorithm.
 */
#include "kernels/conv/direct_plan.h"
#include "kernels/conv/direct_weights.h"

#include <string.h>

#include "kernels/conv/convolution.h"
#include "kernels/conv/prologue.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"
#include "template/specialise.h"

enum { MAX_WINDOW = 4096, MAX_PAD = 65536, MIN_PANELS = 8 };

typedef struct DirectSchedule {
  ConvSchedule base;
  ConvAxis h, w; /* a plane under a 1x1 window without padding or stride is one row */
  DirectWeights weights;
  DirectLayer layer;
  DirectPlan plan;
} DirectSchedule;

static const DirectSchedule *schedule_of(const Node *node) { return (const DirectSchedule *)node->schedule; }

static bool is_constant(const Value *value) { return !value || value->data; }
static bool fits_pads(const Graph *graph, const ConvAxis *axis) {
  return axis_is_padded(graph, axis) && dim_upper(axis->pad_begin) <= MAX_PAD && dim_upper(axis->pad_end) <= MAX_PAD;
}
static bool fits_window(const ConvAxis *axis) {
  return axis->kernel <= MAX_WINDOW && axis->stride <= MAX_WINDOW && axis->dilation <= MAX_PAD;
}

static const char *obstacle(const Graph *graph, const Convolution *conv) {
  if (!is_constant(conv->weights)) return "its weights are not constant";
  if (!is_constant(conv->bias)) return "its bias is not constant";
  if (!fits_window(&conv->h) || !fits_window(&conv->w)) return "its window, stride or dilation is too large";
  if (!fits_pads(graph, &conv->h) || !fits_pads(graph, &conv->w))
    return "its padding may be less than 0 or more than 65536";
  return NULL;
}

static bool runs_blocked(const Graph *graph, const Convolution *conv) { return !obstacle(graph, conv); }

/* ---- choice ---- */

static DirectWeights weights_of(const Graph *graph, const DirectSchedule *schedule, int oc_vectors) {
  const Convolution *conv = &schedule->base.conv;
  return (DirectWeights){.lanes = graph->config->target->lanes,
                         .in_block = conv->x_block,
                         .oc_vectors = oc_vectors,
                         .window = conv->h.kernel * conv->w.kernel,
                         .kernels = conv->groups * conv->kernels,
                         .group_channels = conv->channels,
                         .group_kernels = conv->kernels};
}

/* The input channels of a sum; of all groups that share a vector. */
static int64_t depth_of(const DirectWeights *weights, int64_t channels) {
  int64_t depth = direct_span(weights) * weights->in_block;
  return depth < channels ? depth : channels;
}

static DirectLayer layer_of(const Graph *graph, const Node *node, const DirectSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  int64_t lanes = graph->config->target->lanes, images = dim_optimum(conv->x->shape[0]);
  DirectWeights weights = weights_of(graph, schedule, 1);
  DirectLayer layer = {.images = images > 0 ? images : 1,
                       .step = 1,
                       .in_block = weights.in_block,
                       .lanes = lanes,
                       .depth = depth_of(&weights, conv->groups * conv->channels),
                       .span = direct_span(&weights),
                       .oc_vectors = ceil_div(weights.kernels, lanes),
                       .in_h = dim_optimum(schedule->h.in),
                       .in_w = dim_optimum(schedule->w.in),
                       .out_h = dim_optimum(schedule->h.out),
                       .out_w = dim_optimum(schedule->w.out),
                       .window_h = conv->h.kernel,
                       .window_w = conv->w.kernel,
                       .stride_h = conv->h.stride,
                       .stride_w = conv->w.stride,
                       .taps = convolution_taps_inside(&schedule->h) * convolution_taps_inside(&schedule->w),
                       .residual = conv->residual != NULL,
                       .prologue = node->n_prologue > 0};
  if (conv->groups > 1) layer.group_vectors = conv->kernels % lanes == 0 ? conv->kernels / lanes : 1;
  return layer;
}

/* "direct_oc2px14u2", then chunks and passes, then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const DirectSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  Text text = text_new(arena);
  text_add(&text, "direct_");
  direct_plan_text(&text, &schedule->plan);
  layer_text(&text, conv, conv->h.out, conv->w.out);
  return text.data;
}

/* The schedule without the plan. */
static DirectSchedule *new_schedule(Graph *graph, const Node *node, const Convolution *conv) {
  DirectSchedule *schedule = ARENA_NEW(graph->arena, DirectSchedule);
  schedule->base.conv = *conv;
  convolution_rows(graph->dims, conv, &schedule->h, &schedule->w);
  schedule->layer = layer_of(graph, node, schedule);
  return schedule;
}

static Knobs knobs_of(const DirectPlan *plan) {
  return (Knobs){{[KNOB_direct_oc] = plan->oc_vectors,
                  [KNOB_direct_px] = plan->columns,
                  [KNOB_direct_unroll] = plan->unroll,
                  [KNOB_direct_pass] = (int)plan->pass,
                  [KNOB_direct_groups] = (int)plan->group_chunk,
                  [KNOB_direct_tiles] = (int)plan->tile_chunk}};
}

static DirectPlan plan_of(const Knobs *knobs) {
  return (DirectPlan){.oc_vectors = knobs->value[KNOB_direct_oc],
                      .columns = knobs->value[KNOB_direct_px],
                      .unroll = knobs->value[KNOB_direct_unroll],
                      .pass = knobs->value[KNOB_direct_pass],
                      .group_chunk = knobs->value[KNOB_direct_groups],
                      .tile_chunk = knobs->value[KNOB_direct_tiles]};
}

static void add_plan(void *candidates, const DirectPlan *plan, bool usual) {
  Knobs knobs = knobs_of(plan);
  candidates_add(candidates, &knobs, plan->seconds, usual);
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  const DirectSchedule *schedule = new_schedule(graph, node, conv);
  direct_each_plan(graph->config->target, graph->config->machine, &schedule->layer, add_plan, candidates);
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  DirectPlan plan = plan_of(knobs);
  direct_fit(&new_schedule(graph, node, conv)->layer, &plan);
  *knobs = knobs_of(&plan);
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  DirectSchedule *schedule = new_schedule(graph, node, conv);
  schedule->plan = plan_of(knobs);
  schedule->weights = weights_of(graph, schedule, schedule->plan.oc_vectors);
  schedule->base.seconds =
      direct_seconds(graph->config->target, graph->config->machine, &schedule->layer, &schedule->plan);
  schedule->base.reads_residual_last = schedule->plan.pass == 0 || schedule->plan.pass >= schedule->layer.span;
  schedule->base.base.text = text_of(graph->arena, schedule);
  return &schedule->base;
}

/* ---- memory ---- */

/* Tiles of a plane, and columns of the widest. */
static int64_t tiles_of(const DirectSchedule *schedule) {
  return schedule->layer.out_h * direct_row_tiles(&schedule->layer, &schedule->plan);
}
static int64_t widest(const DirectSchedule *schedule) {
  int64_t tiles = direct_row_tiles(&schedule->layer, &schedule->plan);
  return ceil_div(schedule->layer.out_w, tiles);
}

/* 0: all. */
static int64_t chunk(int64_t chosen, int64_t all) { return chosen && chosen < all ? chosen : all; }

/* One panel for each planned worker, and a few more for a machine with more CPUs. */
static int64_t panels(const Graph *graph) {
  return graph->config->machine->cores > MIN_PANELS ? graph->config->machine->cores : MIN_PANELS;
}

/* Panels for the input as the prologue makes it; a slot has one for each worker that was planned for, and further ones.
 */
static int64_t slot_bytes(const Graph *graph, const DirectSchedule *schedule) {
  int64_t columns = chunk(schedule->plan.tile_chunk, tiles_of(schedule)) * widest(schedule);
  int64_t floats = schedule->layer.span * columns * schedule->layer.in_block;
  return ceil_div(panels(graph), graph->config->machine->cores) * floats * (int64_t)sizeof(float);
}

static void scratch(Graph *graph, Node *node) {
  if (node->n_prologue) graph_slots(graph, node, graph->config->machine->cores, slot_bytes(graph, schedule_of(node)));
}

/* Constants of the call: weights, bias or NULL, and the prologue's scale and shift. */
static void pack(Graph *graph, Node *node) {
  const DirectSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  int64_t floats = direct_floats(&schedule->weights), kernels = schedule->weights.kernels;
  float *weights = ARENA_ARRAY(graph->arena, float, floats);
  direct_pack(&schedule->weights, conv->weights->data, weights);
  graph_pack_floats(graph, node, conv->weights->name, floats, weights);
  Value *bias = NULL;
  if (conv->bias)
    bias = channel_constant(graph, conv->bias->name, conv->bias->data, kernels, graph->config->target->lanes);
  if (bias || node->n_prologue) graph_pack(graph, node, bias); /* NULL keeps the prologue's places */
  pack_prologue(graph, node, schedule->layer.in_block);
}

/* ---- the call ---- */

/* Are tiles of a row one call? Tiles of few sums are short, so that their addresses count; recorded schedules have
 * shorter turns of the inner loop, and keep their kernels. */
static bool has_runs(const Graph *graph, const DirectSchedule *schedule) {
  return target_has_few_registers(graph->config->target) && schedule->plan.unroll == DIRECT_LONG_TURN &&
         axis_is_known(&schedule->w);
}

static KernelSpec *direct_spec(const Graph *graph, const Node *node) {
  Arena *arena = graph->arena;
  const DirectSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const DirectPlan *plan = &schedule->plan;
  KernelSpec *spec = kernel_spec_new(arena, "conv_direct");
  kernel_window(spec, 2, &schedule->w, &schedule->h, NULL);
  kernel_plane(spec, &schedule->h, &schedule->w);
  kernel_knob(spec, "IN_BLOCK", schedule->layer.in_block);
  kernel_knob(spec, "CHANNEL_TAIL", conv->groups * conv->channels % schedule->layer.in_block);
  kernel_knob(spec, "OUT_VECTORS", conv->y_block / graph->config->target->lanes);
  kernel_knob(spec, "OC_VECTORS", plan->oc_vectors);
  kernel_knob(spec, "OC_TAIL", schedule->layer.oc_vectors % plan->oc_vectors);
  kernel_knob(spec, "COLUMNS", plan->columns);
  if (!axis_is_known(&schedule->w)) kernel_knob(spec, "ANY_WIDTH", 1);
  if (graph->config->target->lane_operands) kernel_knob(spec, "BY_LANES", 1);
  kernel_knob(spec, "UNROLL", plan->unroll);
  if (has_runs(graph, schedule)) kernel_knob(spec, "RUNS", 1);
  kernel_knob(spec, "GROUPED", conv->groups > 1);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_knob(spec, "RESIDUAL", conv->residual != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(arena, node));
  knobs_prologue(spec, graph, node);
  return spec;
}

static void call_data(Call *call, const Graph *graph, const Node *node) {
  const Convolution *conv = &schedule_of(node)->base.conv;
  operands_blocked(call, graph, conv, node->packed[0], conv->bias ? node->packed[1] : NULL);
  operands_prologue(call, node);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
}

static void call_panels(Call *call, const Graph *graph, const Node *node) {
  int64_t slot = graph_slot_bytes(graph, node, slot_bytes(graph, schedule_of(node))) / (int64_t)sizeof(float);
  operand_integer(call, "panels", panels(graph));
  operand_integer(call, "slots", graph->config->machine->cores);
  operand_integer(call, "slot", slot);
}

static void lower_node(Program *program, Node *node) {
  const DirectSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const DirectPlan *plan = &schedule->plan;
  Call *call = kernel_call(program, node, direct_spec(program->graph, node));
  call_data(call, program->graph, node);
  operand_integer(call, "channels", conv->groups * conv->channels);
  operand_integer(call, "kernels", conv->groups * conv->kernels);
  operand_integer(call, "group_channels", conv->channels);
  operand_integer(call, "group_kernels", conv->kernels);
  operand_integer(call, "span", direct_span(&schedule->weights));
  operand_integer(call, "group_chunk", chunk(plan->group_chunk, direct_oc_groups(&schedule->weights)));
  operand_extent(call, "tile_chunk",
                 direct_chunk_dim(program->graph, &schedule->layer, plan, schedule->h.out, schedule->w.out));
  operand_integer(call, "pass", chunk(plan->pass, schedule->layer.span));
  call_panels(call, program->graph, node);
  operands_plane(call, &schedule->h, &schedule->w);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 4);
}

const ConvAlgorithm convolution_direct = {.kind = {"direct", direct_knobs},
                                          .runs_blocked = runs_blocked,
                                          .obstacle = obstacle,
                                          .takes_prologue = prologue_fits,
                                          .takes_wide = true,
                                          .list = list,
                                          .fit = fit,
                                          .make = make,
                                          .spec = direct_spec,
                                          .scratch = scratch,
                                          .pack = pack,
                                          .lower = lower_node};
