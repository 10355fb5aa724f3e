/* SPDX-License-Identifier: MIT */
/*
 * The one place where threads wait for each other: the barrier, the end of a region and the idle worker all wait for an
 * Epoch to advance.
 *
 * The protocol. One thread, the owner, writes `value`, always to its successor. Any number of threads wait.
 *
 *   owner:   A1  value := v          waiter:  B1  sleepers += 1
 *            A2  read sleepers                B2  read value; if it has reached the goal go to B4
 *            A3  if not 0: wake all           B3  sleep if value is still what B2 read (the kernel compares and
 *                                                 queues under one lock)
 *                                             B4  sleepers -= 1; from B1 again if the goal is not reached
 *
 * No wake-up is lost. A1, A2, B1 and B2 are sequentially consistent, so either A2 comes after B1 and sees the sleeper,
 * or B2 comes after A1 and sees the new value. In the first case A3 runs, and finds the waiter either queued, and wakes
 * it, or not queued yet, and then B3 sees that the value changed and does not sleep.
 *
 * Visibility. A1 is also a release and every read of `value` an acquire: what the owner wrote before it advanced is
 * seen by the waiter after.
 *
 * Order is by difference, (int32_t)(value - goal) >= 0, so wrapping is harmless: no two threads are ever 2^31 apart.
 *
 * tests/protocol/pool.pml has the same steps, and spin checks these claims. A change must be made in both.
 */
#include "epoch.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

/*
 * Waiting has three stages. First, pause: this notices an advance within a fraction of a microsecond but keeps the CPU,
 * which is right while the awaited thread runs elsewhere. After PAUSE_NS the awaited thread may be waiting for this
 * very CPU, so yield: next to a process that keeps one of two CPUs busy, regions of two threads take 20 us with
 * yielding and 200 us without. After about the time that the kernel takes to wake a sleeper, sleep, to save power.
 */
enum { PAUSE_NS = 2000, PAUSES_PER_CLOCK_READ = 16 };

static inline void cpu_pause(void) {
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most cores; isb stalls for some 10 ns */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static bool epoch_reached(Epoch *epoch, uint32_t goal) {
  return (int32_t)(atomic_load_explicit(&epoch->value, memory_order_acquire) - goal) >= 0;
}

static bool epoch_pause(Epoch *epoch, uint32_t goal) {
  for (int i = 0; i < PAUSES_PER_CLOCK_READ; i++) {
    if (epoch_reached(epoch, goal)) return true;
    cpu_pause();
  }
  return false;
}

static bool epoch_spin(Epoch *epoch, uint32_t goal, Patience patience, uint64_t start) {
  uint64_t waited = patience.crowded ? PAUSE_NS : 0;
  for (; waited < PAUSE_NS; waited = clock_ns() - start)
    if (epoch_pause(epoch, goal)) return true;
  for (; waited < patience.spin_ns; waited = clock_ns() - start) {
    if (epoch_reached(epoch, goal)) return true;
    sched_yield();
  }
  return false;
}

/* Of <linux/futex.h>, which a libc need not come with. */
enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 };

void futex_sleep(_Atomic uint32_t *word, uint32_t seen) { syscall(SYS_futex, word, WAIT_PRIVATE, seen, NULL, NULL, 0); }

void futex_wake_all(_Atomic uint32_t *word) { syscall(SYS_futex, word, WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

void epoch_advance(Epoch *epoch, uint32_t value) {
  atomic_store_explicit(&epoch->value, value, memory_order_seq_cst);                               /* A1 */
  if (atomic_load_explicit(&epoch->sleepers, memory_order_seq_cst)) futex_wake_all(&epoch->value); /* A2, A3 */
}

uint64_t epoch_await(Epoch *epoch, uint32_t goal, Patience patience) {
  if (epoch_reached(epoch, goal) || (!patience.crowded && epoch_pause(epoch, goal)))
    return 0; /* the usual case: no clock */
  uint64_t start = clock_ns();
  bool reached = epoch_spin(epoch, goal, patience, start);
  while (!reached && !epoch_reached(epoch, goal)) {
    atomic_fetch_add_explicit(&epoch->sleepers, 1, memory_order_seq_cst);      /* B1 */
    uint32_t seen = atomic_load_explicit(&epoch->value, memory_order_seq_cst); /* B2 */
    if ((int32_t)(seen - goal) < 0) futex_sleep(&epoch->value, seen);          /* B3 */
    atomic_fetch_sub_explicit(&epoch->sleepers, 1, memory_order_relaxed);      /* B4 */
  }
  return clock_ns() - start;
}
