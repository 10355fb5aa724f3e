/* SPDX-License-Identifier: MIT */
/*
 * Winograd's algorithm (templates/conv_winograd.c) for convolutions of stride 1 with a window that winograd_plan.c has
 * a form for; one call for each group. Weights are transformed at compile time; those that a program can set, when it
 * sets them; and those that the network computes, or trains, by a node in each run.
 */
#include "ir/mutable.h"
#include "kernels/conv/convolution.h"
#include "kernels/conv/winograd_plan.h"
#include "kernels/conv/winograd_transform.h"
#include "kernels/conv/winograd_weights.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "program/worker_slots.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef struct WinogradSchedule WinogradSchedule;
struct WinogradSchedule {
  ConvSchedule base;
  WinogradLayer layer;
  WinogradPlan plan;
  WinogradSchedule *few; /* runs the node in its place where there are few pixels; NULL: never */
  int64_t few_pixels;    /* of all images, at most */
  Value *transformed;    /* the weights as the kernel reads them, which a node makes; NULL: the compiler does */
};

static WinogradSchedule *schedule_of(const Node *node) { return (WinogradSchedule *)node->schedule; }

/* Each group must begin with a channel block. */
static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  int lanes = graph->config->target->lanes;
  bool whole = conv->groups == 1 || (conv->channels % lanes == 0 && conv->kernels % lanes == 0);
  return !graph->config->no_winograd && whole && conv->channels >= lanes && winograd_fits_axis(&conv->h) &&
         winograd_fits_axis(&conv->w) && winograd_has_window(conv->h.kernel, conv->w.kernel);
}

static bool suits(const Graph *graph, const Node *node, const Convolution *conv) {
  return !node->exact && conv->x_block == graph->config->target->lanes && dim_optimum(conv->x->shape[0]) > 0;
}

static bool is_plane_constant(const Convolution *conv) {
  return dim_is_const(conv->h.out) && dim_is_const(conv->w.out);
}

/* The extent in `step` of so many steps from its minimum to its optimum. */
enum { STEPS = 16 };
static int64_t extent_at(const Dim *extent, int step) {
  int64_t least = max_int(1, dim_lower(extent));
  return least + (dim_optimum(extent) - least) * step / STEPS;
}

static WinogradLayer layer_at(const Convolution *conv, int step) {
  const Dim *images = conv->x->shape[0];
  return (WinogradLayer){.images = extent_at(images, step),
                         .tiles_known = dim_is_const(images) && is_plane_constant(conv),
                         .out_h = extent_at(conv->h.out, step),
                         .out_w = extent_at(conv->w.out, step),
                         .channels = conv->channels,
                         .kernels = conv->kernels,
                         .taps_h = (int)conv->h.kernel,
                         .taps_w = (int)conv->w.kernel,
                         .transforms_weights = !conv->weights->data};
}

static WinogradLayer layer_of(const Convolution *conv) { return layer_at(conv, STEPS); }

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  WinogradLayer layer = layer_of(conv);
  winograd_list(graph->config->target, graph->config->machine, &layer, conv->groups, candidates);
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)graph, (void)node;
  WinogradLayer layer = layer_of(conv);
  winograd_fit(&layer, knobs);
}

static WinogradSchedule *make_at(Graph *graph, const Convolution *conv, int step, const Knobs *knobs) {
  WinogradSchedule *schedule = ARENA_NEW(graph->arena, WinogradSchedule);
  schedule->base.conv = *conv;
  schedule->base.reads_residual_last = true;
  schedule->layer = layer_at(conv, step);
  schedule->plan = winograd_plan(graph->config->target, graph->config->machine, &schedule->layer, knobs);
  schedule->base.seconds = (double)conv->groups * schedule->plan.seconds;
  schedule->base.base.text = winograd_text(graph->arena, "winograd", conv, &schedule->plan);
  return schedule;
}

/* ---- few pixels ---- */

