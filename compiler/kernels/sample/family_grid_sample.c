/* SPDX-License-Identifier: MIT */
/* GridSample, whose grid is known only as it runs. */
#include <string.h>

#include "ir/family.h"
#include "program/build.h"

/* As MODE and PADDING of templates/grid_sample.c. */
static int mode_of(const Node *node) {
  const char *mode = node_string(node, "mode");
  if (!strcmp(mode, "nearest")) return 0;
  return !strcmp(mode, "linear") ? 1 : 2;
}

static int padding_of(const Node *node) {
  const char *mode = node_string(node, "padding_mode");
  if (!strcmp(mode, "zeros")) return 0;
  return !strcmp(mode, "border") ? 1 : 2;
}

static void emit_grid_sample(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *grid = node->inputs[1], *y = node->outputs[0];
  int spatial = x->rank - 2;
  KernelSpec *spec = kernel_spec(program, "grid_sample");
  kernel_knob(spec, "SPATIAL", spatial);
  kernel_knob(spec, "MODE", mode_of(node));
  kernel_knob(spec, "PADDING", padding_of(node));
  kernel_knob(spec, "ALIGNED", node_int(node, "align_corners") != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "grid", grid, READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", x->shape[0]);
  operand_dim(call, "channels", x->shape[1]);
  operand_dim_array(call, "extent", spatial, x->shape + 2);
  operand_dim(call, "points", value_count_dim(graph, grid, 1, grid->rank - 1));
  static const double TAPS[] = {1, 2, 4};
  double results = (double)dim_optimum(value_count_dim(graph, y, 0, y->rank)), taps = 1;
  for (int k = 0; k < spatial; k++) taps *= TAPS[mode_of(node)];
  call_cost(call, 2 * results * taps, 4 * results * (1 + taps));
}

const KernelFamily family_grid_sample = {.name = "grid_sample", .emit = emit_grid_sample};
