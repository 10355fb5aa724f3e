/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/blocked_elementwise.h"

#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"

/* The operand's extent along y's axis, by ONNX's broadcasting; NULL: no such axis, the same as an extent of 1. */
static const Dim *extent_along(const Value *y, const Value *operand, int axis) {
  int own = axis - (y->rank - operand->rank);
  return own < 0 ? NULL : operand->shape[own];
}

static bool moves(const Value *y, const Value *operand, int axis) {
  const Dim *extent = extent_along(y, operand, axis);
  return extent && !dim_equals(extent, 1);
}

static bool has_pixels(const Value *y, const Value *operand) {
  return moves(y, operand, 2) || moves(y, operand, y->rank - 1);
}

/* Does the operand vary along all spatial axes longer than 1, in every run, or along none? */
static bool pixels_fit(const Value *y, const Value *operand) {
  if (!has_pixels(y, operand)) return true;
  for (int axis = 2; axis < y->rank; axis++)
    if (moves(y, operand, axis) ? extent_along(y, operand, axis) != y->shape[axis] : !dim_equals(y->shape[axis], 1))
      return false;
  return true;
}

/* Bytes have an element for each channel, and are no constants. */
static bool type_fits(const Value *y, const Value *operand) {
  bool channels = moves(y, operand, 1) || dim_equals(y->shape[1], 1);
  if (dtype_is_byte(operand->dtype)) return channels && !value_is_constant(operand);
  return operand->dtype == RNNCC_F32;
}

bool blocked_operands_fit(const Value *y, int n, const Value *const *operands) {
  for (int k = 0; k < n; k++) {
    const Value *operand = operands[k];
    bool constant = value_is_constant(operand);
    if (!type_fits(y, operand) || operand->rank > y->rank || !pixels_fit(y, operand)) return false;
    if (constant ? moves(y, operand, 0) || has_pixels(y, operand) : operand->rank != y->rank) return false;
    if (!constant && !can_be_blocked(operand)) return false;
  }
  return true;
}

/* Does each operand, except constants of one element, have an element for each pixel and channel of y? Then a block may
 * have several vectors. needs: blocked_operands_fit */
static bool operands_alike(const Value *y, int n, const Value *const *operands) {
  if (y->rank < 3) return false;
  for (int k = 0; k < n; k++) {
    const Value *operand = operands[k];
    if (value_is_constant(operand) ? value_count(operand) != 1 : !has_pixels(y, operand) || !moves(y, operand, 1))
      return false;
  }
  return true;
}

LayoutSet blocked_layouts(const Value *y, int n, const Value *const *operands) {
  if (!blocked_operands_fit(y, n, operands)) return 0;
  return LAYOUT_SET_BLOCKED | (operands_alike(y, n, operands) ? LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE) : 0);
}

Value *blocked_constant(Graph *graph, const Value *y, const Value *constant) {
  int64_t count = value_count(constant);
  if (count == 1) return (Value *)constant;
  return channel_constant(graph, constant->name, constant->data, count, blocked_of(graph, y).block);
}

BlockedWalk blocked_walk(const Graph *graph, const Value *y, const Value *operand) {
  DimTable *dims = graph->dims;
  int64_t lanes = blocked_of(graph, y).block;
  if (value_is_constant(operand)) {
    bool channels = value_count(operand) != 1;
    const Dim *zero = dim_const(dims, 0);
    return (BlockedWalk){.channels = channels, .block = channels ? dim_const(dims, lanes) : zero, .image = zero};
  }
  Blocked b = blocked_of(graph, operand);
  BlockedWalk walk = {.pixels = has_pixels(y, operand), .channels = b.channels != 1 || dim_value(y->shape[1]) == 1};
  walk.block = walk.channels ? b.plane : dim_const(dims, 0);
  walk.image = walk.channels ? b.image : dim_mul(dims, b.height, b.width);
  if (!moves(y, operand, 0)) walk.image = dim_const(dims, 0);
  return walk;
}

static void set_knobs(KernelSpec *spec, int operand, const BlockedWalk *walk) {
  static const char *const PIXELS[ELEMENTWISE_OPERANDS] = {"A_PIXELS", "B_PIXELS", "C_PIXELS"};
  static const char *const CHANNELS[ELEMENTWISE_OPERANDS] = {"A_CHANNELS", "B_CHANNELS", "C_CHANNELS"};
  kernel_knob(spec, PIXELS[operand], walk->pixels);
  kernel_knob(spec, CHANNELS[operand], walk->channels);
}

void lower_blocked_elementwise(Program *program, const Node *node, const char *op, const Value *y, int n,
                               const Value *const *operands) {
  static const char *const OPERAND[ELEMENTWISE_OPERANDS] = {"a", "b", "c"};
  static const char *const IMAGE[ELEMENTWISE_OPERANDS] = {"a_image", "b_image", "c_image"};
  static const char *const BLOCK[ELEMENTWISE_OPERANDS] = {"a_block", "b_block", "c_block"};
  const Graph *graph = program->graph;
  Blocked b = blocked_of(graph, y);
  const Dim *zero = dim_const(graph->dims, 0);
  BlockedWalk walks[ELEMENTWISE_OPERANDS];
  KernelSpec *spec = kernel_spec(program, "elementwise_blocked");
  kernel_knob(spec, "OPERANDS", n);
  for (int k = 0; k < ELEMENTWISE_OPERANDS; k++) {
    walks[k] = k < n ? blocked_walk(graph, y, operands[k]) : (BlockedWalk){.image = zero, .block = zero};
    if (k < n) set_knobs(spec, k, &walks[k]);
  }
  kernel_hook(spec, "op", op);
  Call *call = kernel_call(program, node, spec);
  const Dim *pixels = dim_mul(graph->dims, b.height, b.width);
  double images = (double)(b.blocks * b.block), streams = 1; /* channels of an image */
  for (int k = 0; k < ELEMENTWISE_OPERANDS; k++) {
    operand_value(call, OPERAND[k], operands[k < n ? k : 0], READ);
    operand_extent(call, IMAGE[k], walks[k].image);
    operand_extent(call, BLOCK[k], walks[k].block);
    streams += walks[k].pixels;
  }
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", y->shape[0]);
  operand_integer(call, "blocks", b.blocks);
  operand_extent(call, "pixels", blocked_vectors(graph, &b));
  operand_extent(call, "y_image", b.image);
  call_flops(call, images, EXTENTS(y->shape[0], pixels));
  call_bytes(call, images * streams * sizeof(float), EXTENTS(y->shape[0], pixels));
}
