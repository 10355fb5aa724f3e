/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of quantised tensors of one group by panels of numbers of 16 bits (templates/conv_panel_int8.c), on
 * targets without dot products of bytes, with results of direct_int8. Plans and costs are those of Winograd's algorithm
 * with tiles of a pixel and windows of a tap, whose channels are the layer's in all its taps.
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

typedef struct PanelSchedule {
  ConvSchedule base;
  ConvAxis h, w; /* a plane under a 1x1 window without padding or stride is one row */
  WinogradLayer layer;
  WinogradPlan plan;
} PanelSchedule;

static const PanelSchedule *schedule_of(const Node *node) { return (const PanelSchedule *)node->schedule; }

/* ---- choice ---- */

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  const Target *target = graph->config->target;
  return !target->has_dot && conv->groups == 1 && axis_is_known(&conv->h) && axis_is_known(&conv->w);
}

static bool suits(const Graph *graph, const Node *node, const Convolution *conv) {
  (void)node;
  return conv->x_block == graph->config->target->lanes && dim_optimum(conv->x->shape[0]) > 0;
}

static WinogradLayer layer_of(const Graph *graph, const Convolution *conv) {
  const Dim *images = conv->x->shape[0];
  int64_t taps = conv->h.kernel * conv->w.kernel;
  return (WinogradLayer){.images = max_int(1, dim_optimum(images)),
                         .tiles_known = dim_is_const(images),
                         .out_h = dim_value(conv->h.out),
                         .out_w = dim_value(conv->w.out),
                         .channels = taps * round_up(conv->channels, graph->config->target->lanes) / 2,
                         .kernels = conv->kernels,
                         .taps_h = 1,
                         .taps_w = 1,
                         .integer = true,
                         .most_tile = 1};
}

/* Winograd's knobs but the tile. */
static Knobs knobs_of(const Knobs *winograd) {
  return (Knobs){{[KNOB_panel_int8_oc] = winograd->value[KNOB_winograd_oc],
                  [KNOB_panel_int8_by_groups] = winograd->value[KNOB_winograd_by_groups],
                  [KNOB_panel_int8_parts] = winograd->value[KNOB_winograd_parts]}};
}

static Knobs winograd_knobs_of(const Knobs *knobs) {
  return (Knobs){{[KNOB_winograd_tile] = 1,
                  [KNOB_winograd_oc] = knobs->value[KNOB_panel_int8_oc],
                  [KNOB_winograd_by_groups] = knobs->value[KNOB_panel_int8_by_groups],
                  [KNOB_winograd_parts] = knobs->value[KNOB_panel_int8_parts]}};
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  WinogradLayer layer = layer_of(graph, conv);
  ConvCandidates all = {.arena = candidates->arena, .algorithm = candidates->algorithm};
  winograd_list(graph->config->target, graph->config->machine, &layer, 1, &all);
  for (int i = 0; i < all.count; i++) {
    Knobs knobs = knobs_of(&all.list[i].knobs);
    candidates_add(candidates, &knobs, all.list[i].seconds, all.list[i].usual);
  }
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)node;
  WinogradLayer layer = layer_of(graph, conv);
  Knobs winograd = winograd_knobs_of(knobs);
  winograd_fit(&layer, &winograd);
  *knobs = knobs_of(&winograd);
}

/* "panel_int8_oc2t6b48_groups", then the differences between layers of one plan. */
static const char *text_of(Arena *arena, const Convolution *conv, const WinogradPlan *p) {
  Text text = text_new(arena);
  text_add(&text, "panel_int8_oc%dt%db%lld%s_%lldx%llds%lldc%lldo%lld_", p->oc_vectors, p->part_tiles,
           (long long)p->block_tiles, p->by_groups ? "_groups" : "", (long long)conv->h.kernel,
           (long long)conv->w.kernel, (long long)conv->w.stride, (long long)conv->channels, (long long)conv->kernels);
  plane_text(&text, conv->h.out, conv->w.out);
  return text.data;
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  PanelSchedule *schedule = ARENA_NEW(graph->arena, PanelSchedule);
  Knobs winograd = winograd_knobs_of(knobs);
  schedule->base.reads_residual_last = true;
  convolution_rows(graph->dims, conv, &schedule->h, &schedule->w);
  schedule->layer = layer_of(graph, conv);
  schedule->plan = winograd_plan(graph->config->target, graph->config->machine, &schedule->layer, &winograd);
  schedule->base.seconds = schedule->plan.seconds;
  schedule->base.base.text = text_of(graph->arena, conv, &schedule->plan);
  return &schedule->base;
}

