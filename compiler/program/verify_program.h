/* SPDX-License-Identifier: MIT */
/* What must be true of a Program before it is printed. */
#ifndef RNNCC_VERIFY_PROGRAM_H
#define RNNCC_VERIFY_PROGRAM_H

#include "program/program.h"

/* The first mistake that is found, in words; NULL: there is none. */
const char *program_mistake(const Program *program);

/* A mistake of one item by itself: in its operands, and in the bytes that it touches. */
const char *item_mistake(const Program *program, const Item *item);

#endif
