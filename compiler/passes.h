/* SPDX-License-Identifier: MIT */
/* All passes over a graph, for those who run them in order. Each is declared by its room. */
#ifndef RNNCC_PASSES_H
#define RNNCC_PASSES_H

#include "expand/decompose.h"
#include "kernels/elementwise/fuse_chains.h"
#include "kernels/recurrent/plan_recurrent.h"
#include "layout/passes.h"
#include "passes/passes.h"
#include "passes/simplify.h"
#include "program/pack_weights.h"
#include "reroll/reroll_rnn.h"
#include "shapes/infer_shapes.h"

#endif
