/* SPDX-License-Identifier: MIT */
/*
 * The mailbox of one worker: a lock-free ring with a single producer and a single consumer. Slots and tail share a
 * cache line, so a job travels to the worker in the very transfer that announces it.
 *
 * tail: jobs pushed so far. Advanced by the producer alone, which is whoever holds the pool's `busy`: the release of
 *     one holder pairs with the acquire of the next.
 * slots[t % RING_SLOTS]: written by the producer before it advances the tail to t + 1 (release), read by the worker
 *     after it has seen that tail (acquire).
 *
 * Only the worker counts the jobs that it has taken. The producer does not need that count, because before it pushes a
 * job the one before has ended, and the producer has acquired its end through the worker's epoch. So no slot is written
 * while it is read.
 */
#ifndef RNNCC_RING_H
#define RNNCC_RING_H

#include <stdbool.h>

#include "epoch.h"

typedef struct Job {
  PoolBody *body; /* NULL: the worker is to end */
  void *arg;
} Job;

enum { RING_SLOTS = 2 };

typedef struct Ring {
  _Alignas(128) Epoch tail;
  Job slots[RING_SLOTS];
} Ring;

static inline void ring_push(Ring *ring, Job job) {
  uint32_t tail = atomic_load_explicit(&ring->tail.value, memory_order_relaxed);
  ring->slots[tail % RING_SLOTS] = job;
  epoch_advance(&ring->tail, tail + 1);
}

/* For the producer: whether the worker sleeps, or is about to. */
static inline bool ring_sleeps(Ring *ring) {
  return atomic_load_explicit(&ring->tail.sleepers, memory_order_relaxed) != 0;
}

/* Waits for the job after the first `taken`. */
static inline Job ring_pop(Ring *ring, uint32_t taken, Patience patience) {
  epoch_await(&ring->tail, taken + 1, patience);
  return ring->slots[taken % RING_SLOTS];
}

#endif
