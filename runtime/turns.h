/* SPDX-License-Identifier: MIT */
/*
 * Who has the pool's threads, and who waits for them. Whoever does not want to wait takes part by one exchange.
 *
 * busy:    1 while somebody has the threads. Taken by exchange, given back by a store or handed over to one who waits.
 *          What the last holder wrote is visible to the next.
 * waiting: as many as there are in the list. Read by the holder after it has given back.
 * first:   those who wait, in the order in which they will have the threads. Under the lock.
 */
#ifndef RNNCC_TURNS_H
#define RNNCC_TURNS_H

#include <stdbool.h>

#include "latch.h"

typedef struct Waiter {
  struct Waiter *next;
  int32_t priority;
  Epoch granted; /* 1: the threads are this one's */
} Waiter;

typedef struct Turns {
  _Alignas(128) _Atomic uint32_t busy;
  _Alignas(128) _Atomic uint32_t waiting;
  Latch lock;
  Waiter *first;
} Turns;

/* Whether the threads are now the caller's. */
RUNTIME_LOCAL bool turns_try(Turns *turns);
/* The same, after waiting: of those who wait when the threads are given back, the first of the highest priority. */
RUNTIME_LOCAL void turns_wait(Turns *turns, int32_t priority, Patience patience);
RUNTIME_LOCAL void turns_end(Turns *turns);

#endif
