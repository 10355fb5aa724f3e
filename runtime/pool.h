/* SPDX-License-Identifier: MIT */
/*
 * The thread pool of one model, or of several that share it: one parallel region per inference, in which every worker
 * walks the whole schedule. The calling thread is worker 0. If another thread is inside a region, the call runs alone:
 * there is no queue. Calls also run alone for a while after a region in which other programs delayed the workers.
 */
#ifndef RNNCC_POOL_H
#define RNNCC_POOL_H

#include "rnncc.h"
#include "team.h"

enum { POOL_MAX_THREADS = 1024 }; /* for as many rnncc plans at most */

typedef struct Pool Pool;

#ifndef RNNCC_EDGE
/* Starts the workers. options: complete, of this header's size. The system may give fewer threads than asked; that is
 * no error. NULL: out of memory. */
RUNTIME_LOCAL Pool *pool_create(const rnncc_options *options);
/* One more calls pool_destroy(). */
RUNTIME_LOCAL void pool_share(Pool *pool);
/* The last of those who share the pool joins the workers; then no region may be running. In the child of a fork, where
 * there are none, it only frees. */
RUNTIME_LOCAL void pool_destroy(Pool *pool);
RUNTIME_LOCAL int pool_size(const Pool *pool);     /* the caller counts as one */
RUNTIME_LOCAL int pool_narrowed(const Pool *pool); /* workers whose affinity mask could not be restored */

/* For tests and measurements: regions never run alone because an earlier one was delayed. Call it before the first. */
RUNTIME_LOCAL void pool_keep_together(Pool *pool);
#endif

/* Calls body(arg, team) once on every worker, or once alone with a team of one if the pool is in use or was left
 * behind by a fork; returns when all are done. What the caller wrote before is visible to the body, and the body's
 * writes to the caller after. Allocates nothing; with a pool of one thread it makes no system call. */
RUNTIME_LOCAL void pool_run(Pool *pool, PoolBody *body, void *arg);

#endif
