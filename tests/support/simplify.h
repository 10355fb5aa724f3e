/* SPDX-License-Identifier: MIT */
/* The passes of passes.def's group `simplify`, on one graph. */
#ifndef RNNCC_TEST_SIMPLIFY_H
#define RNNCC_TEST_SIMPLIFY_H

#include "passes.h"

static inline void simplify(Graph *graph) {
#define SUB_PASS(group, name, says) name(graph);
#include "passes.def"
}

#endif
