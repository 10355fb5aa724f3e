/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution: a vector of a blocked tensor holds LANES independent convolutions
 * (templates/conv_depthwise.c). Of quantised numbers the sums are those of whole floats (conv_depthwise_int8.c).
 */
#include "kernels/conv/convolution.h"
#include "kernels/conv/cost.h"
#include "kernels/conv/requantise.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/row_tiles.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef struct DepthwiseSchedule {
  ConvSchedule base;
  int columns;    /* pixels of a tile */
  bool by_blocks; /* workers divide the channel blocks, not the rows */
} DepthwiseSchedule;

enum { PX = KNOB_depthwise_px }; /* of both kinds */
enum { BY_BLOCKS = KNOB_depthwise_by_blocks };

/* A row of the window is unrolled. */
enum { MAX_WINDOW_W = 64, MAX_COLUMNS = 16, USUAL_COLUMNS = 14 };
enum { FEWEST_COLUMNS = 4 }; /* sums that hide enough of a multiply-add's latency beside weights in registers */
enum { LOADS_AHEAD = 5 };    /* so many inputs are in registers */

/* Registers for sums and weights, beside an input and a product. */
static int64_t free_registers(const Target *target) {
  return target->vector_registers - target->kept_registers - target->two_operands - 2;
}

/* Are the weights read for each pixel, as too few sums would fit in registers beside them? */
static bool reads_weights(const Graph *graph, const Convolution *conv) {
  return !conv->integer && free_registers(graph->config->target) - conv->w.kernel < FEWEST_COLUMNS;
}

/* The most columns whose sums fit in registers; less than 1 if the weights that are there, too, leave none. */
static int64_t most_columns(const Graph *graph, const Convolution *conv) {
  const Target *target = graph->config->target;
  int64_t most = free_registers(target) - (reads_weights(graph, conv) ? 0 : conv->w.kernel);
  return min_int(most, clamp_int(USUAL_COLUMNS, target->sums, MAX_COLUMNS));
}

/* Tiles of a width that only the run knows have as many columns as fit, and code for any edge. */
static RowTiles row_tiles(const Graph *graph, const Convolution *conv) {
  const ConvAxis *w = &conv->w;
  int64_t most = most_columns(graph, conv);
  if (!axis_is_known(w)) return (RowTiles){.columns = (int)clamp_int(1, most, dim_upper(w->out)), .variants = 1};
  return row_tiles_of(dim_value(w->out), most, w->stride, (w->kernel - 1) * w->dilation + 1, dim_value(w->in),
                      dim_value(w->pad_begin));
}

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  if (conv->groups == 1 || conv->channels != 1 || conv->kernels != 1) return false;
  if (!value_is_constant(conv->weights) || conv->w.kernel > MAX_WINDOW_W) return false;
  if (!axis_is_padded(graph, &conv->h) || !axis_is_padded(graph, &conv->w)) return false;
  return row_tiles(graph, conv).variants <= ROW_TILE_VARIANTS;
}

/* Can tiles have so many columns: at most a row, and few enough variants? */
static bool can_have(const Graph *graph, const Convolution *conv, int64_t columns) {
  const ConvAxis *w = &conv->w;
  int64_t most = most_columns(graph, conv);
  if (columns < 1 || columns > (most < 1 ? 1 : most) || columns > dim_upper(w->out)) return false;
  if (!axis_is_known(w)) return true;
  return row_tiles_in(dim_value(w->out), columns, w->stride, (w->kernel - 1) * w->dilation + 1, dim_value(w->in),
                      dim_value(w->pad_begin)) <= ROW_TILE_VARIANTS;
}

/* Fitted to MobileNet-v2's layers on one core of Zen 3, undisturbed: overhead cycles of an output row and of a tile,
 * and the part of reading and writing that multiply-adds do not hide. */
static const double row_cycles = 5, tile_cycles = 6, exposed = 0.2;

/* The multiply-adds of a tile, or the loads that they need: of each row of the window its weights, once or for each
 * multiply-add, and each pixel once. Tiles are short enough that the next one's multiply-adds fill the time that sums
 * wait for each other. */
static double cycles_of_tile(const Graph *graph, const Convolution *conv, double width) {
  const Machine *m = graph->config->machine;
  int lanes = graph->config->target->lanes;
  double rows = convolution_taps_inside(&conv->h), taps = rows * convolution_taps_inside(&conv->w);
  double pixels = (width - 1) * (double)conv->w.stride + (double)((conv->w.kernel - 1) * conv->w.dilation + 1);
  double weights = (double)conv->w.kernel * (reads_weights(graph, conv) ? width : 1),
         vectors = rows * (pixels + weights);
  double loads = max_double(vectors / m->loads_per_cycle, cycles_to_read(m, vectors * 4 * lanes, m->l1_gbps));
  return tile_cycles + max_double(taps * width / fma_per_cycle(m, lanes), loads);
}

