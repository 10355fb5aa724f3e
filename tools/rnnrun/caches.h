/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_CACHES_H
#define RNNRUN_CACHES_H

#include <stddef.h>

/* On each of `threads` CPUs that this thread may use, reads the whole buffer, which evicts other data from its caches.
 */
void caches_evict(const void *buffer, size_t bytes, int threads);

#endif
