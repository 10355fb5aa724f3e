/* SPDX-License-Identifier: MIT */
/*
 * Convolution of row-major tensors, whose extents may be dims. For padding or a stride along columns, conv_pad first
 * copies the input so that conv_plain reads contiguous columns. Short rows are treated as one line, so that vectors of
 * outputs continue past their ends.
 */
#include "kernels/conv/convolution.h"

#include <limits.h>

#include "kernels/conv/padded_input.h"
#include "kernels/conv/plain_cost.h"
#include "kernels/elementwise/elementwise.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"
#include "template/specialise.h"

typedef struct PlainSchedule {
  ConvSchedule base;
  PaddedInput in;
  int k_block, w_vectors;
  bool flat; /* a plane is one line of outputs */
  int tiles; /* of a chunk; 0: all */
} PlainSchedule;

enum { MAX_K_BLOCK = 8, MAX_W_VECTORS = 4 }; /* of the template */

static const PlainSchedule *schedule_of(const Node *node) { return (const PlainSchedule *)node->schedule; }

/* Weights of a kernel. */
static int64_t points_of(const PlainSchedule *schedule) {
  return schedule->base.conv.channels * schedule->in.d.kernel * schedule->in.h.kernel * schedule->in.w.kernel;
}

/* As many output channels as fit in registers beside the inputs and a weight, so that blocks of a group have nearly
 * equal size. */
static int k_block_of(const Target *target, const Convolution *conv, int w_vectors) {
  int most = (int)min_int((target->vector_registers - 1) / w_vectors - 1, MAX_K_BLOCK);
  int64_t blocks = ceil_div(conv->kernels, most);
  return (int)ceil_div(conv->kernels, blocks);
}

static const Dim *round_dim_up(DimTable *dims, const Dim *dim, int64_t to) {
  return dim_mul(dims, dim_div(dims, dim_add(dims, dim, dim_const(dims, to - 1)), dim_const(dims, to)),
                 dim_const(dims, to));
}

static int64_t tile_columns(const Graph *graph, const PlainSchedule *schedule) {
  return (int64_t)schedule->w_vectors * graph->config->target->lanes;
}

/* A phase of a padded row has every column that a tile may load, also past the end of the output's row. After a plane
 * follows another one, or slack of the scratch. */
static void size_padded_volume(Graph *graph, PlainSchedule *schedule) {
  const Dim *out = schedule->in.w.out;
  bool flat = schedule->flat;
  padded_input_size(graph, &schedule->in, flat ? out : round_dim_up(graph->dims, out, tile_columns(graph, schedule)));
}

static PlainSchedule *new_schedule(Graph *graph, const Convolution *conv, const Knobs *knobs) {
  PlainSchedule *schedule = ARENA_NEW(graph->arena, PlainSchedule);
  schedule->base.conv = *conv;
  schedule->in = padded_input_of(graph, conv);
  schedule->k_block = knobs->value[KNOB_plain_k];
  schedule->w_vectors = knobs->value[KNOB_plain_w];
  schedule->flat = knobs->value[KNOB_plain_flat] != 0;
  schedule->tiles = knobs->value[KNOB_plain_tiles];
  size_padded_volume(graph, schedule);
  return schedule;
}

/* ---- choice ---- */

/* In numbers, at the dims' optimum. */
static PlainLayer layer_of(const Graph *graph, const PlainSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  int64_t images = dim_optimum(conv->x->shape[0]), out_d = dim_optimum(schedule->in.d.out);
  int64_t out_h = dim_optimum(schedule->in.h.out), out_w = dim_optimum(schedule->in.w.out);
  int64_t row = dim_optimum(schedule->in.dense ? schedule->in.w.in : schedule->in.columns);
  int64_t padded_rows =
      dim_optimum(schedule->in.planes) * dim_optimum(schedule->in.rows) * padded_input_phases(&schedule->in.h);
  int64_t in_plane = dim_optimum(schedule->in.d.in) * dim_optimum(schedule->in.h.in) * dim_optimum(schedule->in.w.in);
  return (PlainLayer){.images = images > 0 ? images : 1,
                      .groups = conv->groups,
                      .channels = conv->channels,
                      .kernels = conv->kernels,
                      .window = schedule->in.d.kernel * schedule->in.h.kernel * schedule->in.w.kernel,
                      .in_plane = in_plane,
                      .lines = schedule->flat ? out_d : out_d * out_h,
                      .length = schedule->flat ? (out_h - 1) * row + out_w : out_w,
                      .padded_rows = schedule->in.dense ? 0 : padded_rows,
                      .padded_plane = schedule->in.dense ? 0 : padded_rows * padded_input_phases(&schedule->in.w) * row,
                      .tile = tile_columns(graph, schedule),
                      .chunk = schedule->tiles,
                      .k_block = schedule->k_block,
                      .w_vectors = schedule->w_vectors,
                      .flat = schedule->flat,
                      .residual = conv->residual != NULL};
}

static double seconds_of(const Graph *graph, const PlainSchedule *schedule) {
  PlainLayer layer = layer_of(graph, schedule);
  return plain_seconds(graph->config->target, graph->config->machine, &layer);
}

/* Is the distance of rows in the input that of their outputs' windows, in one plane? */
static bool can_be_flat(Graph *graph, const Convolution *conv) {
  PlainSchedule *schedule = new_schedule(graph, conv, &(Knobs){{1, 1}});
  bool one_row = dim_equals(schedule->in.h.out, 1);
  return !one_row && (!schedule->in.dense || schedule->in.h.stride == 1);
}

