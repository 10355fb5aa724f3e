/* SPDX-License-Identifier: MIT */
/* The passes that decide and set layouts. */
#ifndef RNNCC_LAYOUT_PASSES_H
#define RNNCC_LAYOUT_PASSES_H

#include "ir/graph.h"

void choose_layouts(Graph *graph);
void insert_layout_transforms(Graph *graph);
void place_parts(Graph *graph);

#endif
