/* SPDX-License-Identifier: MIT */
/* Which accesses may touch the same bytes. */
#ifndef RNNCC_OVERLAP_H
#define RNNCC_OVERLAP_H

#include "program/program.h"

/* Do both touch the same bytes, and one of them writes? needs: plan_memory */
bool accesses_conflict(const Access *a, const Access *b);

/* May calls of one node touch it so without a barrier between, because both say that they share it? */
bool accesses_shared(const Node *a_node, const Access *a, const Node *b_node, const Access *b);

/* Do the memories of two roots overlap? needs: plan_memory */
bool roots_overlap(const Value *x, const Value *y);

#endif
