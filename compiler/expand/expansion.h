/* SPDX-License-Identifier: MIT */
/*
 * Operators that are written as others: for those where speed is no matter, or where the others are fast. Their rows of
 * ops.def are FORMULAs.
 */
#ifndef RNNCC_EXPANSION_H
#define RNNCC_EXPANSION_H

#include "expand/formula.h"
#include "ir/op.h"

/* Sets results[i] for each output that is wanted (node->outputs[i] is not NULL), of its type and shape: made by the
 * formula's nodes, or a constant, or any value known before. What cannot be expanded is for the op's shape rule to
 * refuse. needs: infer_shapes. */
#define FORMULA(name, in_min, in_max, out_min, out_max, types, layout, shape, formula, ...) Expansion formula;
#include "ir/ops.def"

#endif
