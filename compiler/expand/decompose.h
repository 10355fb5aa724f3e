/* SPDX-License-Identifier: MIT */
/* Operators that others can express become these. */
#ifndef RNNCC_DECOMPOSE_H
#define RNNCC_DECOMPOSE_H

#include "ir/graph.h"

void decompose(Graph *graph);

#endif
