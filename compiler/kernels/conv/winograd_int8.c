/* SPDX-License-Identifier: MIT */
/*
 * Winograd's algorithm in integers (templates/conv_winograd_int8.c) for convolutions of quantised tensors of stride 1
 * in one group, on targets with dot products of 16 bits, too, or without any. Sums are exact, so that results are those
 * of direct_int8, bit for bit. Plans and costs are those of the f32 kernel, two channels in a channel's place.
 */
#include "kernels/conv/convolution.h"
#include "kernels/conv/requantise.h"
#include "kernels/conv/winograd_plan.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef struct WinogradInt8Schedule {
  ConvSchedule base;
  WinogradLayer layer;
  WinogradPlan plan;
} WinogradInt8Schedule;

static const WinogradInt8Schedule *schedule_of(const Node *node) {
  return (const WinogradInt8Schedule *)node->schedule;
}

/* ---- which layers ---- */

static bool fits_axis(const ConvAxis *axis) {
  return winograd_fits_axis(axis) && dim_is_const(axis->in) && dim_is_const(axis->out);
}

static bool fits_window(const Convolution *conv) {
  int64_t h = conv->h.kernel, w = conv->w.kernel;
  return (h == 3 && (w == 3 || w == 1)) || (h == 1 && w == 3);
}

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  const Target *target = graph->config->target;
  return !graph->config->no_winograd && (!target->has_dot || target->has_pair_dot) && conv->groups == 1 &&
         conv->channels >= target->lanes && fits_window(conv) && fits_axis(&conv->h) && fits_axis(&conv->w);
}

/* Outputs of a tile along each axis of three taps, and the bits that its scale takes of a sum. */
static int bits_of(const Convolution *conv, int tile) {
  int axes = (conv->h.kernel > 1) + (conv->w.kernel > 1);
  return axes * (tile == 4 ? 3 : 1);
}

/* The largest tile whose scaled sums fit i32; 0: none. */
static int most_tile(const Node *node, const Convolution *conv) {
  for (int tile = 4; tile >= 2; tile /= 2)
    if (integer_conv_sums_fit(node, 32 - bits_of(conv, tile))) return tile;
  return 0;
}

static bool suits(const Graph *graph, const Node *node, const Convolution *conv) {
  return conv->x_block == graph->config->target->lanes && dim_optimum(conv->x->shape[0]) > 0 &&
         most_tile(node, conv) > 0;
}

/* ---- choice ---- */

static WinogradLayer layer_of(const Node *node, const Convolution *conv) {
  const Dim *images = conv->x->shape[0];
  return (WinogradLayer){.images = max_int(1, dim_optimum(images)),
                         .tiles_known = dim_is_const(images),
                         .out_h = dim_value(conv->h.out),
                         .out_w = dim_value(conv->w.out),
                         .channels = ceil_div(conv->channels, 2),
                         .kernels = conv->kernels,
                         .taps_h = (int)conv->h.kernel,
                         .taps_w = (int)conv->w.kernel,
                         .integer = true,
                         .most_tile = most_tile(node, conv)};
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  WinogradLayer layer = layer_of(node, conv);
  winograd_list(graph->config->target, graph->config->machine, &layer, 1, candidates);
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)graph;
  WinogradLayer layer = layer_of(node, conv);
  winograd_fit(&layer, knobs);
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  WinogradInt8Schedule *schedule = ARENA_NEW(graph->arena, WinogradInt8Schedule);
  schedule->base.reads_residual_last = true;
  schedule->layer = layer_of(node, conv);
  schedule->plan = winograd_plan(graph->config->target, graph->config->machine, &schedule->layer, knobs);
  schedule->base.seconds = schedule->plan.seconds;
  schedule->base.base.text = winograd_text(graph->arena, "winograd_int8_", conv, &schedule->plan);
  return &schedule->base;
}

/* ---- memory ---- */

static int64_t slot_bytes(const Graph *graph, const WinogradInt8Schedule *schedule) {
  return 4 * winograd_slot(&schedule->plan, &schedule->layer, graph->config->target->lanes);
}

static void scratch(Graph *graph, Node *node) {
  const WinogradInt8Schedule *schedule = schedule_of(node);
  graph_slots(graph, node, schedule->plan.slots, slot_bytes(graph, schedule));
}

/* Packed weights: [group][pair of channels][R S][vector of the group][LANES][2]; the last group may have fewer vectors.
 * Weights past the last channel and the last output channel are zero. */
