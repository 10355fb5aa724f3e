/* SPDX-License-Identifier: MIT */
/*
 * Whether this process is the one that started the workers. A fork copies the pool's memory but not its threads, so a
 * child that pushed jobs to them would wait for ever. Nor would a thread that is not there let go what it has locked:
 * so the guard has a lock, which is free in a child, whoever had it in the parent.
 */
#ifndef RNNCC_FORK_GUARD_H
#define RNNCC_FORK_GUARD_H

#include <stdbool.h>

#include "names.h"

typedef struct ForkGuard ForkGuard;

RUNTIME_LOCAL ForkGuard *fork_guard_create(void); /* NULL: out of memory */
RUNTIME_LOCAL void fork_guard_destroy(ForkGuard *guard);
/* Is this still the process, not a fork of the one, that created the guard? */
RUNTIME_LOCAL bool fork_guard_holds(const ForkGuard *guard);

/* For threads that may wait. */
RUNTIME_LOCAL void fork_guard_lock(ForkGuard *guard);
RUNTIME_LOCAL void fork_guard_unlock(ForkGuard *guard);

#endif
