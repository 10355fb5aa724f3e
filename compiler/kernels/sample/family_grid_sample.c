/* SPDX-License-Identifier: MIT */
/* GridSample; its grid is known at run time only. */
#include "ir/family.h"
#include "knobs.h"
#include "program/build.h"

static const int modes[] = {
    [GRID_nearest] = SAMPLE_NEAREST, [GRID_linear] = SAMPLE_LINEAR, [GRID_cubic] = SAMPLE_CUBIC};
static const int paddings[] = {[GRID_PADDING_zeros] = BEYOND_ZEROS,
                               [GRID_PADDING_border] = BEYOND_BORDER,
                               [GRID_PADDING_reflection] = BEYOND_REFLECTION};
static const double taps_of[] = {[GRID_nearest] = 1, [GRID_linear] = 2, [GRID_cubic] = 4};

static void lower_grid_sample(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *grid = node->inputs[1], *y = node->outputs[0];
  int spatial = x->rank - 2, mode = node_word(node, ATTR_mode);
  KernelSpec *spec = kernel_spec(program, "grid_sample");
  kernel_knob(spec, "SPATIAL", spatial);
  kernel_knob(spec, "MODE", modes[mode]);
  kernel_knob(spec, "PADDING", paddings[node_word(node, ATTR_padding_mode)]);
  kernel_knob(spec, "ALIGNED", node_int(node, ATTR_align_corners) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "grid", grid, READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", x->shape[0]);
  operand_dim(call, "channels", x->shape[1]);
  operand_dim_array(call, "extent", spatial, x->shape + 2);
  operand_dim(call, "points", value_count_dim(graph, grid, 1, grid->rank - 1));
  double taps = 1;
  for (int k = 0; k < spatial; k++) taps *= taps_of[mode];
  call_flops_of(call, 2 * taps, y);
  call_bytes_of(call, 4 * (1 + taps), y);
}

const KernelFamily family_grid_sample = {.lower = lower_grid_sample};
