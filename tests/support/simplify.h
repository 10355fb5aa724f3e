/* SPDX-License-Identifier: MIT */
/* The passes of passes.def's groups, each on one graph. */
#ifndef RNNCC_TEST_SIMPLIFY_H
#define RNNCC_TEST_SIMPLIFY_H

#include "passes.h"

#define OF_simplify(call) call
#define OF_fuse_quantised(call)
static inline void simplify(Graph *graph) {
#define SUB_PASS(group, name, says) OF_##group(name(graph);)
#include "passes.def"
}

#undef OF_simplify
#define OF_simplify(call)
#undef OF_fuse_quantised
#define OF_fuse_quantised(call) call
static inline void fuse_quantised(Graph *graph) {
#define SUB_PASS(group, name, says) OF_##group(name(graph);)
#include "passes.def"
}

#endif
