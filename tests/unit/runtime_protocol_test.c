/* SPDX-License-Identifier: MIT */
/*
 * The waiting protocol of runtime/epoch.c, model-checked: every interleaving of one owner that advances a counter and
 * two threads that wait for each of its values, on a machine whose stores may linger in a store buffer. A state in
 * which nobody can move and somebody is not done is a lost wake-up. Futexes here never wake by themselves, though real
 * ones may: that could only hide a fault. The same search must find the fault in each of several plausible mistakes.
 *
 * Steps A1 to B4 are those of epoch.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { WAITERS = 2, LAST_VALUE = 3, MAX_STATES = 1 << 16 };

typedef enum Mistake {
  NONE,
  STORE_NOT_SEQ_CST,   /* A1 may linger in the store buffer while A2 reads */
  LOOK_BEFORE_STORE,   /* A2 before A1 */
  WAKE_ONE,            /* A3 wakes one of the sleepers */
  NOT_ANNOUNCED,       /* B1 and B4 left out */
  GOAL_NOT_RECHECKED,  /* B2 goes on to B3 though the goal is reached */
  SLEEP_UNCONDITIONED, /* B3 does not compare */
  MISTAKES,
} Mistake;

typedef enum OwnerStep { A1, A2, A3 } OwnerStep;
typedef enum WaiterStep { CHECK, B1, B2, B3, ASLEEP, B4, DONE } WaiterStep;

typedef struct Waiter {
  uint8_t step, seen, goal;
} Waiter;

/* Bytes only, so that equal states are equal memory. */
typedef struct State {
  uint8_t value, sleepers;     /* memory */
  uint8_t buffered;            /* the owner's store on its way, 0 if none */
  uint8_t owner, stored, wake; /* its step, the value of its latest A1, what A2 read */
  Waiter waiters[WAITERS];
} State;

typedef struct Search {
  Mistake mistake;
  int n;
  State states[MAX_STATES];
  int table[2 * MAX_STATES]; /* 1 + index in states, 0 where free: a hash table */
} Search;

static uint32_t state_hash(const State *state) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < sizeof *state; i++) hash = (hash ^ ((const uint8_t *)state)[i]) * 16777619u;
  return hash;
}

static void search_add(Search *search, const State *state) {
  uint32_t at = state_hash(state) % (2 * MAX_STATES);
  for (; search->table[at]; at = (at + 1) % (2 * MAX_STATES))
    if (!memcmp(&search->states[search->table[at] - 1], state, sizeof *state)) return;
  assert_true(search->n < MAX_STATES);
  search->states[search->n] = *state;
  search->table[at] = ++search->n;
}

static void wake(State *state, bool all) {
  for (int i = 0; i < WAITERS; i++)
    if (state->waiters[i].step == ASLEEP) {
      state->waiters[i].step = B4;
      if (!all) return;
    }
}

static void owner_store(State *state, bool lingers) {
  state->stored++;
  if (lingers)
    state->buffered = state->stored;
  else
    state->value = state->stored;
}

/* One step of the owner; false if it has none. */
static bool owner_move(State *state, Mistake mistake) {
  bool inverted = mistake == LOOK_BEFORE_STORE;
  switch ((OwnerStep)state->owner) {
  case A1:
    if (state->stored == LAST_VALUE || state->buffered) return false;
    if (inverted)
      state->wake = state->sleepers > 0;
    else
      owner_store(state, mistake == STORE_NOT_SEQ_CST);
    state->owner = A2;
    return true;
  case A2:
    if (inverted)
      owner_store(state, false);
    else
      state->wake = state->sleepers > 0;
    state->owner = state->wake ? A3 : A1;
    return true;
  case A3:
    if (state->buffered) return false; /* the system call drains the buffer first */
    wake(state, mistake != WAKE_ONE);
    state->owner = A1;
    return true;
  }
  return false;
}

static bool waiter_move(State *state, Waiter *waiter, Mistake mistake) {
  int announced = mistake != NOT_ANNOUNCED;
  switch ((WaiterStep)waiter->step) {
  case CHECK:
    waiter->seen = 0;
    if (state->value < waiter->goal)
      waiter->step = B1;
    else if (waiter->goal++ == LAST_VALUE)
      waiter->step = DONE;
    return true;
  case B1:
    state->sleepers += announced;
    waiter->step = B2;
    return true;
  case B2:
    waiter->seen = state->value;
    waiter->step = waiter->seen < waiter->goal || mistake == GOAL_NOT_RECHECKED ? B3 : B4;
    return true;
  case B3:
    waiter->step = state->value == waiter->seen || mistake == SLEEP_UNCONDITIONED ? ASLEEP : B4;
    return true;
  case B4:
    state->sleepers -= announced;
    waiter->step = CHECK;
    return true;
  case ASLEEP:
  case DONE:
    return false;
  }
  return false;
}

/* Adds all states one step on; false if there is none. */
static bool search_expand(Search *search, State from) {
  State next = from;
  bool moved = owner_move(&next, search->mistake);
  if (moved) search_add(search, &next);
  if (from.buffered) {
    next = from;
    next.value = next.buffered, next.buffered = 0;
    search_add(search, &next);
    moved = true;
  }
  for (int i = 0; i < WAITERS; i++) {
    next = from;
    if (!waiter_move(&next, &next.waiters[i], search->mistake)) continue;
    search_add(search, &next);
    moved = true;
  }
  return moved;
}

static bool all_done(const State *state) {
  for (int i = 0; i < WAITERS; i++)
    if (state->waiters[i].step != DONE) return false;
  return state->stored == LAST_VALUE;
}

/* The number of states in which threads wait for ever; *n_states is how many there are in all. */
static int count_stuck(Mistake mistake, int *n_states) {
  static Search search;
  State start = {0};
  for (int i = 0; i < WAITERS; i++) start.waiters[i].goal = 1;
  memset(&search, 0, sizeof search);
  search.mistake = mistake;
  search_add(&search, &start);
  int stuck = 0;
  for (int i = 0; i < search.n; i++)
    if (!search_expand(&search, search.states[i])) stuck += !all_done(&search.states[i]);
  *n_states = search.n;
  return stuck;
}

static void no_wake_up_is_lost_in_any_interleaving(void **state) {
  (void)state;
  int n_states;
  assert_int_equal(count_stuck(NONE, &n_states), 0);
  assert_true(n_states > 1000); /* it did search */
}

static void every_seeded_mistake_is_found(void **state) {
  (void)state;
  for (Mistake mistake = NONE + 1; mistake < MISTAKES; mistake++) {
    int n_states;
    if (count_stuck(mistake, &n_states) == 0) fail_msg("mistake %d is not found", mistake);
  }
}

int main(void) {
  cmocka_set_message_output(CM_OUTPUT_TAP);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_wake_up_is_lost_in_any_interleaving),
      cmocka_unit_test(every_seeded_mistake_is_found),
  };
  return cmocka_run_group_tests_name("runtime_protocol", tests, NULL, NULL);
}