/* ---- memory ---- */

/* Words of four bytes: whole lines of the cache. */
static int64_t panel_words(const PanelSchedule *s) { return round_up(s->plan.block_tiles * s->layer.channels, 16); }

static int64_t slot_bytes(const Graph *graph, const PanelSchedule *s) {
  return 4 * (panel_words(s) + s->layer.channels * s->plan.oc_vectors * graph->config->target->lanes);
}

static void scratch(Graph *graph, Node *node) {
  const PanelSchedule *schedule = schedule_of(node);
  graph_slots(graph, node, schedule->plan.slots, slot_bytes(graph, schedule));
}

/* [group][R S][channel][vector of the group][LANES], of channels two side by side, padded to whole blocks; the last
 * group may have fewer vectors. */
static void pack_weights(const Graph *graph, const PanelSchedule *s, const int8_t *source, int8_t *packed) {
  const Convolution *conv = &s->base.conv;
  int64_t lanes = graph->config->target->lanes, taps = conv->h.kernel * conv->w.kernel;
  int64_t padded = round_up(conv->channels, lanes), vectors = ceil_div(conv->kernels, lanes);
  for (int64_t k = 0; k < conv->kernels; k++) {
    int64_t first = k / lanes / s->plan.oc_vectors * s->plan.oc_vectors;
    int64_t width = min_int(s->plan.oc_vectors, vectors - first) * lanes;
    int8_t *column = packed + first * lanes * padded * taps + (k - first * lanes) * 2;
    for (int64_t c = 0; c < conv->channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) column[(tap * padded + c / 2 * 2) * width + c % 2] = *source++;
  }
}

static void pack(Graph *graph, Node *node) {
  const PanelSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t bytes = 2 * schedule->layer.channels * round_up(conv->kernels, graph->config->target->lanes);
  int8_t *weights = ARENA_ARRAY(graph->arena, int8_t, bytes);
  pack_weights(graph, schedule, numbers.weights, weights);
  graph_pack(graph, node, graph_constant(graph, conv->weights->name, RNNCC_I8, 1, &bytes, weights));
  pack_requantise(graph, node, &numbers, START_OF_DOTS);
}

/* ---- the call ---- */

static KernelSpec *spec_of(const Graph *graph, const Node *node) {
  const PanelSchedule *schedule = schedule_of(node);
  const WinogradPlan *p = &schedule->plan;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_panel_int8");
  kernel_window(spec, 2, &schedule->w, &schedule->h, NULL);
  kernel_plane(spec, &schedule->h, &schedule->w);
  kernel_knob(spec, "OC_VECTORS", p->oc_vectors);
  kernel_knob(spec, "OC_TAIL", ceil_div(schedule->base.conv.kernels, graph->config->target->lanes) % p->oc_vectors);
  kernel_knob(spec, "PART_PIXELS", p->part_tiles);
  kernel_knob(spec, "MIN_PIXELS", p->least_tiles);
  kernel_knob(spec, "BY_GROUPS", p->by_groups);
  knobs_requantise(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Graph *graph = program->graph;
  const PanelSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  Call *call = kernel_call(program, node, spec_of(graph, node));
  operands_requantise(call, graph, node);
  operand_sharing(call, "y", SHARED_APART);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_integer(call, "block_pixels", schedule->plan.block_tiles);
  operand_integer(call, "panel_words", panel_words(schedule));
  operand_integer(call, "slots", schedule->plan.slots);
  operand_integer(call, "slot", graph_slot_bytes(graph, node, slot_bytes(graph, schedule)) / 4);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_panel_int8 = {.kind = {"panel_int8", panel_int8_knobs},
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
