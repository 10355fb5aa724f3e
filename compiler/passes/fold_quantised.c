/* SPDX-License-Identifier: MIT */
/* QuantizeLinear of constants: quantisers that leave weights in f32 write them so. */
#include "ir/op.h"
#include "ir/tensor.h"
#include "passes.h"
#include "passes/quantised.h"

static Tensor *quantised_constant(Graph *graph, const Value *x, const Quantisation *how) {
  int64_t shape[MAX_RANK], extent = 1, inner = 1;
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = dim_value(x->shape[axis]);
  if (!is_whole(how)) extent = shape[how->axis];
  for (int axis = how->axis + 1; !is_whole(how) && axis < x->rank; axis++) inner *= shape[axis];
  Tensor *numbers = tensor_new(graph->arena, how->dtype, x->rank, shape);
  for (int64_t i = 0; i < tensor_count(numbers); i++)
    tensor_set_int(numbers, i, quantised_number(how, i / inner % extent, (float)value_element(x, i)));
  return numbers;
}

/* True if the node's output is a constant now. */
static bool fold(Graph *graph, const Node *node) {
  Quantisation how;
  if (!read_quantize(node, &how) || !has_8_bits(&how) || !is_known(&how) || !node->inputs[0]->data) return false;
  Value *result = node->outputs[0];
  result->data = quantised_constant(graph, node->inputs[0], &how)->data;
  result->producer = NULL;
  return true;
}

/* needs: legalize_types. keeps: types and shapes. Afterwards no QuantizeLinear to 8 bits has only constant inputs. */
void fold_quantised(Graph *graph) {
  int kept = 0;
  if (!has_pairs(graph)) return;
  for (int n = 0; n < graph->n_nodes; n++)
    if (!fold(graph, graph->nodes[n])) graph->nodes[kept++] = graph->nodes[n];
  graph->n_nodes = kept;
  graph_renumber(graph);
}
