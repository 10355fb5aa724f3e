/* SPDX-License-Identifier: MIT */
/* Checks of indices before a kernel reads them. */
#ifndef RNNCC_INDEX_CHECK_H
#define RNNCC_INDEX_CHECK_H

#include "program/build.h"

/* Are the indices in [-length, length): constant ones, or those of a graph input, which gets a check before the run? */
bool indices_checked(Program *program, const Value *indices, const Dim *length);

/* The same for elements first, first + step, ... of constant indices. */
bool constants_in_range(const Value *indices, int64_t first, int64_t step, const Dim *length);

#endif
