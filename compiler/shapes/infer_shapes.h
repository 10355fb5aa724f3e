/* SPDX-License-Identifier: MIT */
/* Types, shapes and known elements of all values. */
#ifndef RNNCC_INFER_SHAPES_H
#define RNNCC_INFER_SHAPES_H

#include "ir/graph.h"

void infer_shapes(Graph *graph);

#endif
