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
  int64_t block, plane, lane, pixel, image;
} ChannelMap;

static ChannelMap map_of(const Graph *graph, const Value *value) {
  Blocked b = blocked_of(graph, value);
  int64_t pixels = b.height * b.width;
  if (!value->channel_block)
    return (ChannelMap){.block = b.channels, .lane = pixels, .pixel = 1, .image = b.channels * pixels};
  return (ChannelMap){.block = b.block, .plane = b.plane, .lane = 1, .pixel = b.block, .image = b.image};
}

static int64_t place(const ChannelMap *map, int64_t channel) {
  return channel / map->block * map->plane + channel % map->block * map->lane;
}

/* The stride of runs that are `period` channels apart. */
static int64_t run_stride(const ChannelMap *map, int64_t period) {
  return map->plane ? period / map->block * map->plane : period * map->lane;
}

typedef struct ChannelCopy {
  Program *program;
  const Node *node;
  ChannelRange from, to;
  ChannelMap in, out;
  int64_t pixels, period; /* channels after which both sides' blocks are aligned again */
} ChannelCopy;

/* `runs` runs of `length` channels from `channel` on. */
static void copy_runs(const ChannelCopy *c, int64_t channel, int64_t runs, int64_t length) {
  Graph *graph = c->program->graph;
  DimTable *dims = graph->dims;
  bool lanes_last = c->out.lane == 1;
  int lane_axis = lanes_last ? 3 : 2, pixel_axis = lanes_last ? 2 : 3;
  StridedBox box = {.rank = 4,
                    .shape = {c->from.value->shape[0], dim_const(dims, runs)},
                    .in_stride = {dim_const(dims, c->in.image), dim_const(dims, run_stride(&c->in, c->period))},
                    .out_stride = {dim_const(dims, c->out.image), dim_const(dims, run_stride(&c->out, c->period))},
                    .in_offset = dim_const(dims, place(&c->in, c->from.first + channel)),
                    .out_offset = dim_const(dims, place(&c->out, c->to.first + channel))};
  box.shape[lane_axis] = dim_const(dims, length);
  box.in_stride[lane_axis] = dim_const(dims, c->in.lane);
  box.out_stride[lane_axis] = dim_const(dims, c->out.lane);
  box.shape[pixel_axis] = dim_const(dims, c->pixels);
  box.in_stride[pixel_axis] = dim_const(dims, c->in.pixel);
  box.out_stride[pixel_axis] = dim_const(dims, c->out.pixel);
  operand_sharing(lower_strided_copy(c->program, c->node, &box, c->from.value, c->to.value), "out", SHARED_APART);
}

/* One side's blocks are the other's, or some of them, or one side's are all of its channels. */
static int64_t period_of(const ChannelMap *in, const ChannelMap *out, int64_t channels) {
  if (!in->plane && !out->plane) return channels;
  if (!in->plane || !out->plane) return in->plane ? in->block : out->block;
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
                      .pixels = b.height * b.width};
  copy.period = period_of(&copy.in, &copy.out, channels);
  copy_all(&copy, channels);
}

void lower_channels_last(Program *program, const Node *node, const Value *from, const Value *to) {
  const Graph *graph = program->graph;
  Blocked b = blocked_of(graph, from);
  int64_t pixels = b.height * b.width;
  ChannelCopy copy = {
      .program = program,
      .node = node,
      .from = {from, 0},
      .to = {to, 0},
      .in = map_of(graph, from),
      .out = {.block = b.channels, .lane = 1, .pixel = b.channels, .image = b.channels * pixels},
      .pixels = pixels,
      .period = b.block,
  };
  copy_all(&copy, b.channels);
}
