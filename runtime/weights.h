/* SPDX-License-Identifier: MIT */
/*
 * Weights that can change. What runs read is a version: an address for each block, which never changes once it is
 * published. A version shares with the one before the blocks that are the same.
 *
 * current: the newest version, which new runs take. Stored by a setter, under the lock (seq_cst).
 *
 * reading: of each context, the version that its run reads; NULL: it does not run. Stored by the run (seq_cst), which
 * then looks whether `current` is still that version, and begins anew if not. So if a setter, which stores `current`
 * before it looks at `reading`, does not find the old version there, no run will read it any more. Cleared by the run
 * (release), which pairs with the setter's load: what the run has read is read.
 *
 * All else belongs to who has the lock. A run never takes it.
 */
#ifndef RNNCC_WEIGHTS_H
#define RNNCC_WEIGHTS_H

#include "context.h"

#ifdef RNNCC_MUTABLE
/* NULL: out of memory. `threads` pack. */
RUNTIME_LOCAL ModelWeights *model_weights_create(const Module *module, Pool *pool, Turn turn);
RUNTIME_LOCAL void model_weights_destroy(ModelWeights *weights); /* NULL is fine */

/* A context is known to the setters from its creation until it is destroyed. */
RUNTIME_LOCAL void weights_add_reader(ModelWeights *weights, WeightsReader *reader);
RUNTIME_LOCAL void weights_remove_reader(ModelWeights *weights, WeightsReader *reader);

/* `numbers`: [info.n_weights], new ones; NULL: that weight stays. False: out of memory, and nothing has changed. */
RUNTIME_LOCAL bool weights_set_numbers(ModelWeights *weights, const void **numbers);
RUNTIME_LOCAL void weights_get_numbers(ModelWeights *weights, int index, void *data);
#endif

#endif
