/* SPDX-License-Identifier: MIT */
#include "ir/op.h"
#include "reroll/cell.h"
#include "reroll/roll.h"
#include "reroll/steps.h"

/* One piece's parts as step `step`. False if there are more or fewer than in the others. */
static bool add_step(Graph *graph, Steps *steps, int step, const Strip *piece) {
  Strip parts[MAX_CELL_INPUTS];
  int n = strip_parts(graph, *piece, NULL, MAX_CELL_INPUTS, parts);
  if (step == 0) *steps = steps_new(graph->arena, steps->n, n);
  if (n == 0 || n != steps->n_parts) return false;
  for (int part = 0; part < n; part++) steps_part(steps, part)[step] = parts[part];
  return true;
}

/* The inputs of a Concat along `axis`, as steps. */
static bool read_stack(Graph *graph, const Node *node, int axis, Steps *steps) {
  const Dim *one = dim_const(graph->dims, 1);
  *steps = (Steps){.n = node->n_inputs};
  for (int step = 0; step < steps->n; step++) {
    Strip piece;
    if (node->inputs[step]->shape[axis] != one || !strip_whole(node->inputs[step], &piece)) return false;
    if (!strip_rows(graph, &piece) || !add_step(graph, steps, step, &piece)) return false;
  }
  for (int part = 0; part < steps->n_parts; part++)
    if (strips_direction(steps_part(steps, part), steps->n) != 1) return false;
  return true;
}

static void merge_stack(Graph *graph, const Node *node) {
  static const int64_t rows_first[] = {1, 0, 2};
  Value *output = node->outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), output->rank);
  Steps steps;
  if (axis == output->rank - 1 || node->n_inputs < 2 || !read_stack(graph, node, axis, &steps)) return;
  const Builder builder = {graph, node->name, node->where};
  Value *merged = build_steps(&builder, &steps, 1);
  if (rows_come_first(output, axis)) merged = build_transpose(&builder, merged, rows_first);
  build_instead(&builder, output, merged);
}

void merge_stacks(Graph *graph) {
  int n_nodes = graph->n_nodes; /* not those that are made here */
  for (int n = 0; n < n_nodes; n++)
    if (is_op(graph->nodes[n], OP_Concat)) merge_stack(graph, graph->nodes[n]);
}
