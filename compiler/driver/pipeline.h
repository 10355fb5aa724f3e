/* SPDX-License-Identifier: MIT */
/* What happens around every step of main.c: timing, checking, dumping, as the options ask. */
#ifndef RNNCC_PIPELINE_H
#define RNNCC_PIPELINE_H

#include "driver/options.h"
#include "ir/bodies.h"
#include "ir/graph.h"

/* A pass is a function of the graph alone, called by its name, and again for each body of control flow; a step is any
 * statement, with a name. `graph` may be NULL while there is none. */
#define PASS(name, graph) STEP(name, graph, graph_each(graph, name))
#define STEP(name, graph, statement)                                                                                   \
  do {                                                                                                                 \
    pipeline_before(#name);                                                                                            \
    statement;                                                                                                         \
    pipeline_after(#name, graph);                                                                                      \
  } while (0)

void pipeline_start(const Options *options);
void pipeline_before(const char *step);
void pipeline_after(const char *step, Graph *graph);

#endif
