/* SPDX-License-Identifier: MIT */
/*
 * What a kernel sees of the thread pool: its rank, the team's size, and a barrier.
 *
 * Every worker of a run walks the whole schedule; a kernel cuts its own work by rank and size. The cut may depend on
 * neither the clock nor on who is idle, and the value of each output element may not depend on the cut, so results are
 * bit-identical for any number of threads.
 */
#ifndef RNNCC_TEAM_H
#define RNNCC_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

/* A counter that one thread advances and others wait for. The protocol is in epoch.c. */
typedef struct Epoch {
  _Atomic uint32_t value;    /* advanced by its owner alone (release), read by the others (acquire); wraps */
  _Atomic uint32_t sleepers; /* threads that sleep, or are about to, until `value` advances */
} Epoch;

/* The barriers one worker has entered. On lines of its own, or one worker's progress would slow another's. */
typedef struct TeamEpoch {
  _Alignas(128) Epoch entered;
} TeamEpoch;

typedef struct Team {
  int rank, size;    /* 0 <= rank < size */
  TeamEpoch *epochs; /* one per rank, shared; NULL when size is 1 */
  uint32_t passed;   /* barriers this worker has entered; equals its own epoch */
  uint64_t waited;   /* ns that this worker has spent in the team's slower barriers */
  int crowded;       /* more workers than CPUs: give the CPU away instead of spinning */
} Team;

/* Waits until all workers of the team have come here. What any wrote before is visible to all after. */
void team_wait(Team *team);

static inline void team_barrier(Team *team) {
  if (team->size > 1) team_wait(team);
}

/* The half-open share [*begin, *end) of n items, cut as evenly as can be, that falls to this worker. */
static inline void team_share(const Team *team, int64_t n, int64_t *begin, int64_t *end) {
  *begin = n * team->rank / team->size;
  *end = n * (team->rank + 1) / team->size;
}

#endif
