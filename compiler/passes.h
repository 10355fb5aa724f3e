/* SPDX-License-Identifier: MIT */
/* Every pass of passes.def, declared. The contract of each (needs, keeps, breaks) stands above its definition. */
#ifndef RNNCC_PASSES_H
#define RNNCC_PASSES_H

#include "ir/graph.h"

typedef struct Program Program; /* program/program.h */

#define GRAPH_PASS(name, says) void name(Graph *graph);
#define SUB_PASS(group, name, says) void name(Graph *graph);
#define PROGRAM_PASS(name, settles, says) void name(Program *program);
#include "passes.def"

#endif
