/* SPDX-License-Identifier: MIT */
/* Which accesses may touch the same bytes. */
#ifndef RNNCC_OVERLAP_H
#define RNNCC_OVERLAP_H

#include "program/program.h"

/* May both touch the same bytes, and does one write? needs: plan_memory */
bool accesses_conflict(const Access *a, const Access *b);

/* Are these accesses of one node that share the value, so that they need no barrier between? */
bool accesses_shared(const Node *a_node, const Access *a, const Node *b_node, const Access *b);

/* Do the memories of two roots overlap? needs: plan_memory */
bool roots_overlap(const Value *x, const Value *y);

/* The value's root, or the slice of one that it views. */
const Value *value_slice(const Value *value);

/* May the node write this value over its inputs in the memory of that one (KernelFamily.overwrites)? */
bool may_overwrite(const Node *node, const Value *written, const Value *read);

#endif