/* A plane of few pixels takes the time that it takes to read the weights. A smaller tile has fewer: they are worth
 * their place in the module if this plan takes so many times as long. */
static const double WORTH_WEIGHTS = 1.15;

static Knobs best_at(Graph *graph, const Convolution *conv, int step) {
  ConvCandidates best = {.arena = graph->arena, .algorithm = &convolution_winograd, .only_best = true};
  WinogradLayer layer = layer_at(conv, step);
  winograd_list(graph->config->target, graph->config->machine, &layer, conv->groups, &best);
  return best.list->knobs;
}

static double seconds_at(Graph *graph, const Convolution *conv, int step, const Knobs *knobs) {
  WinogradLayer layer = layer_at(conv, step);
  return winograd_plan(graph->config->target, graph->config->machine, &layer, knobs).seconds;
}

static int64_t pixels_at(const Convolution *conv, int step) {
  WinogradLayer layer = layer_at(conv, step);
  return layer.images * layer.out_h * layer.out_w;
}

/* Blocks as large as suits the most pixels that these knobs run: fewer have fewer blocks. */
static Knobs with_parts_at(Graph *graph, const Convolution *conv, int step, const Knobs *knobs) {
  Knobs best = *knobs, other = *knobs;
  for (int parts = 1; parts <= MAX_PARTS; parts++) {
    other.value[KNOB_winograd_parts] = parts;
    if (seconds_at(graph, conv, step, &other) < seconds_at(graph, conv, step, &best)) best = other;
  }
  return best;
}

/* Sets the schedule of few pixels, if the dims allow that there are few. Weights that each run transforms are not
 * transformed twice. */
static void set_few(Graph *graph, WinogradSchedule *schedule, const Convolution *conv, const Knobs *knobs) {
  const Config *config = graph->config;
  if (pixels_at(conv, STEPS - 1) == pixels_at(conv, STEPS)) return;
  if (is_plane_constant(conv) || config->edge || config->conv_schedule || !conv->weights->data) return;
  Knobs few = best_at(graph, conv, 0);
  int step = 0;
  if (seconds_at(graph, conv, 0, knobs) < WORTH_WEIGHTS * seconds_at(graph, conv, 0, &few)) return;
  while (step < STEPS - 1 && seconds_at(graph, conv, step + 1, knobs) > seconds_at(graph, conv, step + 1, &few)) step++;
  few = with_parts_at(graph, conv, step, &few);
  schedule->few = make_at(graph, conv, step, &few);
  schedule->few_pixels = pixels_at(conv, step);
  schedule->base.few =
      arena_format(graph->arena, "%s, of at most %lld pixels",
                   schedule_print(graph->arena, &convolution_winograd.kind, &few), (long long)schedule->few_pixels);
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  WinogradSchedule *schedule = make_at(graph, conv, STEPS, knobs);
  set_few(graph, schedule, conv, knobs);
  return &schedule->base;
}

/* ---- memory ---- */

static int64_t slot_bytes(const Graph *graph, const WinogradSchedule *schedule) {
  int64_t few = schedule->few ? slot_bytes(graph, schedule->few) : 0;
  int64_t floats = winograd_slot(&schedule->plan, &schedule->layer, graph->config->target->lanes);
  return max_int(few, floats * (int64_t)sizeof(float));
}

static void scratch(Graph *graph, Node *node) {
  const WinogradSchedule *schedule = schedule_of(node);
  int64_t few = schedule->few ? schedule->few->plan.slots : 0;
  graph_slots(graph, node, max_int(few, schedule->plan.slots), slot_bytes(graph, schedule));
}

/* The weights of one group. */
static WinogradWeights weights_of(const Graph *graph, const WinogradSchedule *schedule) {
  return (WinogradWeights){.form = schedule->plan.form,
                           .lanes = graph->config->target->lanes,
                           .oc_vectors = schedule->plan.oc_vectors,
                           .channels = schedule->layer.channels,
                           .kernels = schedule->layer.kernels};
}

