/* SPDX-License-Identifier: MIT */
/*
 * Layers whose products are of integers (the attribute `precision`: "int8-dynamic" or "int8-static"). Weights are s8
 * with a scale for each row of W and R, the largest of which is 127; X and the hidden state become u8 in each step,
 * each sample by its own range, or static: all by the node's (templates/panel_int8.h). All else is f32.
 *
 * A product of two rows or more is made in tiles where the target has them, and its weights are packed for that. One
 * row would fill half of a tile, and take as many instructions as by dot products. By llvm-mca's models of a Neoverse
 * V1 and N2 it gains nothing: it takes as long as its weights take to be loaded. Matrices in registers take more rows
 * to gain: panels then have the 64 bytes of 16 columns that an instruction takes side by side, so that they are read in
 * order. How many rows there are is judged by the optimum of T and B; each form runs any number.
 */
#ifndef RNNCC_RECURRENT_INT8_H
#define RNNCC_RECURRENT_INT8_H

#include "kernels/recurrent/layer.h"

/* FORM of templates/panel_int8.h: by dot products, as templates/simd/int8.h has them, or several rows at once. */
typedef enum Int8Form { DOT_ANY, DOT_PAIRS, DOT_SIGNS, IN_TILES, IN_MATRICES } Int8Form;

/* Is it asked for? */
bool int8_asked(const Node *node);
/* By ranges that the node has? */
bool int8_is_static(const Node *node);
/* Sets what the layer has of them. */
void int8_read_ranges(const Node *node, Layer *layer);
/* What keeps its kernels from running the node; NULL: nothing. */
const char *int8_obstacle(const Node *node);

/* Instructions of the target's product of a vector of weights, 4 bytes a lane, with a row. */
int int8_dot(const Target *target, const Node *node);
/* Are so many rows multiplied in tiles? */
bool int8_in_tiles(const Target *target, int64_t rows);
/* Are so many samples of a layer of so many units multiplied with R by matrices in registers? */
bool int8_in_matrices(const Target *target, int64_t samples, int64_t hidden);

/* Sets how products are made, and the rows of their blocks. */
void int8_plan_products(Graph *graph, const Node *node, Layer *layer);

/* Adds the scratch memory of products of integers behind the layer's own. */
void int8_plan_scratch(Layer *layer);

/* Packs a matrix of constant weights for products of that form: its elements, scales and totals. */
void int8_pack(Graph *graph, Node *node, MatrixPlan *matrix, Int8Form form, const char *name);

/* The input's product, and the steps of each direction. */
void int8_lower(Program *program, const Node *node, const Layer *layer);

#endif
