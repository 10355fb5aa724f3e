/* SPDX-License-Identifier: MIT */
/* The kernels of a recurrent layer with their knobs set. */
#ifndef RNNCC_RECURRENT_KERNELS_H
#define RNNCC_RECURRENT_KERNELS_H

#include "kernels/recurrent/layer.h"

/* The product with W, ahead of the steps. */
KernelSpec *input_spec(Arena *arena, const Layer *layer);
KernelSpec *steps_spec(Arena *arena, const Layer *layer, int direction);

enum { MAX_LAYER_KERNELS = 3 };

/* Those that take a layer's time, whatever its schedule is; how many. Packing matrices that are not constant, and
 * checking lengths, are the same by any schedule. */
int layer_kernels(Arena *arena, const Layer *layer, KernelSpec **kernels);

#endif
