/* SPDX-License-Identifier: MIT */
/* Passes from graph to graph. The contract of each (needs, keeps, breaks) stands above its definition. */
#ifndef RNNCC_GRAPH_PASSES_H
#define RNNCC_GRAPH_PASSES_H

#include "ir/graph.h"

void verify(Graph *graph);
void legalize_types(Graph *graph);
void fuse_prologue(Graph *graph);
void fuse_epilogue(Graph *graph);
void alias_views(Graph *graph);
void choose_schedules(Graph *graph);
void fuse_pools(Graph *graph); /* into the kernels that write their input */

#endif
