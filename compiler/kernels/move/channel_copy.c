/* SPDX-License-Identifier: MIT */
/*
 * Channels that are contiguous in both layouts are a run. All runs that begin at the same place of a block are copied
 * as one strided box: one box if the blocks of both sides are alike, two if they begin at different channels or one
 * side's are twice as large, and up to as many again for the rest.
 */
#include "kernels/move/channel_copy.h"

#include "kernels/move/strided_copy.h"
#include "layout/blocked.h"
#include "program/build.h"
#include "support/numbers.h"

/* Channel c, pixel p of an image is at c / block * plane + c % block * lane + p * pixel. */
typedef struct ChannelMap {
  bool blocked;
  int64_t block, pixel;
  const Dim *plane, *lane, *image;
} ChannelMap;

static const Dim *pixels_of(const Graph *graph, const Blocked *b) { return dim_mul(graph->dims, b->height, b->width); }

static ChannelMap row_major_map(const Graph *graph, const Blocked *b) {
  const Dim *pixels = pixels_of(graph, b), *channels = dim_const(graph->dims, b->channels);
  return (ChannelMap){.block = b->channels,
                      .plane = dim_const(graph->dims, 0),
                      .lane = pixels,
                      .pixel = 1,
                      .image = dim_mul(graph->dims, channels, pixels)};
}

static ChannelMap map_of(const Graph *graph, const Value *value) {
  Blocked b = blocked_of(graph, value);
  if (!value->channel_block) return row_major_map(graph, &b);
  return (ChannelMap){.blocked = true,
                      .block = b.block,
                      .plane = b.plane,
                      .lane = dim_const(graph->dims, 1),
                      .pixel = b.block,
                      .image = b.image};
}

static const Dim *times(DimTable *dims, int64_t factor, const Dim *dim) {
  return dim_mul(dims, dim_const(dims, factor), dim);
}

static const Dim *place(DimTable *dims, const ChannelMap *map, int64_t channel) {
  return dim_add(dims, times(dims, channel / map->block, map->plane), times(dims, channel % map->block, map->lane));
}

/* The stride of runs that are `period` channels apart. */
static const Dim *run_stride(DimTable *dims, const ChannelMap *map, int64_t period) {
  return map->blocked ? times(dims, period / map->block, map->plane) : times(dims, period, map->lane);
}

typedef struct ChannelCopy {
  Program *program;
  const Node *node;
  ChannelRange from, to;
  ChannelMap in, out;
  const Dim *pixels;
  int64_t period; /* channels after which both sides' blocks are aligned again */
} ChannelCopy;

/* `runs` runs of `length` channels from `channel` on. */
static void copy_runs(const ChannelCopy *c, int64_t channel, int64_t runs, int64_t length) {
  Graph *graph = c->program->graph;
  DimTable *dims = graph->dims;
  bool lanes_last = dim_equals(c->out.lane, 1);
  int lane_axis = lanes_last ? 3 : 2, pixel_axis = lanes_last ? 2 : 3;
  StridedBox box = {.rank = 4,
                    .shape = {c->from.value->shape[0], dim_const(dims, runs)},
                    .in_stride = {c->in.image, run_stride(dims, &c->in, c->period)},
                    .out_stride = {c->out.image, run_stride(dims, &c->out, c->period)},
                    .in_offset = place(dims, &c->in, c->from.first + channel),
                    .out_offset = place(dims, &c->out, c->to.first + channel)};
  box.shape[lane_axis] = dim_const(dims, length);
  box.in_stride[lane_axis] = c->in.lane;
  box.out_stride[lane_axis] = c->out.lane;
  box.shape[pixel_axis] = c->pixels;
  box.in_stride[pixel_axis] = dim_const(dims, c->in.pixel);
  box.out_stride[pixel_axis] = dim_const(dims, c->out.pixel);
  operand_sharing(lower_strided_copy(c->program, c->node, &box, c->from.value, c->to.value), "out", SHARED_APART);
}

/* One side's blocks are the other's, or some of them, or one side's are all of its channels. */
static int64_t period_of(const ChannelMap *in, const ChannelMap *out, int64_t channels) {
  if (!in->blocked && !out->blocked) return channels;
  if (!in->blocked || !out->blocked) return in->blocked ? in->block : out->block;
  int64_t larger = in->block > out->block ? in->block : out->block;
  if (larger % in->block || larger % out->block) bug("channels cannot be copied between unlike blocks");
  return larger;
}

static void copy_all(const ChannelCopy *copy, int64_t channels) {
  for (int64_t c = 0, length; c < min_int(copy->period, channels); c += length) {
    int64_t left_in = copy->in.block - (copy->from.first + c) % copy->in.block;
    int64_t left_out = copy->out.block - (copy->to.first + c) % copy->out.block;
    length = min_int(min_int(left_in, left_out), copy->period - c);
    int64_t runs = channels >= c + length ? (channels - c - length) / copy->period + 1 : 0;
    int64_t rest = min_int(channels - (c + runs * copy->period), length);
    if (runs) copy_runs(copy, c, runs, length);
    if (rest > 0) copy_runs(copy, c + runs * copy->period, 1, rest);
  }
}

void lower_channel_copy(Program *program, const Node *node, ChannelRange from, ChannelRange to, int64_t channels) {
  const Graph *graph = program->graph;
  Blocked b = blocked_of(graph, from.value);
  ChannelCopy copy = {.program = program,
                      .node = node,
                      .from = from,
                      .to = to,
                      .in = map_of(graph, from.value),
                      .out = map_of(graph, to.value),
                      .pixels = pixels_of(graph, &b)};
  copy.period = period_of(&copy.in, &copy.out, channels);
  copy_all(&copy, channels);
}

/* The map of a row-major value with channels last, of the shape that `b` has. */
static ChannelMap channels_last_map(const Graph *graph, const Blocked *b) {
  const Dim *channels = dim_const(graph->dims, b->channels);
  return (ChannelMap){.block = b->channels,
                      .plane = dim_const(graph->dims, 0),
                      .lane = dim_const(graph->dims, 1),
                      .pixel = b->channels,
                      .image = dim_mul(graph->dims, channels, pixels_of(graph, b))};
}

/* All channels of an image, of the shape that `b`, blocked, has. */
static void copy_image(Program *program, const Node *node, const Value *from, const Value *to, const Blocked *b,
                       ChannelMap in, ChannelMap out) {
  ChannelCopy copy = {.program = program,
                      .node = node,
                      .from = {from, 0},
                      .to = {to, 0},
                      .in = in,
                      .out = out,
                      .pixels = pixels_of(program->graph, b),
                      .period = b->block};
  copy_all(&copy, b->channels);
}

void lower_channels_last(Program *program, const Node *node, const Value *from, const Value *to) {
  const Graph *graph = program->graph;
  Blocked b = blocked_of(graph, from);
  copy_image(program, node, from, to, &b, map_of(graph, from), channels_last_map(graph, &b));
}

void lower_channels_first(Program *program, const Node *node, const Value *from, const Value *to) {
  const Graph *graph = program->graph;
  Blocked b = blocked_of(graph, to);
  copy_image(program, node, from, to, &b, channels_last_map(graph, &b), map_of(graph, to));
}
