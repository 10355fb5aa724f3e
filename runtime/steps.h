/* SPDX-License-Identifier: MIT */
/*
 * A region without threads that wait for each other: each worker of the team is a fiber, which a barrier stops. Between
 * two barriers the workers may go on in any order, on any threads: the region is a list of steps, each of one call for
 * every worker.
 */
#ifndef RNNCC_STEPS_H
#define RNNCC_STEPS_H

#include "pool.h"

typedef struct Steps Steps;

RUNTIME_LOCAL Steps *steps_create(int size, size_t stack); /* stack: as of pool_create(). NULL: out of memory */
RUNTIME_LOCAL void steps_destroy(Steps *steps);

/* Calls body(arg, team) for each worker of the team, step by step; pool_each() makes the calls of each. The pool is the
 * caller's. */
RUNTIME_LOCAL void steps_run(Steps *steps, Pool *pool, PoolBody *body, void *arg);

#endif
