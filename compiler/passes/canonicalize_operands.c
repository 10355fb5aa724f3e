/* SPDX-License-Identifier: MIT */
/*
 * Operands computed from shapes at run time become constants where they only repeat the input's shape: 0 and -1 in
 * Reshape's target, 1 in Expand's, "to the end" in Slice's ends. Those of Resize, Pad and Slice that are expressions of
 * dims stay that, without a producer: kernels take the dims. The shape arithmetic is then dead. So is an Expand whose
 * readers spread their operands themselves.
 */
#include "passes.h"
#include "shapes/shape.h"

/* A constant for the target's entry; false if it must be computed. */
static bool reshape_entry(const Node *node, int axis, bool *open, int64_t *entry) {
  const Value *input = node->inputs[0], *output = node->outputs[0];
  const Dim *extent = output->shape[axis];
  *entry = -1;
  if (dim_is_const(extent))
    *entry = dim_value(extent);
  else if (axis < input->rank && input->shape[axis] == extent && node_int(node, ATTR_allowzero) == 0)
    *entry = 0;
  else if (*open)
    return false;
  else
    *open = true;
  return true;
}

static bool expand_entry(const Node *node, int axis, int64_t *entry) {
  const Value *input = node->inputs[0], *output = node->outputs[0];
  const Dim *extent = output->shape[axis];
  int mine = axis - (output->rank - input->rank);
  if (dim_is_const(extent))
    *entry = dim_value(extent);
  else if (mine >= 0 && input->shape[mine] == extent)
    *entry = 1;
  else
    return false;
  return true;
}

static void set_operand(Graph *graph, Node *node, int input, int64_t n, const int64_t *numbers) {
  const void *data = arena_copy(graph->arena, numbers, (size_t)n * sizeof *numbers);
  node->inputs[input] = graph_constant(graph, node->inputs[input]->name, RNNCC_I64, 1, &n, data);
}

static void settle_target(Graph *graph, Node *node) {
  int64_t target[MAX_RANK];
  bool open = false;
  for (int axis = 0; axis < node->outputs[0]->rank; axis++) {
    bool known = is_op(node, OP_Reshape) ? reshape_entry(node, axis, &open, &target[axis])
                                         : expand_entry(node, axis, &target[axis]);
    if (!known) return;
  }
  set_operand(graph, node, 1, node->outputs[0]->rank, target);
}

/* Ends that are constants or the axis's extent become constants; not for negative steps. */
static void settle_ends(Graph *graph, Node *node) {
  IntList axes;
  DimList ends;
  SliceAxis sliced[MAX_RANK];
  int64_t numbers[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_axes, 3, &axes) || !operand_dims(graph, node, ATTR_ends, 2, &ends) ||
      !read_slice(graph, node, sliced))
    bug("the slice was good before");
  for (int i = 0; i < ends.n; i++) {
    int axis = axes.given ? normal_axis(axes.items[i], node->inputs[0]->rank) : i;
    bool whole = ends.items[i] == node->inputs[0]->shape[axis] && sliced[axis].step > 0;
    if (!whole && !dim_is_const(ends.items[i])) return;
    numbers[i] = whole ? INT64_MAX : dim_value(ends.items[i]);
  }
  set_operand(graph, node, 2, ends.n, numbers);
}

/* By op: the inputs, a bit each, that only shape rules read. */
static const int read_by_shapes[N_OPS] = {[OP_Pad] = 1 << 1, [OP_Resize] = 1 << 3, [OP_Slice] = 1 << 1 | 1 << 2};

static void detach(Graph *graph, Node *node, int input) {
  const Value *computed = node->inputs[input];
  if (!computed || !computed->producer || !computed->elements || computed->divisors) return;
  Value *known = graph_value(graph, computed->name, computed->where);
  known->dtype = computed->dtype;
  known->rank = computed->rank;
  known->shape = computed->shape;
  known->elements = computed->elements;
  node->inputs[input] = known;
}

/* What an Expand spreads to the shape that another operand has anyway is read before it. */
static void read_unspread(const Node *node) {
  bool fits = false;
  for (int i = 0; i < node->n_inputs; i++)
    fits |= !is_op(node->inputs[i]->producer, OP_Expand) && shapes_agree(node->inputs[i], node->outputs[0]);
  for (int i = 0; fits && i < node->n_inputs; i++)
    if (is_op(node->inputs[i]->producer, OP_Expand)) node->inputs[i] = node->inputs[i]->producer->inputs[0];
}

/* needs: infer_shapes. keeps: types and shapes. */
void canonicalize_operands(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if ((is_op(node, OP_Reshape) || is_op(node, OP_Expand)) && !node->inputs[1]->data) settle_target(graph, node);
    bool all_spread = node->op->shape == op_info(OP_Where)->shape && !is_op(node, OP_PRelu); /* only its slope does */
    if (all_spread) read_unspread(node);
    if (is_op(node, OP_Slice) && node_input(node, 2) && !node->inputs[2]->data) settle_ends(graph, node);
    for (int i = 0; i < node->n_inputs; i++)
      if (read_by_shapes[node->op->kind] >> i & 1) detach(graph, node, i);
  }
}
