/* SPDX-License-Identifier: MIT */
/* A lock for whoever may wait. 0: free; 1: held; 2: held, and somebody may sleep until it is free. */
#ifndef RNNCC_LATCH_H
#define RNNCC_LATCH_H

#include "epoch.h"

typedef _Atomic uint32_t Latch;

/* Of Drepper, "Futexes Are Tricky" (2011), the second mutex. */
static inline void latch_lock(Latch *latch) {
  uint32_t seen = 0;
  if (atomic_compare_exchange_strong_explicit(latch, &seen, 1, memory_order_acquire, memory_order_relaxed)) return;
  while (atomic_exchange_explicit(latch, 2, memory_order_acquire)) futex_sleep(latch, 2);
}

static inline void latch_unlock(Latch *latch) {
  if (atomic_exchange_explicit(latch, 0, memory_order_release) == 2) futex_wake_all(latch);
}

#endif
