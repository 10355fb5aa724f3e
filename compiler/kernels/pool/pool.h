/* SPDX-License-Identifier: MIT */
/* Shared by the families of pools: their windows, and the operands that their kernels have in common. */
#ifndef RNNCC_KERNELS_POOL_H
#define RNNCC_KERNELS_POOL_H

#include "ir/integer_mean.h"
#include "kernels/conv/convolution.h"

typedef struct Program Program; /* program/program.h */

Window pool_window(Graph *graph, const Node *node);
/* W, H, D. */
void pool_axes(Graph *graph, const Node *node, const Window *window, ConvAxis axes[3]);

/* Does it run on planes, blocked, of these axes: never of negative padding, and with elements? */
bool pool_planes_fit(Graph *graph, const Node *node, const Window *window);

/* May a row-major kernel combine the rows of windows first? The input columns of POOL_COLUMNS outputs are on the stack
 * then. */
bool pool_rows_first(const ConvAxis *w);

/* For the profile. */
void pool_cost(Call *call, const Node *node, const Window *window);

/* The operands of the kernels of blocked, and of row-major tensors. */
void call_blocked_pool(const Graph *graph, Call *call, const Node *node, const ConvAxis axes[3]);
void call_plain_pool(Graph *graph, Call *call, const Node *node, const ConvAxis axes[3]);
void operand_pads(Call *call, const ConvAxis axes[3]);

/* templates/pool_int8.c of this KIND. mean: NULL: of maxima. */
KernelSpec *pool_int8_spec(Program *program, const Node *node, const ConvAxis axes[3], int kind);
void call_pool_int8(const Graph *graph, Call *call, const Node *node, const ConvAxis axes[3], const IntegerMean *mean);

/* What templates/mean_int8.h needs. */
void operands_mean(Call *call, const IntegerMean *mean);

#endif
