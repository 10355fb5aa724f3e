/* SPDX-License-Identifier: MIT */
/* ONNX NonMaxSuppression: boxes [batch, n, 4], scores [batch, classes, n]; a row for each selected box. */
#include "shapes/shape.h"

const Dim *nms_keep(Graph *graph, const Node *node) {
  DimTable *dims = graph->dims;
  const Dim *n = node->inputs[0]->shape[1], *zero = dim_const(dims, 0);
  if (!node_input(node, 2)) return zero;
  const Dim **limit = known_elements(graph, node->inputs[2]);
  return limit ? dim_min(dims, n, dim_max(dims, zero, limit[0])) : n;
}

bool shape_nms(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  if (!check_rank(graph, node, 0, 3, 3) || !check_rank(graph, node, 1, 3, 3)) return false;
  const Dim *const *boxes = node->inputs[0]->shape, *const *scores = node->inputs[1]->shape;
  const Dim *wanted_boxes[] = {boxes[0], boxes[1], dim_const(dims, 4)},
            *wanted_scores[] = {boxes[0], scores[1], boxes[1]};
  if (!check_shape(graph, node, 0, 3, wanted_boxes, "[batch, boxes, 4]") ||
      !check_shape(graph, node, 1, 3, wanted_scores, "[batch, classes, boxes]"))
    return false;
  for (int input = 2; input < 5; input++)
    if (!check_scalar(graph, node, input)) return false;
  if (dim_upper(boxes[1]) > INT32_MAX) return shape_unsupported(node, "more than 2^31 boxes");
  const Dim *most = dim_mul(dims, dim_mul(dims, boxes[0], scores[1]), nms_keep(graph, node));
  const Dim *shape[] = {data_dependent_dim(graph, 0, most), dim_const(dims, 3)};
  return set_shape(graph, node, 0, 2, shape);
}
