/* SPDX-License-Identifier: MIT */
/* Replaces operators that can be written as others. */
#ifndef RNNCC_DECOMPOSE_H
#define RNNCC_DECOMPOSE_H

#include "ir/graph.h"

void decompose(Graph *graph);

#endif
