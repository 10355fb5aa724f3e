/* SPDX-License-Identifier: MIT */
/*
 * A thread that another wakes is often put on the waker's CPU, as if the waker were about to sleep; it is about to
 * compute. The two then share that CPU, next to an idle one, until the kernel's balancer looks, which took up to 8 ms
 * here: dozens of inferences. So the caller takes its own CPU out of the sleeper's mask while it wakes it, and puts it
 * back at once: the kernel has chosen by then, and the worker may again go wherever its mask lets it.
 *
 * A mask without another CPU (a bound worker, one CPU) stays as it is, and so does one that cannot be read or set: then
 * the worker wakes where the kernel likes.
 */
#include "steer.h"

Steering steer_away(pthread_t thread) {
  Steering steering = {.thread = thread};
  int cpu = sched_getcpu();
  if (cpu < 0 || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof steering.mask, &steering.mask))
    return steering;
  cpu_set_t away = steering.mask;
  CPU_CLR(cpu, &away);
  bool elsewhere = CPU_ISSET(cpu, &steering.mask) && CPU_COUNT(&away) > 0;
  steering.narrowed = elsewhere && !pthread_setaffinity_np(thread, sizeof away, &away);
  return steering;
}

void steer_end(const Steering *steering) {
  if (steering->narrowed) pthread_setaffinity_np(steering->thread, sizeof steering->mask, &steering->mask);
}
