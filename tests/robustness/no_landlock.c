/* SPDX-License-Identifier: MIT */
/* To be preloaded: a kernel without Landlock. */
#include <errno.h>

long syscall(long number, ...);
long syscall(long number, ...) {
  (void)number;
  errno = ENOSYS;
  return -1;
}
