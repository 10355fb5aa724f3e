/* SPDX-License-Identifier: MIT */
/*
 * The kernel often puts a new or woken thread on the CPU of the thread that makes or wakes it, as if that one were
 * about to sleep; here it is about to compute. The two then share that CPU, next to an idle one, until the kernel
 * balances the load, which took up to 8 ms here: dozens of inferences. So the caller takes its own CPU out of the
 * thread's mask while it makes or wakes the thread, and puts it back at once: the kernel has chosen by then, and the
 * thread may again run on every CPU of its mask.
 *
 * A mask without another CPU (a bound worker, one CPU) stays as it is, and so does one that cannot be read or set: then
 * the kernel decides. If the host sets the thread's mask meanwhile, that mask stays.
 */
#include "steer.h"

/* The mask without this thread's CPU. False if that changes nothing or leaves none. */
static bool mask_elsewhere(const cpu_set_t *mask, cpu_set_t *away) {
  int cpu = sched_getcpu();
  *away = *mask;
  if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, mask)) return false;
  CPU_CLR(cpu, away);
  return CPU_COUNT(away) > 0;
}

Steering steer_away(pthread_t thread) {
  Steering steering = {0};
  if (pthread_getaffinity_np(thread, sizeof steering.mask, &steering.mask)) return steering;
  steering.narrowed = mask_elsewhere(&steering.mask, &steering.away) &&
                      !pthread_setaffinity_np(thread, sizeof steering.away, &steering.away);
  return steering;
}

Steering steer_new(pthread_attr_t *attributes) {
  Steering steering = {0};
  if (pthread_getaffinity_np(pthread_self(), sizeof steering.mask, &steering.mask)) return steering;
  steering.narrowed = mask_elsewhere(&steering.mask, &steering.away) &&
                      !pthread_attr_setaffinity_np(attributes, sizeof steering.away, &steering.away);
  return steering;
}

void steer_give_up(Steering *steering, pthread_attr_t *attributes) {
  if (steering->narrowed) pthread_attr_setaffinity_np(attributes, 0, &steering->mask);
  steering->narrowed = false;
}

bool steer_end(const Steering *steering, pthread_t thread) {
  cpu_set_t now;
  if (!steering->narrowed) return true;
  if (!pthread_getaffinity_np(thread, sizeof now, &now) && !CPU_EQUAL(&now, &steering->away)) return true;
  return !pthread_setaffinity_np(thread, sizeof steering->mask, &steering->mask);
}
