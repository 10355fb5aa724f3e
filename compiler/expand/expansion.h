/* SPDX-License-Identifier: MIT */
/*
 * Operators that are written as others: for those where speed is no matter, or where the others are fast. Such a row of
 * ops.def has the family NONE and the reference ref_expanded, and one in expand/expansions.def.
 */
#ifndef RNNCC_EXPANSION_H
#define RNNCC_EXPANSION_H

#include "expand/formula.h"
#include "ir/op.h"

/* Sets results[i] for each output that is wanted (node->outputs[i] is not NULL), of its type and shape: made by the
 * formula's nodes, or a constant, or any value known before. What cannot be expanded is for the op's shape rule to
 * refuse. needs: infer_shapes. */
typedef void Expansion(const Formula *f, const Node *node, Value **results);

#define EXPANSION(op, function) Expansion function;
#include "expand/expansions.def"
#undef EXPANSION

#endif
