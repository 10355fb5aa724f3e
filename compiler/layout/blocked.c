/* SPDX-License-Identifier: MIT */
#include "layout/blocked.h"

#include "machine/targets.h"
#include "support/numbers.h"

const char *blocked_obstacle(const Value *value) {
  if (value->dtype != RNNCC_F32) return "is not of type f32";
  if (value->rank < 3 || value->rank > 4) return "has neither one spatial axis nor two";
  for (int axis = 1; axis < value->rank; axis++) {
    if (!dim_is_const(value->shape[axis])) return "has an extent that is known only at run time";
    if (dim_value(value->shape[axis]) == 0) return "has no element";
  }
  return NULL;
}

bool can_be_blocked(const Value *value) { return !blocked_obstacle(value); }

int wide_block(const Graph *graph) { return 2 * graph->config->target->lanes; }

static int64_t extent(const Value *value, int axis) { return dim_value(value->shape[axis]); }

static Blocked in_blocks_of(const Value *value, int64_t block) {
  Blocked b = {.block = block, .channels = extent(value, 1)};
  b.blocks = ceil_div(b.channels, block);
  b.height = value->rank == 4 ? extent(value, 2) : 1;
  b.width = extent(value, value->rank - 1);
  b.plane = b.height * b.width * block;
  b.image = b.blocks * b.plane;
  return b;
}

Blocked blocked_of(const Graph *graph, const Value *value) {
  Blocked b = in_blocks_of(value, value->channel_block ? value->channel_block : graph->config->target->lanes);
  while (value_is_part(value)) {
    value = value->view_of;
    b.image = in_blocks_of(value, b.block).image;
  }
  return b;
}

Value *channel_constant(Graph *graph, const char *name, const float *data, int64_t count, int64_t block) {
  int64_t padded = round_up(count, block);
  float *floats = ARENA_ARRAY(graph->arena, float, padded);
  for (int64_t c = 0; c < count; c++) floats[c] = data[c];
  return graph_constant(graph, name, RNNCC_F32, 1, &padded, floats);
}

Value *channel_constant_rounded(Graph *graph, const char *name, const double *data, int64_t count, int64_t block) {
  float *floats = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t c = 0; c < count; c++) floats[c] = (float)data[c];
  return channel_constant(graph, name, floats, count, block);
}

bool same_bytes(const Value *value, int block) {
  for (int axis = 2; axis < value->rank; axis++)
    if (extent(value, axis) != 1) return false;
  return extent(value, 1) % block == 0;
}

int64_t channel_bytes(const Value *value, int64_t channel) {
  int64_t block = value->channel_block;
  return channel / block * in_blocks_of(value, block).plane * (int64_t)sizeof(float);
}

int64_t value_first_byte(const Value *value) {
  int64_t bytes = 0;
  for (; value->view_of; value = value->view_of)
    if (value_is_part(value)) bytes += channel_bytes(value, value->first_block * value->channel_block);
  return bytes;
}
