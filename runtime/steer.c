/* SPDX-License-Identifier: MIT */
/*
 * The kernel often puts a new or woken thread on the CPU of the thread that makes or wakes it, as if that one were
 * about to sleep; here it is about to compute. The two then share that CPU, next to an idle one, until the kernel
 * balances the load, which took up to 8 ms here: dozens of inferences. So the caller takes its own CPU out of the
 * thread's mask, right after it made the thread or while it wakes it, and puts it back at once: the kernel has chosen
 * by then, and the thread may again run on every CPU of its mask.
 *
 * A mask without another CPU (a bound worker, one CPU) stays as it is, and so does one that cannot be read or set: then
 * the kernel decides. If the host sets the thread's mask meanwhile, that mask stays.
 */
#include "steer.h"

/* The mask without this thread's CPU. False if that changes nothing or leaves none. */
static bool mask_elsewhere(const CpuMask *mask, CpuMask *away) {
  int cpu = sched_getcpu();
  *away = *mask;
  if (cpu < 0 || cpu >= MAX_CPUS || !CPU_ISSET_S(cpu, sizeof *mask, &mask->set)) return false;
  CPU_CLR_S(cpu, sizeof *away, &away->set);
  return CPU_COUNT_S(sizeof *away, &away->set) > 0;
}

Steering steer_away(pthread_t thread) {
  Steering steering = {0};
  if (pthread_getaffinity_np(thread, sizeof steering.mask, &steering.mask.set)) return steering;
  steering.narrowed = mask_elsewhere(&steering.mask, &steering.away) &&
                      !pthread_setaffinity_np(thread, sizeof steering.away, &steering.away.set);
  return steering;
}

bool steer_end(const Steering *steering, pthread_t thread) {
  CpuMask now;
  if (!steering->narrowed) return true;
  bool read = !pthread_getaffinity_np(thread, sizeof now, &now.set);
  if (read && !CPU_EQUAL_S(sizeof now, &now.set, &steering->away.set)) return true;
  return !pthread_setaffinity_np(thread, sizeof steering->mask, &steering->mask.set);
}
