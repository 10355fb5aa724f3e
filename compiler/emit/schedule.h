/* SPDX-License-Identifier: MIT */
/* Shared by the files that print the schedule. */
#ifndef RNNCC_EMIT_SCHEDULE_H
#define RNNCC_EMIT_SCHEDULE_H

#include "emit/unit.h"

const char *indent_of(int depth);

/* The argument of a parameter of the call, by its index. */
void emit_operand(Text *out, const Program *program, const Call *call, int index);

/* A pointer t<id> for each value that the block's items [from, to) touch. */
void emit_pointers(Text *out, const Program *program, const Block *block, int from, int to, int depth);

void emit_item(Unit *unit, const Program *program, const Item *item, int depth);

#endif
