/* SPDX-License-Identifier: MIT */
/*
 * The code by which threads wait for each other, in every order that differs from one fixed schedule at a few points
 * (Emmi, Qadeer and Rakamaric, Delay-bounded scheduling, POPL 2011). Threads are fibers here, and each atomic operation
 * and system call of the code is a step of one of them. So turns that overlap, wake-ups that are lost and barriers that
 * are passed too early are found where only one order in many shows them. What weaker orders of memory allow is not:
 * for that the pool's tests run under ThreadSanitizer, and spin reads tests/protocol.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "fiber.h"

/* ---- threads ---- */

enum { MAX_THREADS = 4, MAX_STEPS = 2000 };

typedef struct Thread {
  Fiber *fiber;
  const _Atomic uint32_t *asleep_on; /* NULL: it can go on */
  int rank;
} Thread;

static Thread threads[MAX_THREADS];
static Thread *running;
static const char *wrong; /* what a thread found; NULL: nothing */

/* Another thread may go on before what follows. */
static void step(void) {
  if (running) fiber_yield(running->fiber);
}

static uint32_t exchange(_Atomic uint32_t *at, uint32_t value) {
  step();
  uint32_t before = *at;
  *at = value;
  return before;
}

static bool exchange_if(_Atomic uint32_t *at, uint32_t *seen, uint32_t value) {
  step();
  bool equal = *at == *seen;
  if (equal) *at = value;
  if (!equal) *seen = *at;
  return equal;
}

static uint32_t add(_Atomic uint32_t *at, uint32_t n) {
  step();
  uint32_t before = *at;
  *at = before + n;
  return before;
}

enum { FUTEX_WAITS = 128 };

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  step();
  if (operation != FUTEX_WAITS) {
    for (int i = 0; i < MAX_THREADS; i++)
      if (threads[i].asleep_on == word) threads[i].asleep_on = NULL;
  } else if (*word == value) {
    running->asleep_on = word;
    step();
  }
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(at, order) (step(), *(at))
#define atomic_store_explicit(at, value, order) ((void)exchange(at, value))
#define atomic_exchange_explicit(at, value, order) exchange(at, value)
#define atomic_fetch_add_explicit(at, n, order) add(at, n)
#define atomic_fetch_sub_explicit(at, n, order) add(at, -(uint32_t)(n))
#define atomic_compare_exchange_strong_explicit(at, seen, value, order, otherwise) exchange_if(at, seen, value)
#define atomic_compare_exchange_weak_explicit(at, seen, value, order, otherwise) exchange_if(at, seen, value)
#define syscall(number, word, operation, value, ...) futex(word, operation, value)
/* A kernel that does not clear pages on fork: guards go by the process. */
static pid_t this_process = 1;
#define madvise(at, bytes, advice) ((void)(at), -1)
#define getpid() this_process

#define TREE_FROM 3 /* teams of two are flat */
#define TREE_FAN 2

#include "../../runtime/epoch.c"
#include "../../runtime/fork_guard.c"
#include "../../runtime/ring.h"
#include "../../runtime/team.c"
#include "../../runtime/turns.c"

/* Nobody spins: waiting is a step that ends when there is something to do. */
static const Patience crowded = {.spin_ns = 0, .crowded = 1};

/* ---- schedules ---- */

typedef struct Decision {
  int taken, options;
} Decision;

static Decision path[MAX_STEPS]; /* of which the first `decided` are to be followed */
static int decided;

/* The threads that can go on: `running`, then those behind it in the order of ranks. */
static int able(Thread *found[MAX_THREADS], int n) {
  int count = 0, first = running ? running->rank : 0;
  for (int i = 0; i < n; i++) {
    Thread *thread = &threads[(first + i) % n];
    if (fiber_runs(thread->fiber) && !thread->asleep_on) found[count++] = thread;
  }
  return count;
}

/* Follows the path, and then takes the first thread that can go on. To take the k-th behind it costs k of the `delays`.
 * The number of decisions. */
static int run_once(int n, int delays, void (*main)(void *thread)) {
  int made = 0;
  running = NULL;
  for (int i = 0; i < n; i++) {
    threads[i].asleep_on = NULL;
    threads[i].rank = i;
    fiber_start(threads[i].fiber, main, &threads[i]);
  }
  for (int steps = 0; steps < MAX_STEPS; steps++) {
    Thread *found[MAX_THREADS];
    int options = able(found, n), taken = 0;
    if (!options) break;
    if (options > delays + 1) options = delays + 1;
    if (options > 1) {
      if (made == decided) path[decided++] = (Decision){0, options};
      taken = path[made++].taken;
    }
    delays -= taken;
    running = found[taken];
    fiber_resume(running->fiber);
  }
  for (int i = 0; i < n; i++)
    if (fiber_runs(threads[i].fiber)) wrong = "a thread waits for ever";
  return made;
}

/* All schedules with so many delays; after each, all threads have ended, and ends_well() holds. */
static void explore(int n, int delays, void (*begin)(void), void (*main)(void *thread), bool (*ends_well)(void)) {
  int runs = 0;
  for (int i = 0; i < n; i++) threads[i].fiber = fiber_create(1 << 20);
  decided = 0;
  do {
    begin();
    wrong = NULL;
    decided = run_once(n, delays, main);
    runs++;
    if (!wrong && !ends_well()) wrong = "the end is wrong";
    if (wrong) fail_msg("schedule %d: %s", runs, wrong);
    while (decided && path[decided - 1].taken + 1 == path[decided - 1].options) decided--;
    if (decided) path[decided - 1].taken++;
  } while (decided);
  for (int i = 0; i < n; i++) fiber_destroy(threads[i].fiber);
  running = NULL;
  print_message("# %d schedules of %d threads\n", runs, n);
  assert_true(runs > 1000);
}

