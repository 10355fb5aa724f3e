/* SPDX-License-Identifier: MIT */
/* The kernels of a recurrent layer with their knobs set. */
#ifndef RNNCC_RECURRENT_KERNELS_H
#define RNNCC_RECURRENT_KERNELS_H

#include "kernels/recurrent/layer.h"

/* A product with W, ahead of the steps. */
KernelSpec *input_spec(Arena *arena, const Layer *layer, int product);
KernelSpec *int8_input_spec(Arena *arena, const Layer *layer); /* the same of integers */
KernelSpec *steps_spec(Arena *arena, const Layer *layer, int direction);

/* Bodies of hooks: the function of x, and its derivative by its value y. */
const char *activation_body(Arena *arena, const Activation *activation);
const char *slope_body(Arena *arena, const Activation *activation);

enum { MAX_LAYER_KERNELS = 4 };

/* The kernels whose time depends on the schedule; returns how many. Packing matrices and checking lengths do not. */
int layer_kernels(Arena *arena, const Layer *layer, KernelSpec **kernels);

#endif
