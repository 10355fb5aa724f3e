/* SPDX-License-Identifier: MIT */
/* The chunk of steps for the product with W, for a layer outside a stack. */
#ifndef RNNCC_INPUT_CHUNK_H
#define RNNCC_INPUT_CHUNK_H

#include "kernels/recurrent/cost.h"

/* RecurrentVariant.chunk; 0: all steps. */
int input_chunk(const Machine *machine, const LayerCase *layer);

#endif
