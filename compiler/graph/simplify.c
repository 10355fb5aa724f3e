/* SPDX-License-Identifier: MIT */
#include "graph/simplify.h"
#include "passes.h"

/* needs: infer_shapes. keeps: types and shapes, the names of inputs and outputs. breaks: nothing.
 * Afterwards no node has only constant inputs (unless the result would be large), no node just passes its input on,
 * but for copies that outputs need, Max, Min and Sum have two inputs, and batch normalisation by constants is a scale
 * and a shift, in the convolution before it where that has no other reader. */
void simplify(Graph *graph) {
  fold_constants(graph);
  settle_operands(graph);
  drop_identities(graph);
  split_variadic(graph);
  fold_batch_norm(graph);
  graph_remove_dead(graph);
}
