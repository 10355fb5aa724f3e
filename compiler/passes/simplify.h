/* SPDX-License-Identifier: MIT */
/* The passes of the group `simplify`. All need infer_shapes and keep its results. */
#ifndef RNNCC_SIMPLIFY_H
#define RNNCC_SIMPLIFY_H

#include "ir/graph.h"

void fold_constants(Graph *graph);
void canonicalize_operands(Graph *graph);
void drop_identities(Graph *graph);
void split_variadic(Graph *graph);
void match_activations(Graph *graph);
void fold_pads(Graph *graph);
void fold_affine(Graph *graph);
void pool_first(Graph *graph);
void strides_first(Graph *graph);

#endif
