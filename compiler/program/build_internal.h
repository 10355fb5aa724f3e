/* SPDX-License-Identifier: MIT */
/* What the files that build and change a Program share. */
#ifndef RNNCC_BUILD_INTERNAL_H
#define RNNCC_BUILD_INTERNAL_H

#include "program/program.h"

Program *program_new(Graph *graph);

/* The value joins the program, which gives it an id; at home in the block that is open. */
void program_add_value(Program *program, Value *value);

/* The kernel of a specification, made where there is none yet; `node` asks for it. */
const SpecialisedKernel *program_kernel(Program *program, const Node *node, const KernelSpec *spec);

/* A call of a kernel that is there. */
Call *program_call(Program *program, const Node *node, const SpecialisedKernel *kernel);

Item *item_new(Arena *arena, ItemKind kind, const Node *node);
void block_add(Arena *arena, Block *block, Item *item);

/* Takes all items out of the block, which is then empty: for passes that put them back among others. */
typedef struct ItemList {
  int count;
  Item **items;
} ItemList;
ItemList take_items(Block *block);

/* Adds what the item touches; its index. bug() for a value that the program does not have. */
int item_access(const Program *program, Item *item, Access access);

/* Gives the parameters that the schedule itself supplies; bug() for any other that is not given. */
void complete_operands(Call *call, bool alone);

#endif
