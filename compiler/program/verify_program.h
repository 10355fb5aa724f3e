/* SPDX-License-Identifier: MIT */
/* The invariants of a Program before it is printed. */
#ifndef RNNCC_VERIFY_PROGRAM_H
#define RNNCC_VERIFY_PROGRAM_H

#include "program/program.h"

/* The first mistake, in words; NULL: none. */
const char *program_mistake(const Program *program);

/* A mistake in the operands of one item, or in the bytes that it touches; NULL: none. */
const char *item_mistake(const Program *program, const Item *item);

#endif
