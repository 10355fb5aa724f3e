/* SPDX-License-Identifier: MIT */
/* The invariants of a Program before it is printed. */
#ifndef RNNCC_VERIFY_PROGRAM_H
#define RNNCC_VERIFY_PROGRAM_H

#include <stdarg.h>

#include "program/program.h"

/* What the passes have settled so far: each stage also has what those before it have. */
typedef enum ProgramStage {
  PROGRAM_UNSETTLED,
  PROGRAM_LOWERED, /* operands: kernels do what they say, within their values, which are written before they are read */
  PROGRAM_PLANNED, /* intermediate values have memory, which holds them until they are read */
  PROGRAM_PLACED,  /* so do the weights: all that is touched has its place */
  PROGRAM_ORDERED, /* barriers: nothing between two of them conflicts */
  PROGRAM_WHOLE,   /* data-dependent dims are loaded before they are needed */
} ProgramStage;

/* The first mistake in what is settled, in words; NULL: none. */
const char *program_mistake(const Program *program, ProgramStage stage);

/* A mistake in the operands of one item, or in the bytes that it touches; NULL: none. */
const char *item_mistake(const Program *program, const Item *item, ProgramStage stage);

/* "n3, k1_gemm_packed: ..."; item: NULL for none. */
const char *mistake_text(const Program *program, const Item *item, const char *format, va_list arguments);

/* For --verify-each: bug() if there is a mistake. */
void verify_stage(const Program *program, ProgramStage stage);

#endif