static void list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates) {
  (void)node;
  int most_flat = can_be_flat(graph, conv) ? 1 : 0;
  for (int vectors = 3; vectors >= 1; vectors--) {
    for (int flat = 0; flat <= most_flat; flat++) {
      Knobs knobs = {{k_block_of(graph->config->target, conv, vectors), vectors, flat}};
      PlainSchedule *schedule = new_schedule(graph, conv, &knobs);
      PlainLayer layer = layer_of(graph, schedule);
      schedule->tiles = knobs.value[KNOB_plain_tiles] = plain_chunk(graph->config->machine, &layer);
      candidates_add(candidates, &knobs, seconds_of(graph, schedule), true);
    }
  }
}

static void fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs) {
  (void)node;
  knobs->value[KNOB_plain_k] = (int)clamp_int(1, knobs->value[KNOB_plain_k], min_int(conv->kernels, MAX_K_BLOCK));
  knobs->value[KNOB_plain_w] = (int)clamp_int(1, knobs->value[KNOB_plain_w], MAX_W_VECTORS);
  knobs->value[KNOB_plain_flat] = (int)clamp_int(0, knobs->value[KNOB_plain_flat], can_be_flat(graph, conv) ? 1 : 0);
  knobs->value[KNOB_plain_tiles] = (int)clamp_int(0, knobs->value[KNOB_plain_tiles], INT_MAX);
}

/* First the differences between layers of one schedule. */
static const char *text_of(Arena *arena, const PlainSchedule *schedule) {
  const Convolution *conv = &schedule->base.conv;
  Text text = text_new(arena);
  text_add(&text, "plain_%lldx%llds%lldc%lldo%lldg%lld_k%dw%d", (long long)schedule->in.h.kernel,
           (long long)schedule->in.w.kernel, (long long)schedule->in.w.stride, (long long)conv->channels,
           (long long)conv->kernels, (long long)conv->groups, schedule->k_block, schedule->w_vectors);
  if (schedule->flat) text_add(&text, "_flat");
  if (schedule->tiles) text_add(&text, "_tiles%d", schedule->tiles);
  if (!schedule->in.dense) text_add(&text, "_padded");
  return text.data;
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  PlainSchedule *schedule = new_schedule(graph, conv, knobs);
  schedule->base.reads_residual_last = true;
  schedule->base.seconds = seconds_of(graph, schedule);
  schedule->base.base.text = text_of(graph->arena, schedule);
  return &schedule->base;
}

/* ---- memory and calls ---- */

static void scratch(Graph *graph, Node *node) {
  const PlainSchedule *schedule = schedule_of(node);
  if (schedule->in.dense) return;
  DimTable *dims = graph->dims;
  const Dim *slack = dim_const(dims, tile_columns(graph, schedule));
  const Dim *floats = dim_add(dims, padded_input_floats(graph, &schedule->in, node->inputs[0]), slack);
  graph_scratch(graph, node, "padded input", dim_mul(dims, floats, dim_const(dims, (int64_t)sizeof(float))));
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
  graph_pack_floats(graph, node, w->name, count, packed);
}

static KernelSpec *pad_spec(const Graph *graph, const Node *node) {
  return padded_input_spec(graph, &schedule_of(node)->in);
}

static KernelSpec *conv_spec(const Graph *graph, const Node *node) {
  const PlainSchedule *schedule = schedule_of(node);
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_plain");
  kernel_window(spec, 3, &schedule->in.w, &schedule->in.h, &schedule->in.d);
  kernel_knob(spec, "K_BLOCK", schedule->k_block);
  kernel_knob(spec, "K_TAIL", schedule->base.conv.kernels % schedule->k_block);
  kernel_knob(spec, "W_VECTORS", schedule->w_vectors);
  kernel_knob(spec, "PACKED", node->inputs[1]->data != NULL);
  kernel_knob(spec, "DIRECT", schedule->in.dense);
  kernel_knob(spec, "FLAT", schedule->flat);
  kernel_knob(spec, "BIAS", schedule->base.conv.bias != NULL);
  kernel_knob(spec, "RESIDUAL", schedule->base.conv.residual != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(graph->arena, node));
  return spec;
}

static void lower_node(Program *program, Node *node) {
  Graph *graph = program->graph;
  const PlainSchedule *schedule = schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  const Value *x = conv->x, *y = conv->y, *bias = conv->bias;
  lower_padded_input(program, node, &schedule->in, x, node->scratch, NULL);
  Call *call = kernel_call(program, node, conv_spec(graph, node));
  operands_padded_input(program, call, &schedule->in, x, node->scratch, NULL);
  operand_value(call, "w", node->n_packed ? node->packed[0] : node->inputs[1], READ);
  operand_value(call, "bias", bias, READ);
  operand_value(call, "residual", schedule->base.conv.residual, READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", x->shape[0]);
  operand_integer(call, "groups", schedule->base.conv.groups);
  operand_integer(call, "channels", schedule->base.conv.channels);
  operand_integer(call, "kernels", schedule->base.conv.kernels);
  operand_dim(call, "out_d", schedule->in.d.out);
  operand_dim(call, "out_h", schedule->in.h.out);
  operand_dim(call, "out_w", schedule->in.w.out);
  operand_integer(call, "chunk", schedule->tiles);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 4);
}

const ConvAlgorithm convolution_plain = {.kind = {"plain", plain_knobs},
                                         .list = list,
                                         .fit = fit,
                                         .make = make,
                                         .spec = conv_spec,
                                         .before = pad_spec,
                                         .scratch = scratch,
                                         .pack = pack,
                                         .lower = lower_node};
