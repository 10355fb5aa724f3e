/* SPDX-License-Identifier: MIT */
/* A pool as models of other modules see it: a struct of functions, so that neither knows the other's runtime. */
#include <stdlib.h>

#include "context.h"
#include "indirect.h"

typedef struct SharedPool {
  rnncc_pool functions; /* first: its address is this struct's */
  Pool *pool;
  _Atomic int users; /* the host, and models */
} SharedPool;

static Pool *pool_in(const rnncc_pool *pool) { return ((const SharedPool *)pool)->pool; }

static void shared_share(rnncc_pool *pool) {
  atomic_fetch_add_explicit(&((SharedPool *)pool)->users, 1, memory_order_relaxed);
}

static void shared_release(rnncc_pool *pool) {
  if (atomic_fetch_sub_explicit(&((SharedPool *)pool)->users, 1, memory_order_acq_rel) > 1) return;
  pool_destroy(pool_in(pool));
  free(pool);
}

static int32_t shared_take(rnncc_pool *pool, int32_t priority, int32_t waits) {
  return pool_take(pool_in(pool), (Turn){priority, waits != 0});
}

static void shared_give_back(rnncc_pool *pool) { pool_give_back(pool_in(pool)); }

static void shared_for_each(rnncc_pool *pool, rnncc_pool_body *body, void *arg) { pool_each(pool_in(pool), body, arg); }

static int32_t shared_narrowed(const rnncc_pool *pool) { return pool_narrowed(pool_in(pool)); }

static int32_t shared_waiting(const rnncc_pool *pool) { return pool_waiting(pool_in(pool)); }

rnncc_status shared_pool_create(const rnncc_options *given, rnncc_pool **out, const char **why) {
  if (!out) return refused(RNNCC_ERROR_ARGUMENT, "pool_create: `out` is NULL", why);
  *out = NULL;
  rnncc_options options;
  rnncc_status status = options_read(given, &options, why);
  if (status) return status;
  if (options.pool || options.pool_of)
    return refused(RNNCC_ERROR_ARGUMENT, "pool_create: options name a pool already; expected neither pool nor pool_of",
                   why);
  SharedPool *shared = calloc(1, sizeof *shared);
  Pool *pool = shared ? pool_create(&options, module_stack()) : NULL;
  if (!pool) {
    free(shared);
    return refused(RNNCC_ERROR_MEMORY, "pool_create: out of memory", why);
  }
  shared->functions = (rnncc_pool){
      .struct_size = sizeof(rnncc_pool),
      .threads = pool_size(pool),
      .by_steps = options.by_steps != 0,
      .crowded = pool_crowded(pool),
      .share = shared_share,
      .release = shared_release,
      .take = shared_take,
      .give_back = shared_give_back,
      .for_each = shared_for_each,
      .narrowed = shared_narrowed,
      .waiting = shared_waiting,
  };
  shared->pool = pool;
  shared->users = 1;
  *out = &shared->functions;
  return refused(RNNCC_OK, NULL, why);
}

void shared_pool_destroy(rnncc_pool *pool) {
  if (pool) indirect_release(pool);
}
