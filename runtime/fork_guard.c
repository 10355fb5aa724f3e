/* SPDX-License-Identifier: MIT */
/*
 * A page that the kernel clears in the child of a fork (MADV_WIPEONFORK, Linux 4.14): the check costs one load. An
 * atfork handler would need a destructor to survive dlclose. If the kernel does not support this, the process id is
 * compared instead, which costs a system call in each run with several threads.
 */
#include "fork_guard.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "epoch.h"

struct ForkGuard {
  bool alive;  /* true from creation on; false in a child, if wiped */
  pid_t owner; /* 0 if the page is wiped on fork, else who created it */
  _Atomic uint32_t lock;
};

/* The lock's word: one of these, and where the page is not wiped the process that has it, times GUARD_STATES. */
enum { GUARD_FREE, GUARD_HELD, GUARD_AWAITED /* held, and somebody may sleep until it is free */, GUARD_STATES = 4 };

/* QEMU's user mode accepts any advice and ignores it. So an invalid one is tried first: a kernel must refuse it. */
static bool wiped_on_fork(ForkGuard *guard) {
  return madvise(guard, sizeof *guard, -1) != 0 && madvise(guard, sizeof *guard, MADV_WIPEONFORK) == 0;
}

ForkGuard *fork_guard_create(void) {
  ForkGuard *guard = mmap(NULL, sizeof *guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (guard == MAP_FAILED) return NULL;
  *guard = (ForkGuard){.alive = true, .owner = wiped_on_fork(guard) ? 0 : getpid()};
  return guard;
}

void fork_guard_destroy(ForkGuard *guard) {
  if (guard) munmap(guard, sizeof *guard);
}

bool fork_guard_holds(const ForkGuard *guard) { return guard->alive && (!guard->owner || guard->owner == getpid()); }

/* What another process holds, the parent, is free here. */
void fork_guard_lock(ForkGuard *guard) {
  uint32_t process = guard->owner ? (uint32_t)getpid() * GUARD_STATES : 0, taken = process + GUARD_HELD;
  uint32_t seen = atomic_load_explicit(&guard->lock, memory_order_relaxed);
  for (;;) {
    if (seen != process + GUARD_HELD && seen != process + GUARD_AWAITED) {
      if (atomic_compare_exchange_weak_explicit(&guard->lock, &seen, taken, memory_order_acquire, memory_order_relaxed))
        return;
      continue;
    }
    taken = process + GUARD_AWAITED; /* there may be others that sleep */
    if (seen != taken &&
        !atomic_compare_exchange_weak_explicit(&guard->lock, &seen, taken, memory_order_relaxed, memory_order_relaxed))
      continue;
    futex_sleep(&guard->lock, taken);
    seen = atomic_load_explicit(&guard->lock, memory_order_relaxed);
  }
}

void fork_guard_unlock(ForkGuard *guard) {
  uint32_t before = atomic_exchange_explicit(&guard->lock, GUARD_FREE, memory_order_release);
  if (before % GUARD_STATES == GUARD_AWAITED) futex_wake_all(&guard->lock);
}
