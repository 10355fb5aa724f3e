/* SPDX-License-Identifier: MIT */
#include "layout/blocked.h"

#include "machine/targets.h"
#include "support/numbers.h"

const char *blocked_obstacle(const Value *value) {
  if (value->dtype != RNNCC_F32 && !dtype_is_byte(value->dtype)) return "is not of type f32, u8 or i8";
  if (value->rank < 3 || value->rank > 4) return "has neither one spatial axis nor two";
  if (!dim_is_const(value->shape[1])) return "has channels whose number is known only at run time";
  for (int axis = 1; axis < value->rank; axis++) {
    if (dim_upper(value->shape[axis]) <= 0) return "has no element";
    if (dim_lower(value->shape[axis]) <= 0) return "may have no element in some runs";
  }
  _Static_assert(MAX_PLANE_PIXELS == 67108863, "as the next line says");
  if (value_plane_is_large(value)) return "has planes of more than 67108863 pixels";
  return NULL;
}

bool can_be_blocked(const Value *value) { return !blocked_obstacle(value); }

int wide_block(const Graph *graph) { return 2 * graph->config->target->lanes; }

bool has_constant_plane(const Value *value) {
  for (int axis = 2; axis < value->rank; axis++)
    if (!dim_is_const(value->shape[axis])) return false;
  return true;
}

static Blocked in_blocks_of(DimTable *dims, const Value *value, int64_t block) {
  Blocked b = {.block = block, .channels = dim_value(value->shape[1])};
  b.blocks = ceil_div(b.channels, block);
  b.height = value->rank == 4 ? value->shape[2] : dim_const(dims, 1);
  b.width = value->rank > 2 ? value->shape[value->rank - 1] : dim_const(dims, b.channels);
  b.plane = dim_mul(dims, dim_mul(dims, b.height, b.width), dim_const(dims, block));
  b.image = dim_mul(dims, dim_const(dims, b.blocks), b.plane);
  return b;
}

Blocked blocked_of(const Graph *graph, const Value *value) {
  int64_t block = value->channel_block ? value->channel_block : graph->config->target->lanes;
  Blocked b = in_blocks_of(graph->dims, value, block);
  while (value_is_part(value)) {
    value = value->view_of;
    b.image = in_blocks_of(graph->dims, value, block).image;
  }
  return b;
}

const Dim *blocked_vectors(const Graph *graph, const Blocked *b) {
  const Dim *vectors = dim_const(graph->dims, b->block / graph->config->target->lanes);
  return dim_mul(graph->dims, dim_mul(graph->dims, b->height, b->width), vectors);
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
    if (!dim_equals(value->shape[axis], 1)) return false;
  return dim_value(value->shape[1]) % block == 0;
}

int64_t channel_bytes(const Value *value, int64_t channel) {
  int64_t bytes = channel / value->channel_block * value->channel_block * (int64_t)dtype_size(value->dtype);
  for (int axis = 2; bytes && axis < value->rank; axis++) bytes *= dim_value(value->shape[axis]);
  return bytes;
}

int64_t value_first_byte(const Value *value) {
  int64_t bytes = 0;
  for (; value->view_of; value = value->view_of)
    if (value_is_part(value)) bytes += channel_bytes(value, value->first_block * value->channel_block);
  return bytes;
}
