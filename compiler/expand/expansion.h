/* SPDX-License-Identifier: MIT */
/*
 * Operators written as others, where speed does not matter or the others are fast. Their rows of ops.def are FORMULAs;
 * of some nodes those are CHOICEs.
 */
#ifndef RNNCC_EXPANSION_H
#define RNNCC_EXPANSION_H

#include "expand/formula.h"
#include "ir/op.h"

/* Sets results[i] for each output with node->outputs[i], of its type and shape: an output of new nodes, a constant, or
 * an older value. The op's shape rule refuses nodes that cannot be expanded. Of a CHOICE: or sets none, and the node
 * stays. needs: infer_shapes. */
#define FORMULA(name, in_min, in_max, out_min, out_max, types, layout, shape, formula, ...) Expansion formula;
#define CHOICE(name, in_min, in_max, out_min, out_max, types, layout, shape, formula, reference, family, ...)          \
  Expansion formula;
#include "ir/ops.def"

#endif
