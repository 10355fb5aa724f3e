/* SPDX-License-Identifier: MIT */
/* Constants in the layouts that kernels read. */
#ifndef RNNCC_PACK_WEIGHTS_H
#define RNNCC_PACK_WEIGHTS_H

#include "ir/graph.h"

void pack_weights(Graph *graph);

#endif
