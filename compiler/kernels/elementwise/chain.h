/* SPDX-License-Identifier: MIT */
/* Chains: element-wise nodes that run as one kernel, made by fuse_chains. */
#ifndef RNNCC_CHAIN_H
#define RNNCC_CHAIN_H

#include "ir/op.h"
#include "program/build.h"

enum { MAX_CHAIN_OPERANDS = 8, MAX_CHAIN_MEMBERS = 32 };

/* The op of a chain. Not in ops.def: models cannot name it. */
extern const OpInfo op_chain;

/* Can y be computed on blocked tensors from these inputs of a chain? */
bool chain_runs_blocked(const Value *y, int n, Value *const *inputs);

#endif