typedef struct Packing {
  int64_t lanes, oc_vectors, vectors, pairs, channels, taps;
} Packing;

static Packing packing_of(const Graph *graph, const WinogradInt8Schedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  int64_t lanes = graph->config->target->lanes;
  return (Packing){.lanes = lanes,
                   .oc_vectors = schedule->plan.oc_vectors,
                   .vectors = ceil_div(conv->kernels, lanes),
                   .pairs = ceil_div(conv->channels, 2),
                   .channels = conv->channels,
                   .taps = conv->h.kernel * conv->w.kernel};
}

/* Where an output channel's first weight is, and how far its next taps are. */
static int64_t column_of(const Packing *p, int64_t kernel, int64_t *tap_stride) {
  int64_t vector = kernel / p->lanes, first = vector / p->oc_vectors * p->oc_vectors;
  *tap_stride = min_int(p->oc_vectors, p->vectors - first) * p->lanes * 2;
  return first * p->lanes * 2 * p->pairs * p->taps + (kernel - first * p->lanes) * 2;
}

static void pack_weights(const Packing *p, int64_t kernels, const int8_t *source, int8_t *packed) {
  for (int64_t k = 0; k < kernels; k++) {
    int64_t stride, column = column_of(p, k, &stride);
    for (int64_t c = 0; c < p->channels; c++)
      for (int64_t tap = 0; tap < p->taps; tap++) packed[column + (c / 2 * p->taps + tap) * stride + c % 2] = *source++;
  }
}

static void pack(Graph *graph, Node *node) {
  const WinogradInt8Schedule *schedule = schedule_of(node);
  Packing packing = packing_of(graph, schedule);
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t bytes = packing.vectors * packing.lanes * packing.pairs * 2 * packing.taps;
  int8_t *weights = ARENA_ARRAY(graph->arena, int8_t, bytes);
  pack_weights(&packing, numbers.kernels, numbers.weights, weights);
  graph_pack(graph, node, graph_constant(graph, schedule->base.conv.weights->name, RNNCC_I8, 1, &bytes, weights));
  pack_requantise(graph, node, &numbers, START_OF_DOTS);
}

/* ---- the call ---- */

static KernelSpec *spec_of(const Graph *graph, const Node *node) {
  const WinogradInt8Schedule *schedule = schedule_of(node);
  const WinogradPlan *p = &schedule->plan;
  const Convolution *conv = &schedule->base.conv;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_winograd_int8");
  kernel_knob(spec, "TILE_H", p->form.tile_h);
  kernel_knob(spec, "TILE_W", p->form.tile_w);
  kernel_knob(spec, "WINDOW_H", p->form.taps_h);
  kernel_knob(spec, "WINDOW_W", p->form.taps_w);
  kernel_plane(spec, &conv->h, &conv->w);
  kernel_knob(spec, "OC_VECTORS", p->oc_vectors);
  kernel_knob(spec, "OC_TAIL", ceil_div(conv->kernels, graph->config->target->lanes) % p->oc_vectors);
  kernel_knob(spec, "PART_TILES", p->part_tiles);
  kernel_knob(spec, "MIN_TILES", p->least_tiles);
  kernel_knob(spec, "BY_GROUPS", p->by_groups);
  knobs_requantise(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Graph *graph = program->graph;
  const WinogradInt8Schedule *schedule = schedule_of(node);
  const WinogradPlan *p = &schedule->plan;
  const Convolution *conv = &schedule->base.conv;
  int lanes = graph->config->target->lanes;
  Call *call = kernel_call(program, node, spec_of(graph, node));
  operands_requantise(call, graph, node);
  operand_sharing(call, "y", SHARED_APART);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_integer(call, "block_tiles", p->block_tiles);
  operand_integer(call, "input_point", winograd_input_point(p, &schedule->layer, lanes));
  operand_integer(call, "product_point", winograd_product_point(p, lanes));
  operand_integer(call, "slots", p->slots);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(graph, schedule)) / 4);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_winograd_int8 = {.kind = {"winograd_int8", winograd_int8_knobs},
                                                 .integer = true,
                                                 .runs_blocked = runs_blocked,
                                                 .suits = suits,
                                                 .list = list,
                                                 .fit = fit,
                                                 .make = make,
                                                 .spec = spec_of,
                                                 .scratch = scratch,
                                                 .pack = pack,
                                                 .lower = lower_node};