static double cycles_of_rows(const Graph *graph, const Convolution *conv, int columns) {
  int64_t lanes = graph->config->target->lanes, out_w = dim_optimum(conv->w.out), tiles = ceil_div(out_w, columns);
  int64_t rows = dim_optimum(conv->x->shape[0]) * (ceil_div(conv->groups, lanes))*dim_optimum(conv->h.out);
  double tile = cycles_of_tile(graph, conv, (double)out_w / (double)tiles);
  return (double)ceil_div(rows, graph->config->machine->cores) * (row_cycles + (double)tiles * tile);
}

/* Lines of the rows that workers share at the borders of their bands, in the time of a barrier: of each plane a short
 * piece, beyond which prefetchers fetch what another worker is about to write. Fitted to MobileNet-v2's layers on two
 * cores of Zen 3. */
static const double BORDER_A_BARRIER = 6;

/* For a worker to read the rows of others at the borders of its band. */
static double cycles_of_borders(const Graph *graph, const Convolution *conv) {
  const Machine *m = graph->config->machine;
  if (m->cores == 1) return 0;
  int64_t rows = max_int(0, (conv->h.kernel - 1) * conv->h.dilation + 1 - conv->h.stride),
          lanes = graph->config->target->lanes;
  double row = (double)dim_optimum(conv->w.in) * 4 * (double)lanes / CACHE_LINE;
  double planes = (double)ceil_div(conv->groups, lanes);
  return planes * (double)min_int(rows, dim_optimum(conv->h.in)) * row / BORDER_A_BARRIER * m->barrier_ns * m->ghz;
}

/* For a worker to read what others wrote: of an input whose pixels they divide, if this layer's channels are divided,
 * or the other way round; and the same of the output, in the next layer. */
static double cycles_of_others(const Graph *graph, const Convolution *conv, bool by_blocks) {
  const Machine *m = graph->config->machine;
  double in = value_optimum_bytes(conv->x) / m->cores, out = value_optimum_bytes(conv->y) / m->cores;
  double others = (double)(m->cores - 1) / m->cores, bytes = 0;
  if (all_cores_read(m, conv->groups, dim_optimum(conv->h.in) * dim_optimum(conv->w.in)) != by_blocks)
    bytes += others * in;
  if (by_blocks && !all_cores_read(m, conv->groups, dim_optimum(conv->h.out) * dim_optimum(conv->w.out)))
    bytes += others * out;
  return cycles_from_others(m, bytes, STREAM_A_BARRIER);
}

/* Of the busiest core. Lines of the output are read before they are written. */
static double cycles_of_memory(const Graph *graph, const Convolution *conv, bool by_blocks) {
  const Machine *m = graph->config->machine;
  double in = value_optimum_bytes(conv->x) / m->cores, out = value_optimum_bytes(conv->y) / m->cores;
  double all = in + (conv->residual ? 3 : 2) * out, near = part_in_l2(m, all);
  double moved = cycles_to_read(m, near * all, m->l2_gbps) + cycles_to_read(m, (1 - near) * all, m->l3_gbps);
  return moved + cycles_of_others(graph, conv, by_blocks) +
         cycles_to_retake(m, out, conv->groups, dim_optimum(conv->h.out) * dim_optimum(conv->w.out));
}

/* Seconds of the kernel. */
static double seconds_of(Graph *graph, const Convolution *conv, int columns, bool by_blocks) {
  double busy = cycles_of_rows(graph, conv, columns), moved = cycles_of_memory(graph, conv, by_blocks);
  if (!by_blocks) busy += cycles_of_borders(graph, conv);
  return seconds_of_cycles(graph->config->machine, overlapped(busy, moved, exposed));
}

static void add(Graph *graph, const Convolution *conv, ConvCandidates *candidates, int columns) {
  for (int by_blocks = 0; by_blocks <= !conv->integer; by_blocks++)
    candidates_add(candidates, &(Knobs){{[PX] = columns, [BY_BLOCKS] = by_blocks}},
                   seconds_of(graph, conv, columns, by_blocks), true);
}

/* Wide tiles first. */
static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  int preferred = row_tiles(graph, conv).columns;
  add(graph, conv, candidates, preferred);
  for (int columns = MAX_COLUMNS; columns >= 1; columns--)
    if (columns != preferred && can_have(graph, conv, columns)) add(graph, conv, candidates, columns);
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)node;
  if (!can_have(graph, conv, knobs->value[PX])) knobs->value[PX] = row_tiles(graph, conv).columns;
  knobs->value[BY_BLOCKS] = knobs->value[BY_BLOCKS] != 0;
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  DepthwiseSchedule *schedule = ARENA_NEW(graph->arena, DepthwiseSchedule);
  schedule->base.reads_residual_last = true;
  schedule->columns = knobs->value[PX];
  schedule->by_blocks = knobs->value[BY_BLOCKS];
  schedule->base.seconds = seconds_of(graph, conv, schedule->columns, schedule->by_blocks);
  Text text = text_new(graph->arena);
  text_add(&text, conv->integer ? "depthwise_int8_%lldx%llds%lld_" : "depthwise_%lldx%llds%lld_",
           (long long)conv->h.kernel, (long long)conv->w.kernel, (long long)conv->w.stride);
  plane_text(&text, conv->h.out, conv->w.out);
  text_add(&text, "c%lld_px%d%s", (long long)conv->groups, schedule->columns, schedule->by_blocks ? "_blocks" : "");
  schedule->base.base.text = text.data;
  return &schedule->base;
}

