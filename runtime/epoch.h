/* SPDX-License-Identifier: MIT */
/* Waiting for a counter to advance: spin for a bounded time, then sleep. */
#ifndef RNNCC_EPOCH_H
#define RNNCC_EPOCH_H

#include "team.h"

/* Sets the counter to `value`, its successor, and wakes whoever sleeps on it. Only the counter's owner may call it. */
RUNTIME_LOCAL void epoch_advance(Epoch *epoch, uint32_t value);

/* Returns once the counter is `goal` or past it. What its owner wrote before advancing is visible after.
 * The result is how long it took, in ns, or 0 if it took no more than a fraction of a microsecond. */
RUNTIME_LOCAL uint64_t epoch_await(Epoch *epoch, uint32_t goal, Patience patience);

/* A word in the kernel's hands. sleep() returns at once if *word is not `seen`; else after a wake-up or a signal, or
 * spuriously. */
RUNTIME_LOCAL void futex_sleep(_Atomic uint32_t *word, uint32_t seen);
RUNTIME_LOCAL void futex_wake_all(_Atomic uint32_t *word);

#endif
