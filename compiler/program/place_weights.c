/* SPDX-License-Identifier: MIT */
/* The weights file: every constant that a kernel reads, in the order of first use, each on a 64-byte boundary. */
#include <string.h>

#include "passes.h"
#include "program/program.h"
#include "support/list.h"

enum { ALIGNMENT = 64 };

static void place(Program *program, Value *value) {
  value->storage = STORAGE_WEIGHTS;
  value->offset = program->weights_bytes;
  program->weights_bytes += (value_max_bytes(value) + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
  *LIST_ADD(program->arena, program->weight_ends, program->n_weights, program->weights_capacity) =
      program->weights_bytes;
}

static void place_constants(Item *item, Block *block, void *context) {
  (void)block;
  for (int a = 0; a < item->n_accesses; a++) {
    Value *root = value_root(item->accesses[a].value);
    if (root->data && root->storage == STORAGE_NONE) place(context, root);
  }
}

/* needs: lower. keeps: the items. Sets the offset of every constant that an item touches, and fills
 * program->weights and weight_ends. */
void place_weights(Program *program) {
  program->weights_bytes = 0;
  program->n_weights = 0;
  each_item(program, place_constants, program);
  program->weights = arena_alloc(program->arena, (size_t)program->weights_bytes);
  for (int i = 0; i < program->n_values; i++) {
    const Value *value = program->values[i];
    if (value->storage == STORAGE_WEIGHTS && value->data)
      memcpy(program->weights + value->offset, value->data, (size_t)value_max_bytes(value));
  }
}