/* [C][R S] -> [block of channels][R S][lane]; lanes past C are zero. */
static void pack_weights_of(Graph *graph, Node *node, const float *weights) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  int64_t lanes = graph->config->target->lanes, points = conv->h.kernel * conv->w.kernel;
  int64_t count = ceil_div(conv->groups, lanes) * points * lanes;
  float *packed = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t c = 0; c < conv->groups; c++)
    for (int64_t point = 0; point < points; point++)
      packed[(c / lanes * points + point) * lanes + c % lanes] = weights[c * points + point];
  graph_pack_floats(graph, node, conv->weights->name, count, packed);
}

static void pack(Graph *graph, Node *node) { pack_weights_of(graph, node, conv_schedule_of(node)->conv.weights->data); }

/* Does clang load the inputs of a tile before its multiply-adds? */
static bool loads_ahead(const Target *target) { return target->lane_operands || target->kept_registers > 0; }

static KernelSpec *depthwise_spec(const Graph *graph, const Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_depthwise");
  kernel_window(spec, 2, &conv->w, &conv->h, NULL);
  kernel_plane(spec, &conv->h, &conv->w);
  const DepthwiseSchedule *schedule = (const DepthwiseSchedule *)node->schedule;
  kernel_knob(spec, "COLUMNS", schedule->columns);
  if (!axis_is_known(&conv->w)) kernel_knob(spec, "ANY_WIDTH", 1);
  if (schedule->by_blocks) kernel_knob(spec, "BY_BLOCKS", 1);
  if (loads_ahead(graph->config->target) && conv->w.stride > 1) kernel_knob(spec, "LOADS_AHEAD", LOADS_AHEAD);
  if (reads_weights(graph, conv)) kernel_knob(spec, "READS_WEIGHTS", 1);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_knob(spec, "RESIDUAL", conv->residual != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(graph->arena, node));
  return spec;
}

static void lower_node(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Convolution *conv = &conv_schedule_of(node)->conv;
  Call *call = kernel_call(program, node, depthwise_spec(graph, node));
  operands_blocked(call, graph, conv, node->packed[0], conv->bias);
  operand_integer(call, "channels", conv->groups);
  operands_plane(call, &conv->h, &conv->w);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 4);
}

const ConvAlgorithm convolution_depthwise = {.kind = {"depthwise", depthwise_knobs},
                                             .runs_blocked = runs_blocked,
                                             .list = list,
                                             .fit = fit,
                                             .make = make,
                                             .spec = depthwise_spec,
                                             .pack = pack,
                                             .lower = lower_node};

/* ---- quantised numbers ---- */

/* Floats hold all whole numbers up to here. */
static const double EXACT = 0x1p24;

static bool sums_are_exact(const Graph *graph, const Node *node, const Convolution *conv) {
  (void)graph, (void)conv;
  return integer_conv_reach(node) <= EXACT;
}

static void pack_int8(Graph *graph, Node *node) {
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t count = numbers.kernels * numbers.depth;
  float *weights = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) weights[i] = numbers.weights[i];
  pack_weights_of(graph, node, weights);
  pack_requantise(graph, node, &numbers, START_IN_FLOATS);
}

static KernelSpec *depthwise_int8_spec(const Graph *graph, const Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_depthwise_int8");
  kernel_window(spec, 2, &conv->w, &conv->h, NULL);
  kernel_plane(spec, &conv->h, &conv->w);
  kernel_knob(spec, "COLUMNS", ((const DepthwiseSchedule *)node->schedule)->columns);
  if (!axis_is_known(&conv->w)) kernel_knob(spec, "ANY_WIDTH", 1);
  knobs_requantise(spec, graph, node);
  knob_skips(spec, node);
  return spec;
}

static void lower_int8(Program *program, Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  Call *call = kernel_call(program, node, depthwise_int8_spec(program->graph, node));
  operands_requantise(call, program->graph, node);
  operand_integer(call, "channels", conv->groups);
  operands_plane(call, &conv->h, &conv->w);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_depthwise_int8 = {.kind = {"depthwise_int8", depthwise_int8_knobs},
                                                  .integer = true,
                                                  .runs_blocked = runs_blocked,
                                                  .suits = sums_are_exact,
                                                  .list = list,
                                                  .fit = fit,
                                                  .make = make,
                                                  .spec = depthwise_int8_spec,
                                                  .pack = pack_int8,
                                                  .lower = lower_int8};
