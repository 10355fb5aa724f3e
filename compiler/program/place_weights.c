/* SPDX-License-Identifier: MIT */
/* The weights file: every constant that a kernel reads, in the order of first use, then what trained weights
 * start with; each on a 64-byte boundary. */
#include "ir/mutable.h"
#include "passes.h"
#include "program/program.h"
#include "support/list.h"
#include "support/numbers.h"

int64_t weight_end(const Value *value) { return round_up(value->offset + value_max_bytes(value), WEIGHT_ALIGNMENT); }

static void place(Program *program, Value *value) {
  value->storage = STORAGE_WEIGHTS;
  value->offset = program->weights_bytes;
  program->weights_bytes = weight_end(value);
  *LIST_ADD(program->arena, program->weights, program->n_weights, program->weights_capacity) = value;
}

static void place_constant(Program *program, Value *value) {
  if (!value->block) {
    place(program, value);
    return;
  }
  value->storage = STORAGE_BLOCK;
  value->slot = value->block - 1;
}

static void place_constants(Item *item, Block *block, void *context) {
  (void)block;
  for (int a = 0; a < item->n_accesses; a++) {
    Value *root = value_root(item->accesses[a].value);
    if (root->data && root->storage == STORAGE_NONE) place_constant(context, root);
  }
}

/* What a model of the module begins with. */
static void place_given(Program *program) {
  const MutableWeights *mutables = program->graph->mutables;
  for (int i = 0; mutables && i < mutables->n_weights; i++) place(program, mutables->weights[i].given);
}

/* needs: lower. keeps: the items. Sets the offset of every constant that an item touches, and fills program->weights.
 * Of weights that can change it places what the model has. */
void place_weights(Program *program) {
  program->weights_bytes = 0;
  program->n_weights = 0;
  place_given(program);
  each_item(program, place_constants, program);
  for (int i = 0; i < program->graph->n_parameters; i++) {
    Value *initial = program->graph->initials[i];
    if (initial->storage == STORAGE_NONE) place(program, initial);
  }
}

/* ---- weights that can change ---- */

static void note_reads(Item *item, Block *block, void *context) {
  (void)block;
  for (int a = 0; a < item->n_accesses; a++) {
    const Value *root = value_root(item->accesses[a].value);
    if (root->storage == STORAGE_BLOCK) ((bool *)context)[root->slot] = true;
  }
}

const bool *kept_weights(const Program *program) {
  const MutableWeights *m = program->graph->mutables;
  Arena *scratch = arena_new();
  bool *is_read = ARENA_ARRAY(scratch, bool, mutable_blocks(m)),
       *kept = ARENA_ARRAY(program->arena, bool, m->n_weights);
  each_item(program, note_reads, is_read);
  for (int i = 0; i < m->n_weights; i++) kept[i] = weight_is_kept(scratch, m, i, is_read[i]);
  arena_free(scratch);
  return kept;
}

int64_t mutable_bytes(const Program *program) {
  const MutableWeights *m = program->graph->mutables;
  const bool *kept = kept_weights(program);
  int64_t bytes = 0;
  for (int i = 0; i < mutable_blocks(m); i++)
    if (i >= m->n_weights || kept[i]) bytes += mutable_block_bytes(m, i);
  return bytes;
}
