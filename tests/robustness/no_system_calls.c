/* SPDX-License-Identifier: MIT */
/* To be preloaded: a kernel without what programs ask for by syscall(): Landlock, seccomp's filters. */
#include <errno.h>

long syscall(long number, ...);
long syscall(long number, ...) {
  (void)number;
  errno = ENOSYS;
  return -1;
}
