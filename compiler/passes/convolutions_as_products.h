/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_CONVOLUTIONS_AS_PRODUCTS_H
#define RNNCC_CONVOLUTIONS_AS_PRODUCTS_H

#include "ir/graph.h"

/* Is it a convolution whose window is its whole input, of constant weights in f32? */
bool convolution_can_be_product(Graph *graph, const Node *node);

#endif