static void pack_transformed(Graph *graph, Node *node) {
  const WinogradSchedule *schedule = schedule_of(node);
  graph_pack(graph, node, schedule->transformed);
  if (schedule->few) graph_pack(graph, node, schedule->few->transformed);
}

static void pack_for(Graph *graph, Node *node, const WinogradSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  WinogradWeights weights = weights_of(graph, schedule);
  int64_t floats = winograd_weights_floats(&weights), count = conv->groups * floats;
  int64_t taps = conv->h.kernel * conv->w.kernel;
  const float *source = conv->weights->data;
  float *packed = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t group = 0; group < conv->groups; group++)
    winograd_weights_pack(&weights, source + group * conv->kernels * conv->channels * taps, packed + group * floats);
  graph_pack_floats(graph, node, conv->weights->name, count, packed);
}

static void pack(Graph *graph, Node *node) {
  const WinogradSchedule *schedule = schedule_of(node);
  if (schedule->transformed) {
    if (!node->n_packed) pack_transformed(graph, node);
    return;
  }
  pack_for(graph, node, schedule);
  if (schedule->few) pack_for(graph, node, schedule->few);
}

/* The derivation makes a constant, in place of the weights where nothing else reads what it computed of them. `w`: what
 * it has for the weights. */
static void derive(Graph *graph, WinogradSchedule *schedule, Value *w, bool instead) {
  const Convolution *conv = &schedule->base.conv;
  WinogradWeights weights = weights_of(graph, schedule);
  Value *made = winograd_transform(graph->mutables->derivation, w, &weights, conv->groups);
  schedule->transformed = instead ? derived_instead(graph, conv->weights, made) : derived_constant(graph, made);
}

/* Afterwards the node reads the transformed weights in place of those that it has. */
static void transform(Graph *graph, Node *node, bool alone) {
  WinogradSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  if (conv->weights->block) {
    const MutableWeights *mutables = graph->mutables;
    Value *w = derivation_value(mutables, conv->weights);
    derive(graph, schedule, w, alone && conv->weights->block > mutables->n_weights);
    if (schedule->few) derive(graph, schedule->few, w, false);
  } else {
    WinogradWeights weights = weights_of(graph, schedule);
    schedule->transformed = winograd_transform(graph, node->inputs[1], &weights, conv->groups);
  }
  node->inputs[1] = schedule->transformed;
  pack_transformed(graph, node);
}

/* Every pooling window must be inside one tile. */
static bool pools_in_tiles(const WinogradForm *form) { return form->tile_h % 2 == 0 && form->tile_w % 2 == 0; }
static bool pools(const Node *node) {
  const WinogradSchedule *schedule = schedule_of(node);
  return pools_in_tiles(&schedule->plan.form) && (!schedule->few || pools_in_tiles(&schedule->few->plan.form));
}

static KernelSpec *spec_for(const Graph *graph, const Node *node, const WinogradSchedule *schedule) {
  const WinogradPlan *p = &schedule->plan;
  const Convolution *conv = &schedule->base.conv;
  int lanes = graph->config->target->lanes;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_winograd");
  kernel_knob(spec, "TILE_H", p->form.tile_h);
  kernel_knob(spec, "TILE_W", p->form.tile_w);
  kernel_knob(spec, "WINDOW_H", p->form.taps_h);
  kernel_knob(spec, "WINDOW_W", p->form.taps_w);
  kernel_plane(spec, &conv->h, &conv->w);
  kernel_knob(spec, "OC_VECTORS", p->oc_vectors);
  kernel_knob(spec, "OC_TAIL", ceil_div(conv->kernels, lanes) % p->oc_vectors);
  kernel_knob(spec, "PART_TILES", p->part_tiles);
  kernel_knob(spec, "MIN_TILES", p->least_tiles);
  kernel_knob(spec, "BY_GROUPS", p->by_groups);
  if (!is_plane_constant(conv)) kernel_knob(spec, "ANY_PLANE", 1);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_knob(spec, "RESIDUAL", conv->residual != NULL);
  kernel_knob(spec, "POOL", node->pool ? 2 : 1);
  kernel_hook(spec, "epilogue", elementwise_epilogue(graph->arena, node));
  return spec;
}

