/* SPDX-License-Identifier: MIT */
/*
 * Layers whose products are of integers (the attribute `precision`: "int8-dynamic" or "int8-static"). Weights are s8
 * with a scale for each row of W and R, the largest of which is 127; X and the hidden state become u8 in each step,
 * each sample by its own range, or static: all by the node's (templates/panel_int8.h). All else is f32.
 */
#ifndef RNNCC_RECURRENT_INT8_H
#define RNNCC_RECURRENT_INT8_H

#include "kernels/recurrent/layer.h"

/* Is it asked for? */
bool int8_asked(const Node *node);
/* By ranges that the node has? */
bool int8_is_static(const Node *node);
/* Sets what the layer has of them. */
void int8_read_ranges(const Node *node, Layer *layer);
/* What keeps its kernels from running the node; NULL: nothing. */
const char *int8_obstacle(const Node *node);

/* DOT_ANY of templates/simd/int8.h; or, if the form counts on the target and the weights are known, DOT_PAIRS, if they
 * are so small, or DOT_SIGNS, if none is -128. */
int int8_form(const Target *target, const Node *node);
/* Instructions of the target's product of a vector of weights, 4 bytes a lane. */
int int8_dot(const Target *target, const Node *node);

/* Adds the scratch memory of products of integers behind the layer's own. */
void int8_plan_scratch(Layer *layer);

/* Packs a matrix of constant weights for products of that form: its elements, scales and totals. */
void int8_pack(Graph *graph, Node *node, MatrixPlan *matrix, int form, const char *name);

/* The input's product, and the steps of each direction. */
void int8_lower(Program *program, const Node *node, const Layer *layer);

#endif
