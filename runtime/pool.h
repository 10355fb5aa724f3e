/* SPDX-License-Identifier: MIT */
/*
 * The thread pool of one model, or of several that share it: one parallel region per inference, in which every worker
 * walks the whole schedule. The calling thread is worker 0. If another thread is inside a region, the call runs alone,
 * or waits if it wants. Calls also run alone for a while after a region in which other programs delayed the workers.
 *
 * The threads are the pool's own, a host's, or those of an rnncc_pool, which may be of another module: then this is a
 * guest's view of them, with barriers of its own.
 */
#ifndef RNNCC_POOL_H
#define RNNCC_POOL_H

#include <stdbool.h>

#include "rnncc.h"
#include "team.h"

enum { POOL_MAX_THREADS = 1024 }; /* for as many rnncc plans at most */

typedef struct Pool Pool;

/* What a call does if the threads are not free. */
typedef struct Turn {
  int32_t priority;
  bool waits; /* else it goes on alone */
} Turn;

#ifndef RNNCC_EDGE
/* Starts the workers. options: complete, of this header's size. stack: the bytes that bodies need of it; 0: not known.
 * The system may give fewer threads than asked; that is no error. NULL: out of memory. */
RUNTIME_LOCAL Pool *pool_create(const rnncc_options *options, size_t stack);
/* A guest of `of`, which it shares; of this runtime or of another module's. */
RUNTIME_LOCAL Pool *pool_join(rnncc_pool *of, size_t stack);

/* Bytes of a worker's stack: 1 MiB, or what bodies need and 256 KiB. Kernels have their working memory in the arena:
 * what is over is for libc, a debugger's or sanitizer's frames. Small, because a host that locks its memory pays for
 * every page. */
static inline size_t worker_stack_bytes(size_t need) {
  size_t usual = (size_t)1 << 20, more = need + ((size_t)256 << 10);
  return more > usual ? more : usual;
}
/* One more calls pool_destroy(). */
RUNTIME_LOCAL void pool_share(Pool *pool);
/* The last of those who share the pool joins the workers; then no region may be running. In the child of a fork, where
 * there are none, it only frees. NULL is fine. */
RUNTIME_LOCAL void pool_destroy(Pool *pool);
RUNTIME_LOCAL int pool_size(const Pool *pool);     /* the caller counts as one */
RUNTIME_LOCAL int pool_narrowed(const Pool *pool); /* workers whose affinity mask could not be restored */
RUNTIME_LOCAL int pool_waiting(const Pool *pool);  /* calls that wait for the threads */
RUNTIME_LOCAL bool pool_crowded(const Pool *pool); /* more threads than CPUs */

/* Whether the threads are now the caller's. If so, pool_each() calls body(arg, rank) once for each rank: at once, or by
 * a host's parallel_for as that does it. */
RUNTIME_LOCAL bool pool_take(Pool *pool, Turn turn);
RUNTIME_LOCAL void pool_each(Pool *pool, rnncc_pool_body *body, void *arg);
RUNTIME_LOCAL void pool_give_back(Pool *pool);

/* For tests and measurements: regions never run alone because an earlier one was delayed. Call it before the first. */
RUNTIME_LOCAL void pool_keep_together(Pool *pool);
#endif

/* Calls body(arg, team) once on every worker, or once alone with a team of one if the pool stays in use or was left
 * behind by a fork; returns when all are done. What the caller wrote before is visible to the body, and the body's
 * writes to the caller after. Allocates nothing; with a pool of one thread it makes no system call. */
RUNTIME_LOCAL void pool_run(Pool *pool, Turn turn, PoolBody *body, void *arg);

#endif