static KernelSpec *spec_of(const Graph *graph, const Node *node) { return spec_for(graph, node, schedule_of(node)); }

/* The value from element `offset` on; a null pointer if value is NULL. */
static void operand_from(const Graph *graph, Call *call, const char *parameter, const Value *value, int64_t offset,
                         AccessMode mode) {
  operand_elements(call, parameter, value, dim_const(graph->dims, offset), NULL, mode);
}

/* The value from channel block `block` on; a null pointer if value is NULL. */
static void operand_blocks(const Graph *graph, Call *call, const char *parameter, const Value *value, int64_t block,
                           AccessMode mode) {
  const Dim *first = dim_const(graph->dims, block);
  const Dim *offset = value ? dim_mul(graph->dims, first, blocked_of(graph, value).plane) : NULL;
  operand_elements(call, parameter, value, offset, NULL, mode);
}

static void call_group_cost(Call *call, const Convolution *conv, const Value *y) {
  double part = 1 / (double)conv->groups;
  convolution_flops(call, conv, part);
  call_bytes_of(call, 4 * part, conv->x);
  call_bytes_of(call, 4 * part, y);
  call_bytes(call, 4 * (double)(conv->kernels * conv->channels * conv->h.kernel * conv->w.kernel), EXTENTS(NULL));
}

static const Dim *tiles_of(const Graph *graph, const WinogradSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  const WinogradForm *form = &schedule->plan.form;
  DimTable *dims = graph->dims;
  const Dim *rows = dim_ceil_div(dims, conv->h.out, dim_const(dims, form->tile_h));
  const Dim *columns = dim_ceil_div(dims, conv->w.out, dim_const(dims, form->tile_w));
  return dim_mul(dims, conv->x->shape[0], dim_mul(dims, rows, columns));
}

/* Tiles of a block, at most those that there is memory for. Of a plane that only the run knows, blocks are of even
 * size, and if workers own blocks, there are as many for each. */
static const Dim *block_tiles(const Graph *graph, const WinogradSchedule *schedule) {
  const WinogradPlan *p = &schedule->plan;
  DimTable *dims = graph->dims;
  const Dim *one = dim_const(dims, 1), *most = dim_const(dims, p->block_tiles);
  if (is_plane_constant(&schedule->base.conv)) return most;
  const Dim *tiles = tiles_of(graph, schedule), *owners = dim_const(dims, p->by_groups ? 1 : p->slots);
  const Dim *blocks = dim_mul(dims, owners, dim_ceil_div(dims, tiles, dim_mul(dims, owners, most)));
  return dim_max(dims, one, dim_ceil_div(dims, tiles, dim_max(dims, one, blocks)));
}

/* The workers that share the work. At run time there may be fewer blocks of tiles than slots; then the first workers,
 * of which the caller is one, have a block each. */
static void operand_slots(const Graph *graph, Call *call, const WinogradSchedule *schedule) {
  const WinogradPlan *p = &schedule->plan;
  DimTable *dims = graph->dims;
  if (schedule->layer.tiles_known || p->by_groups) {
    operand_integer(call, "slots", p->slots);
    return;
  }
  const Dim *blocks = dim_ceil_div(dims, tiles_of(graph, schedule), block_tiles(graph, schedule));
  operand_dim(call, "slots", dim_min(dims, dim_const(dims, p->slots), blocks));
}

