/* SPDX-License-Identifier: MIT */
/*
 * A function that can stop midway and go on later, on another thread: it has a stack of its own. One thread at a time
 * may resume it, and must see what the one before it did.
 */
#ifndef RNNCC_FIBER_H
#define RNNCC_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#include "names.h"

#if defined __x86_64__ || defined __aarch64__ || (defined __riscv && __riscv_xlen == 64)
#define HAS_FIBERS 1
#else
#define HAS_FIBERS 0
#endif

typedef struct Fiber Fiber;

#ifndef RNNCC_EDGE
RUNTIME_LOCAL Fiber *fiber_create(size_t bytes); /* of its stack. NULL: out of memory, or this CPU has none */
RUNTIME_LOCAL void fiber_destroy(Fiber *fiber);

/* Once its function has returned, or before the first: the next fiber_resume() begins with main(arg). */
RUNTIME_LOCAL void fiber_start(Fiber *fiber, void (*main)(void *arg), void *arg);
/* Goes on until the function yields or returns. */
RUNTIME_LOCAL void fiber_resume(Fiber *fiber);
RUNTIME_LOCAL bool fiber_runs(const Fiber *fiber); /* it has not returned */
/* By the function itself. */
RUNTIME_LOCAL void fiber_yield(Fiber *fiber);
#endif

#endif