/* ---- what only one thread may have ---- */

static int inside;

static void be_alone(void) {
  if (inside++) wrong = "two threads have what is one's";
  step();
  inside--;
}

static Turns turns;

static void forget_turns(void) {
  turns = (Turns){0};
  inside = 0;
}

static bool turns_are_free(void) { return !turns.busy && !turns.waiting && !turns.first && !turns.lock; }

static void take_a_turn(void *thread) {
  if (!turns_try(&turns)) turns_wait(&turns, ((Thread *)thread)->rank, crowded);
  be_alone();
  turns_end(&turns);
}

static void take_two_turns(void *thread) {
  take_a_turn(thread);
  take_a_turn(thread);
}

static void a_turn_is_one_thread_s_and_none_is_lost(void **state) {
  (void)state;
  explore(3, 4, forget_turns, take_a_turn, turns_are_free);
  explore(2, 4, forget_turns, take_two_turns, turns_are_free);
}

static Latch latch;

static void open_latch(void) { latch = 0, inside = 0; }
static bool latch_is_open(void) { return !latch; }

static void lock_latch_twice(void *thread) {
  (void)thread;
  for (int i = 0; i < 2; i++) {
    latch_lock(&latch);
    be_alone();
    latch_unlock(&latch);
  }
}

static void a_latch_is_one_thread_s(void **state) {
  (void)state;
  explore(3, 4, open_latch, lock_latch_twice, latch_is_open);
}

static ForkGuard *guard;

static void free_guard(void) { guard->lock = 0, inside = 0; }
static bool guard_is_free(void) { return !guard->lock; }

static void lock_guard_twice(void *thread) {
  (void)thread;
  for (int i = 0; i < 2; i++) {
    fork_guard_lock(guard);
    be_alone();
    fork_guard_unlock(guard);
  }
}

static void a_guard_s_lock_is_one_thread_s(void **state) {
  (void)state;
  guard = fork_guard_create();
  explore(3, 4, free_guard, lock_guard_twice, guard_is_free);
  fork_guard_destroy(guard);
}

static void a_guard_is_of_the_process_that_made_it(void **state) {
  (void)state;
  guard = fork_guard_create();
  assert_true(fork_guard_holds(guard));
  fork_guard_lock(guard);
  this_process++; /* as in a child */
  assert_false(fork_guard_holds(guard));
  fork_guard_lock(guard); /* what the parent holds is free */
  fork_guard_unlock(guard);
  fork_guard_destroy(guard);
}

/* ---- teams ---- */

enum { REGIONS = 2 };

static TeamEpoch epochs[MAX_THREADS];
static Ring rings[MAX_THREADS];
static int size, arrived[MAX_THREADS], left[MAX_THREADS], ended;

static void forget_team(void) {
  memset(epochs, 0, sizeof epochs);
  memset(rings, 0, sizeof rings);
  memset(arrived, 0, sizeof arrived);
  memset(left, 0, sizeof left);
  ended = 0;
}

static Team team_of(int rank) {
  return (Team){
      .rank = rank, .size = size, .epochs = epochs, .passed = epochs[rank].entered.value, .patience = crowded};
}

/* What each worker of a region does: after the barrier all others have arrived. */
static void meet(void *arg, Team *team) {
  int region = (int)(intptr_t)arg;
  if (++arrived[team->rank] != region) wrong = "a worker does another region";
  team_enter(team);
  team_await(team);
  for (int i = 0; i < size; i++)
    if (arrived[i] < region) wrong = "a barrier was passed too early";
  left[team->rank]++;
}

/* As runtime/pool.c does with its workers. */
static void push_below(int rank, Job job) {
  if (is_tree(size))
    for (int child = 0; (child = tree_child_after(rank, size, child));) ring_push(&rings[child], job);
  else if (rank == 0)
    for (int i = 1; i < size; i++) ring_push(&rings[i], job);
}

static void call(void) {
  for (intptr_t region = 1; region <= REGIONS; region++) {
    push_below(0, (Job){meet, (void *)region});
    Team team = team_of(0);
    meet((void *)region, &team);
    team_leave(&team);
    team_await_end(&team);
    for (int i = 0; i < size; i++)
      if (left[i] != region) wrong = "a region ended before its workers";
  }
  ended++;
}

static void work(int rank) {
  for (uint32_t taken = 0; taken < REGIONS; taken++) {
    Job job = ring_pop(&rings[rank], taken, crowded);
    push_below(rank, job);
    Team team = team_of(rank);
    job.body(job.arg, &team);
    team_leave(&team);
  }
}

static void call_or_work(void *thread) {
  int rank = ((Thread *)thread)->rank;
  if (rank)
    work(rank);
  else
    call();
}

static bool regions_have_ended(void) { return ended == 1; }

static void regions_meet_and_end(void **state) {
  (void)state;
  for (size = 2; size <= MAX_THREADS; size++)
    explore(size, size == 2 ? 3 : 2, forget_team, call_or_work, regions_have_ended);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_turn_is_one_thread_s_and_none_is_lost),
      cmocka_unit_test(a_latch_is_one_thread_s),
      cmocka_unit_test(a_guard_s_lock_is_one_thread_s),
      cmocka_unit_test(a_guard_is_of_the_process_that_made_it),
      cmocka_unit_test(regions_meet_and_end),
  };
  return cmocka_run_group_tests_name("runtime_interleaved", tests, NULL, NULL);
}
