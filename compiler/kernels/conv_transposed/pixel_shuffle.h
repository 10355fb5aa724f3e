/* SPDX-License-Identifier: MIT */
/* A node that puts the pixels of phases, which are channels, between each other: templates/pixel_shuffle.c. */
#ifndef RNNCC_PIXEL_SHUFFLE_H
#define RNNCC_PIXEL_SHUFFLE_H

#include "ir/op.h"

/* Of `strides` u and v, x [N, u v K, H, W], the channels of a phase beside each other, to y [N, K, u H, v W]; over one
 * axis x [N, v K, W] to y [N, K, v W]. Not in ops.def: models cannot name it. */
extern const OpInfo op_pixel_shuffle;

/* Appends the node that makes `y`, whose shape is known, of `x`. strides: of each spatial axis. */
void pixel_shuffle(Graph *graph, Value *x, Value *y, const int64_t *strides);

/* The predicted time in seconds, of tensors that are blocked, or of row-major ones. */
double pixel_shuffle_seconds(const Graph *graph, const Value *x, bool blocked);

/* Are the channels of y whole vectors, so that it runs blocked? */
bool pixel_shuffle_runs_blocked(const Graph *graph, const Value *y);

#endif
