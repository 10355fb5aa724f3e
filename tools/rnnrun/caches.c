/* SPDX-License-Identifier: MIT */
/* Reading on a core empties the caches of that core, and the shared one. So a thread reads on each core, bound to it.
 */
#include "caches.h"

#include <pthread.h>

#include "topology.h"

enum { MAX_THREADS = 1024, LINE_BYTES = 64 };

typedef struct Walk {
  const volatile char *buffer;
  size_t bytes;
  int cpu;
  pthread_t thread;
} Walk;

static void read_lines(const Walk *walk) {
  for (size_t at = 0; at < walk->bytes; at += LINE_BYTES) (void)walk->buffer[at];
}

static void *read_there(void *argument) {
  const Walk *walk = argument;
  CpuMask one = {0};
  CPU_SET_S(walk->cpu, sizeof one, &one.set);
  sched_setaffinity(0, sizeof one, &one.set);
  read_lines(walk);
  return NULL;
}

/* The CPU of the mask that follows `last`; -1: none. */
static int next_cpu(const CpuMask *mask, int last) {
  for (int cpu = last + 1; cpu < MAX_CPUS; cpu++)
    if (CPU_ISSET_S(cpu, sizeof *mask, &mask->set)) return cpu;
  return -1;
}

void caches_evict(const void *buffer, size_t bytes, int threads) {
  CpuMask mask;
  Walk walks[MAX_THREADS] = {{.buffer = buffer, .bytes = bytes}};
  int count = 1, here = sched_getcpu();
  if (bytes == 0) return;
  if (threads > 1 && sched_getaffinity(0, sizeof mask, &mask.set) == 0)
    for (int cpu = -1; count < threads && count < MAX_THREADS && (cpu = next_cpu(&mask, cpu)) >= 0;) {
      if (cpu == here) continue;
      walks[count] = (Walk){.buffer = buffer, .bytes = bytes, .cpu = cpu};
      if (pthread_create(&walks[count].thread, NULL, read_there, &walks[count]) != 0) break;
      count++;
    }
  read_lines(&walks[0]);
  for (int i = 1; i < count; i++) pthread_join(walks[i].thread, NULL);
}
