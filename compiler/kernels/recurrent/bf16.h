/* SPDX-License-Identifier: MIT */
/*
 * Layers whose products are of bf16 in matrices (templates/gemm_bf16.c, templates/recurrent_bf16.c): that of W with all
 * samples of all steps, that of R with up to 16 samples of a step, or both. Inputs and states are rounded to bf16, or
 * each is the sum of three such numbers, as the weights' form says; these make 5 samples of 16. They run on their own,
 * in no wavefront, and have no form that splits a sum or makes the product with W in the steps.
 */
#ifndef RNNCC_RECURRENT_BF16_H
#define RNNCC_RECURRENT_BF16_H

#include "kernels/recurrent/layer.h"

/* Is the product with INPUT_W or INPUT_R such a one? */
bool bf16_product_in_matrices(const Target *target, const Node *node, int input);
/* Has the node such a product? */
bool bf16_in_matrices(const Target *target, const Node *node);

/* Sets which products are. */
void bf16_settle_products(const Graph *graph, const Node *node, Layer *layer);
/* Resets what the kernels do not support. */
void bf16_settle_variant(Layer *layer);

/* Adds the scratch memory of X and states in bf16 behind the layer's own. */
void bf16_plan_scratch(Graph *graph, Layer *layer);

#endif
