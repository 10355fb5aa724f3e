/* SPDX-License-Identifier: MIT */
/* Whether indices are known to be in range before a kernel reads them. */
#ifndef RNNCC_INDEX_CHECK_H
#define RNNCC_INDEX_CHECK_H

#include "program/build.h"

/* Those of a constant, or of a graph input, which is then checked before the run; every index must be in
 * [-length, length). */
bool indices_checked(Program *program, const Value *indices, const Dim *length);

/* The same for elements first, first + step, ... of constant indices alone. */
bool constants_in_range(const Value *indices, int64_t first, int64_t step, const Dim *length);

#endif
