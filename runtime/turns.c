/* SPDX-License-Identifier: MIT */
/*
 * No turn is lost. Who waits is first in the list (W1), then looks whether the threads are free (W2); who ends its turn
 * gives them back (E1), then looks whether somebody waits (E2). All four are sequentially consistent, so that W2 sees
 * E1, or E2 sees W1. Whoever of the two sees it takes the threads again, and hands them over to the first of the list.
 *
 * tests/protocol/turns.pml has the same steps, and spin checks this.
 */
#include "turns.h"

#include <stddef.h>

bool turns_try(Turns *turns) { return !atomic_exchange_explicit(&turns->busy, 1, memory_order_seq_cst); }

/* For a few instructions each, never while a run goes on. */
static void list_lock(Turns *turns) { latch_lock(&turns->lock); }
static void list_unlock(Turns *turns) { latch_unlock(&turns->lock); }

/* Behind all of the same or a higher priority. */
static void enter_list(Turns *turns, Waiter *waiter) {
  list_lock(turns);
  Waiter **at = &turns->first;
  while (*at && (*at)->priority >= waiter->priority) at = &(*at)->next;
  waiter->next = *at;
  *at = waiter;
  atomic_fetch_add_explicit(&turns->waiting, 1, memory_order_seq_cst); /* W1 */
  list_unlock(turns);
}

/* By the holder. False: nobody waits. */
static bool hand_over(Turns *turns) {
  list_lock(turns);
  Waiter *waiter = turns->first;
  if (waiter) {
    turns->first = waiter->next;
    atomic_fetch_sub_explicit(&turns->waiting, 1, memory_order_relaxed);
    epoch_advance(&waiter->granted, 1);
  }
  list_unlock(turns);
  return waiter != NULL;
}

void turns_wait(Turns *turns, int32_t priority, Patience patience) {
  Waiter self = {.priority = priority};
  enter_list(turns, &self);
  if (turns_try(turns)) hand_over(turns); /* W2; maybe to itself */
  epoch_await(&self.granted, 1, patience);
  list_lock(turns); /* whoever granted it has done with `self` */
  list_unlock(turns);
}

void turns_end(Turns *turns) {
  if (atomic_load_explicit(&turns->waiting, memory_order_relaxed) && hand_over(turns)) return;
  do atomic_store_explicit(&turns->busy, 0, memory_order_seq_cst);   /* E1 */
  while (atomic_load_explicit(&turns->waiting, memory_order_seq_cst) /* E2 */
         && turns_try(turns) && !hand_over(turns));
}
