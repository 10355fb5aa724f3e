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

struct ForkGuard {
  bool alive;  /* true from creation on; false in a child, if wiped */
  pid_t owner; /* 0 if the page is wiped on fork, else who created it */
};

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
