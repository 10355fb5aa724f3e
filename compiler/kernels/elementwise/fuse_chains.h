/* SPDX-License-Identifier: MIT */
/* Element-wise nodes that read each other become one kernel. */
#ifndef RNNCC_FUSE_CHAINS_H
#define RNNCC_FUSE_CHAINS_H

#include "ir/graph.h"

void fuse_chains(Graph *graph);

#endif
