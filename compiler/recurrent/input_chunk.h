/* SPDX-License-Identifier: MIT */
/* For how many steps a layer by itself makes its product with W at once. */
#ifndef RNNCC_INPUT_CHUNK_H
#define RNNCC_INPUT_CHUNK_H

#include "recurrent/cost.h"

/* RecurrentVariant.chunk for a layer that goes forwards, of at most so many steps and samples; 0: all steps. */
int input_chunk(const Machine *machine, const LayerCase *layer, int64_t most_steps, int64_t most_batch);

#endif
