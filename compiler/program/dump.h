/* SPDX-License-Identifier: MIT */
/* A Program as text for people. */
#ifndef RNNCC_PROGRAM_DUMP_H
#define RNNCC_PROGRAM_DUMP_H

#include "program/program.h"
#include "support/text.h"

/* Values with their places, then the items in order: kernels with all operands, barriers, loads, blocks. */
void program_dump(Text *out, const Program *program);

/* An item in a few words, without its blocks; a call by its kernel. */
void item_text(Text *out, const Item *item);

#endif
