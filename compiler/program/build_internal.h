/* SPDX-License-Identifier: MIT */
/* Shared by the files that build and change a Program. */
#ifndef RNNCC_BUILD_INTERNAL_H
#define RNNCC_BUILD_INTERNAL_H

#include "program/program.h"

Program *program_new(Graph *graph);

/* Adds the value to the program, with an id and the open block as its home. */
void program_add_value(Program *program, Value *value);

/* The kernel of a specification, specialised for `node` unless it exists. */
const SpecialisedKernel *program_kernel(Program *program, const Node *node, const KernelSpec *spec);

/* A call of an existing kernel. */
Call *program_call(Program *program, const Node *node, const SpecialisedKernel *kernel);

Item *item_new(Arena *arena, ItemKind kind, const Node *node);
void block_add(Arena *arena, Block *block, Item *item);

/* Takes all items out of the block, for passes that put them back with others between. */
typedef struct ItemList {
  int count;
  Item **items;
} ItemList;
ItemList take_items(Block *block);

/* Adds an access to the item and returns its index. bug() for a value outside the program. */
int item_access(const Program *program, Item *item, Access access);

/* Supplies `team`, `run`, `turn` and `fault`; bug() if another parameter has no operand. */
void complete_operands(Call *call, bool alone);

#endif
