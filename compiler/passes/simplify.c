/* SPDX-License-Identifier: MIT */
#include "passes/simplify.h"
#include "passes/passes.h"

/* needs: infer_shapes. keeps: types and shapes, the names of inputs and outputs. breaks: nothing.
 * Afterwards no node has only constant inputs (unless the result would be large), no node just passes its input on,
 * but for copies that outputs need, Max, Min and Sum have two inputs, and activations written as arithmetic are one
 * op. Pad is part of the convolution or pooling behind it where that pads alike; what is a scale and a shift of each
 * channel is part of the convolution beside it where nobody else reads the value between; batch normalisation by
 * constants that stays is nothing but a scale and a shift. No mean that shrinks an image follows a 1x1 convolution, and
 * no convolution makes pixels that the 1x1 convolutions behind it step over. */
void simplify(Graph *graph) {
  fold_constants(graph);
  canonicalize_operands(graph);
  drop_identities(graph);
  split_variadic(graph);
  match_activations(graph);
  fold_pads(graph);
  graph_remove_dead(graph);
  fold_affine(graph);
  graph_remove_dead(graph);
  pool_first(graph);
  strides_first(graph);
}
