/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_CONVOLUTIONS_AS_PRODUCTS_H
#define RNNCC_CONVOLUTIONS_AS_PRODUCTS_H

#include "ir/graph.h"

/* Is it a convolution of constant weights in f32 whose window is its whole input, or of 1x1 windows, which is faster as
 * a product of weights of this form's type and group? */
bool convolution_can_be_product(Graph *graph, const Node *node, const NarrowWeights *form);

#endif