/* The tensors of a group are ranges of channel blocks. Two schedules share the scratch memory of one. */
static Call *lower_group(Program *program, const Node *node, const WinogradSchedule *schedule, const Value *packed,
                         int64_t group) {
  const Graph *graph = program->graph;
  const WinogradPlan *p = &schedule->plan;
  const Convolution *conv = &schedule->base.conv;
  int lanes = graph->config->target->lanes;
  WinogradWeights weights = weights_of(graph, schedule);
  const Dim *none = dim_const(graph->dims, 0);
  int64_t y_block = group * conv->kernels / lanes;
  Call *call = kernel_call(program, node, spec_for(graph, node, schedule));
  operand_blocks(graph, call, "x", conv->x, group * conv->channels / lanes, READ);
  operand_from(graph, call, "weights", packed, group * winograd_weights_floats(&weights), READ);
  operand_from(graph, call, "bias", conv->bias, group * conv->kernels, READ);
  operand_blocks(graph, call, "residual", conv->residual, y_block, READ);
  operand_blocks(graph, call, "y", node->outputs[0], y_block, WRITE);
  operand_sharing(call, "y", SHARED_APART);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_sharing(call, "scratch", SHARED_BY_WORKER);
  operand_dim(call, "n", conv->x->shape[0]);
  operand_integer(call, "channels", conv->channels);
  operand_integer(call, "kernels", conv->kernels);
  operand_extent(call, "x_image", blocked_of(graph, conv->x).image);
  operand_extent(call, "residual_image", conv->residual ? blocked_of(graph, conv->residual).image : none);
  operand_extent(call, "y_image", blocked_of(graph, node->outputs[0]).image);
  operand_extent(call, "block_tiles", block_tiles(graph, schedule));
  operand_integer(call, "input_point", winograd_input_point(p, &schedule->layer, lanes));
  operand_integer(call, "product_point", winograd_product_point(p, lanes));
  operand_slots(graph, call, schedule);
  int64_t slot = graph_slot_bytes(graph, node, slot_bytes(graph, schedule_of(node)));
  operand_integer(call, "slot", slot / (int64_t)sizeof(float));
  operands_plane(call, &conv->h, &conv->w);
  return call;
}

/* Positive where there are more pixels. */
static const Dim *pixels_past(const Graph *graph, const Convolution *conv, int64_t pixels) {
  const Dim *plane = dim_mul(graph->dims, conv->h.out, conv->w.out);
  return dim_sub(graph->dims, dim_mul(graph->dims, conv->x->shape[0], plane), dim_const(graph->dims, pixels));
}

/* Costs nothing at the dims' optimum. */
static void lower_few(Program *program, const Node *node, const WinogradSchedule *schedule, int64_t group) {
  const Graph *graph = program->graph;
  Call *call = lower_group(program, node, schedule->few, node->packed[1], group);
  call->schedule = arena_format(program->arena, "%s%s", schedule->few->base.base.text, node->pool ? "_max2x2" : "");
  call->when =
      dim_sub(graph->dims, dim_const(graph->dims, 1), pixels_past(graph, &schedule->base.conv, schedule->few_pixels));
}

/* No barrier between groups: each worker has its own scratch memory. */
static void lower_node(Program *program, Node *node) {
  const WinogradSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  for (int64_t group = 0; group < conv->groups; group++) {
    Call *call = lower_group(program, node, schedule, node->packed[0], group);
    call_group_cost(call, conv, node->outputs[0]);
    if (!schedule->few) continue;
    call->when = pixels_past(program->graph, conv, schedule->few_pixels);
    lower_few(program, node, schedule, group);
  }
}

const ConvAlgorithm convolution_winograd = {.kind = {"winograd", winograd_knobs},
                                            .runs_blocked = runs_blocked,
                                            .suits = suits,
                                            .list = list,
                                            .fit = fit,
                                            .make = make,
                                            .spec = spec_of,
                                            .transform = transform,
                                            .scratch = scratch,
                                            .pack = pack,
                                            .pools = pools,
                                            .lower = lower_node};
