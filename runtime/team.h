/* SPDX-License-Identifier: MIT */
/*
 * The thread pool as a kernel sees it: its rank, the team's size, and a barrier.
 *
 * Every worker of a run walks the whole schedule; a kernel cuts its own work by rank and size. The cut may depend on
 * neither the clock nor on who is idle, and the value of each output element may not depend on the cut, so results are
 * bit-identical for any number of threads.
 */
#ifndef RNNCC_TEAM_H
#define RNNCC_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

#include "names.h"

/* A counter that one thread advances and others wait for. The protocol is in epoch.c. */
typedef struct Epoch {
  _Atomic uint32_t value;    /* advanced by its owner alone (release), read by the others (acquire); wraps */
  _Atomic uint32_t sleepers; /* threads that sleep, or are about to, until `value` advances */
} Epoch;

/* How to wait for a counter. */
typedef struct Patience {
  uint32_t spin_ns; /* before sleeping */
  uint32_t crowded; /* more threads than CPUs: pausing would only keep the awaited one from running, so yield at once */
} Patience;

/* The barriers of one worker, counted; team.c says how. Each counter is on a cache line of its own, so that workers do
 * not slow each other. */
typedef struct TeamEpoch {
  _Alignas(128) Epoch entered;  /* by this worker; in a tree by all below it, too */
  _Alignas(128) Epoch released; /* of a parent in a tree: entered by all */
} TeamEpoch;

typedef struct Team {
  int rank, size;    /* 0 <= rank < size */
  TeamEpoch *epochs; /* one per rank, shared; NULL when size is 1 */
  uint32_t passed;   /* barriers that this worker has entered */
  uint64_t waited;   /* ns that this worker has spent in the team's slower barriers */
  Patience patience;
  uint64_t stamped; /* when this worker last said what it did, and of which step; profile.c */
  int step;
  struct Fiber *fiber; /* not NULL: a barrier ends this worker's step (steps.h), and no epoch is used */
} Team;

/* The body of a region: every worker of the team calls it once. */
typedef void PoolBody(void *arg, Team *team);

/* The two halves of a barrier, for work between them that needs no result of the others. team_enter() says that this
 * worker has arrived; team_await() waits until all have. What a worker wrote before its team_enter() is visible to all
 * after team_await(). */
void team_enter(Team *team);
void team_await(Team *team);

#ifdef RNNCC_EDGE /* no team has others */
static inline void team_arrive(Team *team) { (void)team; }
static inline void team_meet(Team *team) { (void)team; }
#else
/* For the pool: the end of a region, which the caller awaits after it has left. What a worker wrote before it left is
 * visible to the caller after. In a tree a worker first waits for those below it. */
RUNTIME_LOCAL void team_leave(Team *team);
RUNTIME_LOCAL void team_await_end(Team *team);

static inline void team_arrive(Team *team) {
  if (team->size > 1) team_enter(team);
}
static inline void team_meet(Team *team) {
  if (team->size > 1) team_await(team);
}
#endif

/* A barrier of all workers of the team. What any wrote before is visible to all after. */
static inline void team_barrier(Team *team) {
  team_arrive(team);
  team_meet(team);
}

/* Where share `index` of n items begins, if they are cut into `shares` as even as can be. Rounded up, so that none is
 * larger than the first, which is the caller's: if there are fewer items than workers, the caller has one. A caller
 * that only waits looks like one that others delay, and the pool would then run the next regions on one thread. */
static inline int64_t share_begin(int64_t n, int64_t index, int64_t shares) {
  return (n * index + shares - 1) / shares;
}

/* The half-open share [*begin, *end) of n items that falls to this worker. */
static inline void team_share(const Team *team, int64_t n, int64_t *begin, int64_t *end) {
  *begin = share_begin(n, team->rank, team->size);
  *end = share_begin(n, team->rank + 1, team->size);
}

#endif
