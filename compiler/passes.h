/* SPDX-License-Identifier: MIT */
/* The passes, in pipeline order. The contract of each (needs, keeps, breaks) stands above its definition. */
#ifndef RNNCC_PASSES_H
#define RNNCC_PASSES_H

#include "ir/graph.h"

#define GRAPH_PASS(name) void name(Graph *graph);
#include "passes.def"
#undef GRAPH_PASS

void plan_recurrent(Graph *graph); /* how each recurrent layer is run */
void choose_schedules(Graph *graph);
void fuse_pools(Graph *graph); /* into the kernels before them */
void pack_weights(Graph *graph);

/* All of main.c's steps by name, for --dump-after; NULL-terminated. */
extern const char *const pass_names[];

#endif
