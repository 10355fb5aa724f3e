/* SPDX-License-Identifier: MIT */
/* For how many steps a layer by itself makes its product with W at once. */
#ifndef RNNCC_INPUT_CHUNK_H
#define RNNCC_INPUT_CHUNK_H

#include "kernels/recurrent/cost.h"

/* RecurrentVariant.chunk; 0: all steps. */
int input_chunk(const Machine *machine, const LayerCase *layer);

#endif
