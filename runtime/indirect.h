/* SPDX-License-Identifier: MIT */
/*
 * All calls through pointers, each kind in a function of its own that is not inlined. rnncc adds up the stack that
 * calls of a module need from which function calls which (compiler/link/stack_need.c): these, which it knows by how
 * their names begin, call any function whose address was taken.
 */
#ifndef RNNCC_INDIRECT_H
#define RNNCC_INDIRECT_H

#include "module.h"

#define INDIRECT static __attribute__((noinline, unused))

/* ---- what the module has ---- */

INDIRECT void indirect_part(void (*part)(const Run *run, Team *team), const Run *run, Team *team) { part(run, team); }

INDIRECT void indirect_shapes(void (*write)(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]),
                              const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]) {
  write(dims, shapes);
}

/* ---- bodies of regions ---- */

INDIRECT void indirect_body(PoolBody *body, void *arg, Team *team) { body(arg, team); }

INDIRECT uint64_t indirect_each(rnncc_pool_body *body, void *arg, int32_t rank) { return body(arg, rank); }

INDIRECT void indirect_main(void (*main)(void *arg), void *arg) { main(arg); }

/* ---- a host's own functions, whose stack is the host's to know ---- */

INDIRECT void indirect_parallel_for(rnncc_parallel_for parallel_for, void *host, int n,
                                    void (*body)(void *arg, int index), void *arg) {
  parallel_for(host, n, body, arg);
}

INDIRECT void indirect_start(void (*thread_start)(void *host, int32_t worker), void *host, int32_t worker) {
  thread_start(host, worker);
}

/* ---- functions of a pool, which another module may have made: they are taken to need what this one's do ---- */

INDIRECT void indirect_share(rnncc_pool *pool) { pool->share(pool); }
INDIRECT void indirect_release(rnncc_pool *pool) { pool->release(pool); }
INDIRECT int32_t indirect_take(rnncc_pool *pool, int32_t priority, int32_t waits) {
  return pool->take(pool, priority, waits);
}
INDIRECT void indirect_give_back(rnncc_pool *pool) { pool->give_back(pool); }
INDIRECT void indirect_for_each(rnncc_pool *pool, rnncc_pool_body *body, void *arg) { pool->for_each(pool, body, arg); }
INDIRECT int32_t indirect_narrowed(const rnncc_pool *pool) { return pool->narrowed(pool); }

#endif
