/* SPDX-License-Identifier: MIT */
/*
 * The thread pool alone. Also built with ThreadSanitizer, which believes the memory orders of the epochs: plain data
 * crosses every barrier here.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/asleep.h"
#include "../support/sanitized.h"
#include "cpu_limit.h"
#include "pool.h"

static const int team_sizes[] = {1, 2, 3, 8};
enum { TEAM_SIZES = sizeof team_sizes / sizeof *team_sizes, MAX_TEAM = 8 };

/* pthread_create fails once this many threads were made; the linker sends every call here (--wrap). */
static int threads_to_give = INT32_MAX;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg) {
  if (threads_to_give <= 0) return EAGAIN;
  threads_to_give--;
  return __real_pthread_create(thread, attr, main, arg);
}

/* If `clock_stands`, the runtime's clock advances only when a test moves it. */
static atomic_bool clock_stands;
static atomic_long clock_ns_now, readings_by_caller;
static pthread_t main_thread;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  if (!clock_stands) return __real_clock_gettime(clock, now);
  if (pthread_equal(pthread_self(), main_thread)) readings_by_caller++;
  *now = (struct timespec){.tv_nsec = clock_ns_now};
  return 0;
}

static Pool *pool_of(int threads) {
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = threads}, 0);
  assert_non_null(pool);
  pool_keep_together(pool);
  return pool;
}

/* Fewer under a sanitizer, which slows each; more in long tests. Of more threads than CPUs each region waits until the
 * system has switched between them: 16 us of CPU time for 8 threads on 2 CPUs, and where other programs run a time
 * slice of theirs, 400 us. */
static int many_regions(void) {
  if (SANITIZED) return 20000;
  return getenv("RNNCC_LONG_TESTS") ? 10000000 : 50000;
}

static void count_visit(void *arg, Team *team) { ((int *)arg)[team->rank * 32]++; /* plain: the region orders it */ }

static void every_worker_visits_every_region_once(void **state) {
  (void)state;
  for (int s = 0; s < TEAM_SIZES; s++) {
    int visits[MAX_TEAM * 32] = {0}, regions = many_regions();
    Pool *pool = pool_of(team_sizes[s]);
    for (int i = 0; i < regions; i++) pool_run(pool, (Turn){0}, count_visit, visits);
    for (int rank = 0; rank < team_sizes[s]; rank++) assert_int_equal(visits[rank * 32], regions);
    pool_destroy(pool);
  }
}

/* Each round, every rank adds its neighbours' numbers of the round before: wrong if a barrier lets one through early.
 */
enum { ROUNDS = 500 };

static void next_round(const uint32_t *from, uint32_t *to, int rank, int n) {
  to[rank] = from[rank] + 3 * from[(rank + 1) % n] + 5 * from[(rank + n - 1) % n];
}

static void add_neighbours(void *arg, Team *team) {
  uint32_t(*cells)[MAX_TEAM] = arg;
  for (int round = 0; round < ROUNDS; round++) {
    next_round(cells[round % 2], cells[(round + 1) % 2], team->rank, team->size);
    team_barrier(team);
  }
}

static void expected_neighbours(uint32_t (*cells)[MAX_TEAM], int n) {
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < n; i++) next_round(cells[round % 2], cells[(round + 1) % 2], i, n);
}

static void a_barrier_separates_rounds(void **state) {
  (void)state;
  for (int s = 0; s < TEAM_SIZES; s++) {
    Pool *pool = pool_of(team_sizes[s]);
    for (int repeat = 0; repeat < 20; repeat++) {
      uint32_t cells[2][MAX_TEAM] = {{1, 2, 3, 4, 5, 6, 7, 8}}, expected[2][MAX_TEAM];
      memcpy(expected, cells, sizeof cells);
      pool_run(pool, (Turn){0}, add_neighbours, cells);
      expected_neighbours(expected, team_sizes[s]);
      assert_memory_equal(cells[ROUNDS % 2], expected[ROUNDS % 2], team_sizes[s] * sizeof(uint32_t));
    }
    pool_destroy(pool);
  }
}

/* Many more threads than CPUs: a barrier switches between all of them. */
enum { CROWD = 256, CROWD_ROUNDS = SANITIZED ? 3 : 12, CROWD_REGIONS = 4 };

static void add_neighbours_in_a_crowd(void *arg, Team *team) {
  uint32_t(*cells)[CROWD] = arg;
  for (int round = 0; round < CROWD_ROUNDS; round++) {
    next_round(cells[round % 2], cells[(round + 1) % 2], team->rank, team->size);
    team_barrier(team);
  }
}

static void check_crowd(Pool *pool) {
  static uint32_t cells[2][CROWD], expected[2][CROWD];
  int size = pool_size(pool);
  for (int i = 0; i < size; i++) cells[0][i] = expected[0][i] = i + 1;
  for (int region = 0; region < CROWD_REGIONS; region++) {
    pool_run(pool, (Turn){0}, add_neighbours_in_a_crowd, cells);
    for (int round = 0; round < CROWD_ROUNDS; round++)
      for (int i = 0; i < size; i++) next_round(expected[round % 2], expected[(round + 1) % 2], i, size);
    assert_memory_equal(cells[CROWD_ROUNDS % 2], expected[CROWD_ROUNDS % 2], size * sizeof(uint32_t));
  }
}

static void hundreds_of_workers_meet_on_few_cpus(void **state) {
  (void)state;
  static const int sizes[] = {17, 64, 65, CROWD};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    Pool *pool = pool_of(sizes[s]);
    assert_int_equal(pool_size(pool), sizes[s]);
    check_crowd(pool);
    pool_destroy(pool);
  }
}

static void pause_us(int us) { nanosleep(&(struct timespec){0, us * 1000L}, NULL); }

/* Odd ranks take longer than the others spin, so the others sleep on their epochs and must be woken. */
static void dawdle(void *arg, Team *team) {
  (void)arg;
  for (int i = 0; i < 20; i++) {
    if (team->rank % 2 == i % 2) pause_us(1500);
    team_barrier(team);
  }
}

static void sleepers_at_a_barrier_are_woken(void **state) {
  (void)state;
  Pool *pool = pool_of(3);
  for (int i = 0; i < 10; i++) pool_run(pool, (Turn){0}, dawdle, NULL);
  pool_destroy(pool);
}

/* Pauses around the 50 us after which an idle worker falls asleep: a lost wake-up would appear there. */
static void workers_falling_asleep_are_woken(void **state) {
  (void)state;
  int visits[MAX_TEAM * 32] = {0};
  Pool *pool = pool_of(2);
  for (int i = 0; i < 3000; i++) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 40000 + i * 7 % 40000);
    pool_run(pool, (Turn){0}, count_visit, visits);
  }
  assert_int_equal(visits[32], 3000);
  pool_destroy(pool);
}

static void note_thread(void *arg, Team *team) {
  if (team->rank) *(pthread_t *)arg = pthread_self();
}

/* The caller narrows a worker's mask only while it wakes the worker. */
static void workers_keep_their_masks(void **state) {
  (void)state;
  cpu_set_t own, workers;
  pthread_t worker = pthread_self();
  Pool *pool = pool_of(2);
  for (int i = 0; i < 20; i++) {
    pause_us(1000);
    pool_run(pool, (Turn){0}, note_thread, &worker);
    assert_false(pthread_equal(worker, pthread_self()));
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof own, &own), 0);
    assert_int_equal(pthread_getaffinity_np(worker, sizeof workers, &workers), 0);
    assert_true(CPU_EQUAL(&own, &workers));
  }
  pool_destroy(pool);
}

static void note_id(void *arg, Team *team) { ((pid_t *)arg)[team->rank] = gettid(); }

/* Idle workers fall asleep, and nothing wakes them. */
static void an_idle_pool_uses_no_cpu(void **state) {
  (void)state;
  pid_t ids[3] = {0};
  long before[3];
  Pool *pool = pool_of(3);
  pool_run(pool, (Turn){0}, note_id, ids);
  for (int rank = 1; rank < 3; rank++) assert_true(falls_asleep(ids[rank]));
  for (int rank = 1; rank < 3; rank++) before[rank] = switches_asleep(ids[rank]);
  for (int i = 0; i < 5; i++) pause_us(100000);
  for (int rank = 1; rank < 3; rank++) {
    assert_true(before[rank] >= 0);
    assert_int_equal(switches_asleep(ids[rank]), before[rank]);
  }
  pool_destroy(pool);
}

typedef struct Nested {
  Pool *pool;
  int inner_size; /* of the team that a second caller got while the first was inside */
} Nested;

static void note_size(void *arg, Team *team) {
  if (team->rank == 0) ((Nested *)arg)->inner_size = team->size;
}

static void *second_caller(void *arg) {
  pool_run(((Nested *)arg)->pool, (Turn){0}, note_size, arg);
  return NULL;
}

static void call_again_inside(void *arg, Team *team) {
  pthread_t thread;
  if (team->rank) return;
  assert_int_equal(pthread_create(&thread, NULL, second_caller, arg), 0);
  pthread_join(thread, NULL);
}

static void a_busy_pool_runs_the_caller_alone(void **state) {
  (void)state;
  Nested it = {.pool = pool_of(3)};
  pool_run(it.pool, (Turn){0}, call_again_inside, &it);
  assert_int_equal(it.inner_size, 1);
  pool_run(it.pool, (Turn){0}, note_size, &(Nested){0});
  int visits[MAX_TEAM * 32] = {0};
  pool_run(it.pool, (Turn){0}, count_visit, visits);
  for (int rank = 0; rank < 3; rank++) assert_int_equal(visits[rank * 32], 1); /* and it is given back */
  pool_destroy(it.pool);
}

static void a_pool_works_with_the_threads_that_can_be_made(void **state) {
  (void)state;
  for (int given = 0; given < 4; given++) {
    int visits[MAX_TEAM * 32] = {0};
    threads_to_give = given;
    Pool *pool = pool_of(MAX_TEAM);
    threads_to_give = INT32_MAX;
    assert_int_equal(pool_size(pool), given + 1);
    for (int i = 0; i < 100; i++) pool_run(pool, (Turn){0}, count_visit, visits);
    for (int rank = 0; rank < MAX_TEAM; rank++) assert_int_equal(visits[rank * 32], rank <= given ? 100 : 0);
    pool_destroy(pool);
  }
}

static void more_threads_than_the_maximum_are_not_made(void **state) {
  (void)state;
  threads_to_give = 3;
  Pool *pool = pool_of(INT32_MAX);
  assert_int_equal(pool_size(pool), 4);
  pool_destroy(pool);
  threads_to_give = INT32_MAX;
}

/* Those that the system gives: it may have a limit. */
static void as_many_workers_as_are_planned_for_visit_once(void **state) {
  (void)state;
  static int visits[POOL_MAX_THREADS * 32];
  Pool *pool = pool_of(INT32_MAX);
  assert_in_range(pool_size(pool), 2, 1024);
  pool_run(pool, (Turn){0}, count_visit, visits);
  for (int rank = 0; rank < POOL_MAX_THREADS; rank++) assert_int_equal(visits[rank * 32], rank < pool_size(pool));
  pool_destroy(pool);
}

static void pools_come_and_go(void **state) {
  (void)state;
  int visits[MAX_TEAM * 32] = {0};
  for (int i = 0; i < 300; i++) {
    Pool *pool = pool_of(3);
    if (i % 2)
      pool_run(pool, (Turn){0}, count_visit, visits); /* the others are destroyed while their workers still start */
    pool_destroy(pool);
  }
  assert_int_equal(visits[64], 150);
}

static void one_cpu_in_the_mask_suffices(void **state) {
  (void)state;
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  Pool *pool = pool_of(0);
  assert_int_equal(pool_size(pool), 1);
  pool_destroy(pool);
  pool = pool_of(3); /* although there are fewer */
  uint32_t cells[2][MAX_TEAM] = {{1, 2, 3}}, expected[2][MAX_TEAM];
  memcpy(expected, cells, sizeof cells);
  pool_run(pool, (Turn){0}, add_neighbours, cells);
  expected_neighbours(expected, 3);
  assert_memory_equal(cells[ROUNDS % 2], expected[ROUNDS % 2], 3 * sizeof(uint32_t));
  pool_destroy(pool);
  sched_setaffinity(0, sizeof all, &all);
}

static void binding_is_never_an_error(void **state) {
  (void)state;
  int visits[MAX_TEAM * 32] = {0};
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 8, .bind_threads = 1}, 0);
  assert_int_equal(pool_size(pool), 8);
  for (int i = 0; i < 100; i++) pool_run(pool, (Turn){0}, count_visit, visits);
  for (int rank = 0; rank < 8; rank++) assert_int_equal(visits[rank * 32], 100);
  pool_destroy(pool);
}

static void note_mask(void *arg, Team *team) {
  cpu_set_t *masks = arg;
  pthread_getaffinity_np(pthread_self(), sizeof *masks, &masks[team->rank]);
}

/* One CPU is left to the caller, whose mask stays as it is. */
static void bound_workers_have_cpus_of_their_own(void **state) {
  (void)state;
  cpu_set_t all, taken, masks[MAX_TEAM];
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&taken);
  int size = CPU_COUNT(&all) < MAX_TEAM ? CPU_COUNT(&all) : MAX_TEAM;
  Pool *pool =
      pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = size, .bind_threads = 1}, 0);
  pool_keep_together(pool);
  pool_run(pool, (Turn){0}, note_mask, masks);
  assert_true(CPU_EQUAL(&masks[0], &all));
  for (int rank = 1; rank < size; rank++) {
    assert_int_equal(CPU_COUNT(&masks[rank]), 1);
    CPU_OR(&taken, &taken, &masks[rank]);
  }
  assert_int_equal(CPU_COUNT(&taken), size - 1);
  CPU_AND(&taken, &taken, &all);
  assert_int_equal(CPU_COUNT(&taken), size - 1);
  pool_destroy(pool);
}

/* A host's parallel_for that makes a thread for each index. */
typedef struct HostCall {
  void (*body)(void *arg, int index);
  void *arg;
  int index;
} HostCall;

static void *host_thread(void *arg) {
  HostCall *call = arg;
  call->body(call->arg, call->index);
  return NULL;
}

static void host_parallel_for(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  pthread_t threads[MAX_TEAM];
  HostCall calls[MAX_TEAM];
  ++*(int *)host;
  for (int i = 0; i < n; i++) {
    calls[i] = (HostCall){body, arg, i};
    pthread_create(&threads[i], NULL, host_thread, &calls[i]);
  }
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void the_host_may_bring_its_own_threads(void **state) {
  (void)state;
  int regions = 0;
  Pool *pool = pool_create(
      &(rnncc_options){
          .struct_size = sizeof(rnncc_options), .threads = 3, .parallel_for = host_parallel_for, .host = &regions},
      0);
  for (int i = 0; i < 20; i++) {
    uint32_t cells[2][MAX_TEAM] = {{1, 2, 3}}, expected[2][MAX_TEAM];
    memcpy(expected, cells, sizeof cells);
    pool_run(pool, (Turn){0}, add_neighbours, cells);
    expected_neighbours(expected, 3);
    assert_memory_equal(cells[ROUNDS % 2], expected[ROUNDS % 2], 3 * sizeof(uint32_t));
  }
  assert_int_equal(regions, 20);
  pool_destroy(pool);
}

static _Atomic int signals;
static _Atomic int signals_on_workers;

static void on_alarm(int number) {
  (void)number;
  signals++;
  if (!pthread_equal(pthread_self(), main_thread)) signals_on_workers++;
}

static void signals_interrupt_nothing_and_spare_the_workers(void **state) {
  (void)state;
  main_thread = pthread_self();
  struct sigaction action = {.sa_handler = on_alarm}, saved; /* no SA_RESTART: system calls do see EINTR */
  sigaction(SIGALRM, &action, &saved);
  Pool *pool = pool_of(3);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL);
  while (signals < 200) pool_run(pool, (Turn){0}, dawdle, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  sigaction(SIGALRM, &saved, NULL);
  assert_int_equal(signals_on_workers, 0);
  pool_destroy(pool);
}

/* Many threads use one pool: some get the team, the others run alone; each region is complete either way. */
typedef struct Caller {
  Pool *pool;
  pthread_t thread;
  int failures;
} Caller;

static void *call_often(void *arg) {
  Caller *caller = arg;
  for (int i = 0; i < 300; i++) {
    int visits[MAX_TEAM * 32] = {0}, total = 0;
    pool_run(caller->pool, (Turn){0}, count_visit, visits);
    for (int rank = 0; rank < MAX_TEAM; rank++) total += visits[rank * 32];
    caller->failures += total != 1 && total != 3;
  }
  return NULL;
}

static void callers_do_not_mix(void **state) {
  (void)state;
  enum { CALLERS = 8 };
  Caller callers[CALLERS];
  Pool *pool = pool_of(3);
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (Caller){.pool = pool};
    pthread_create(&callers[i].thread, NULL, call_often, &callers[i]);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_int_equal(callers[i].failures, 0);
  }
  pool_destroy(pool);
}

/* As another program delays a worker: the caller waits for it while 3 ms pass. Stores the team's size. */
static void hold_up(void *arg, Team *team) {
  if (team->rank == 0) {
    *(int *)arg = team->size;
  } else {
    long before = readings_by_caller;
    while (readings_by_caller < before + 3) sched_yield(); /* the first of them may be when it begins to wait */
    clock_ns_now += 3000000;
  }
  team_barrier(team);
}

static int team_size_of_a_held_up_region(Pool *pool) {
  int size = 0;
  pool_run(pool, (Turn){0}, hold_up, &size);
  return size;
}

/* After each delayed region, twice as many run alone. On one CPU the pool is crowded, and the rule is off. */
static void after_being_held_up_the_pool_runs_alone_for_a_while(void **state) {
  (void)state;
  main_thread = pthread_self();
  clock_stands = true;
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 2}, 0);
  assert_non_null(pool);
  bool crowded = cpu_limit_cpus() < 2;
  for (int alone = 1; alone <= 8; alone *= 2) {
    assert_int_equal(team_size_of_a_held_up_region(pool), 2);
    for (int i = 0; i < alone; i++) assert_int_equal(team_size_of_a_held_up_region(pool), crowded ? 2 : 1);
  }
  pool_destroy(pool);
  clock_stands = false;
}

static void work_before_being_held_up(void *arg, Team *team) {
  if (team->rank == 0) clock_ns_now += 10000000;
  hold_up(arg, team);
}

/* Alone it would have been busy for the workers' part, too: that is longer than the 3 ms that it waited. */
static void a_caller_that_works_for_longer_than_it_waits_is_not_held_up(void **state) {
  (void)state;
  main_thread = pthread_self();
  clock_stands = true;
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 2}, 0);
  assert_non_null(pool);
  for (int i = 0; i < 5; i++) {
    int size = 0;
    pool_run(pool, (Turn){0}, work_before_being_held_up, &size);
    assert_int_equal(size, 2);
  }
  pool_destroy(pool);
  clock_stands = false;
}

/* Like hold_up(), with the clock alone. */
static void start_slowly(void *host, int32_t worker) {
  (void)host, (void)worker;
  long before = readings_by_caller;
  while (readings_by_caller < before + 3) sched_yield();
  clock_ns_now += 3000000;
}

static void note_team_size(void *arg, Team *team) {
  if (team->rank == 0) *(int *)arg = team->size;
}

/* A host's greeting may take as long as it likes. */
static void after_a_slow_greeting_the_pool_runs_with_all_workers(void **state) {
  (void)state;
  main_thread = pthread_self();
  clock_stands = true;
  Pool *pool = pool_create(
      &(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 2, .thread_start = start_slowly}, 0);
  assert_non_null(pool);
  int size = 0;
  pool_run(pool, (Turn){0}, note_team_size, &size);
  assert_int_equal(size, 2);
  pool_destroy(pool);
  clock_stands = false;
}

/* One item for two workers, which takes 3 ms. Stores the team's size. */
static void share_one_item(void *arg, Team *team) {
  int64_t begin, end;
  team_share(team, 1, &begin, &end);
  if (team->rank == 0) *(int *)arg = team->size;
  if (begin < end && team->rank == 0) clock_ns_now += 3000000;
  if (begin < end && team->rank > 0)
    hold_up(arg, team);
  else
    team_barrier(team);
}

static void a_caller_with_fewer_items_than_workers_is_not_held_up(void **state) {
  (void)state;
  main_thread = pthread_self();
  clock_stands = true;
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 2}, 0);
  assert_non_null(pool);
  for (int i = 0; i < 20; i++) {
    int size = 0;
    pool_run(pool, (Turn){0}, share_one_item, &size);
    assert_int_equal(size, 2);
  }
  pool_destroy(pool);
  clock_stands = false;
}

enum { LARGE_STACK = 4 << 20, LARGE_FRAME = 3 << 20 };

/* From the top down, as deeper and deeper calls would. */
static void touch_a_large_frame(void *arg, Team *team) {
  volatile unsigned char frame[LARGE_FRAME];
  enum { PAGE = 4096 };
  for (int at = LARGE_FRAME - 1; at >= 0; at -= PAGE) frame[at] = 1;
  ((int *)arg)[team->rank] = frame[LARGE_FRAME - 1];
}

static void workers_have_the_stack_that_bodies_need(void **state) {
  (void)state;
  enum { THREADS = 2 };
  int touched[THREADS] = {0};
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = THREADS}, LARGE_STACK);
  assert_non_null(pool);
  pool_keep_together(pool);
  pool_run(pool, (Turn){0}, touch_a_large_frame, touched);
  for (int i = 0; i < THREADS; i++) assert_int_equal(touched[i], 1);
  pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workers_have_the_stack_that_bodies_need),
      cmocka_unit_test(every_worker_visits_every_region_once),
      cmocka_unit_test(a_barrier_separates_rounds),
      cmocka_unit_test(hundreds_of_workers_meet_on_few_cpus),
      cmocka_unit_test(sleepers_at_a_barrier_are_woken),
      cmocka_unit_test(workers_falling_asleep_are_woken),
      cmocka_unit_test(workers_keep_their_masks),
      cmocka_unit_test(an_idle_pool_uses_no_cpu),
      cmocka_unit_test(a_busy_pool_runs_the_caller_alone),
      cmocka_unit_test(a_pool_works_with_the_threads_that_can_be_made),
      cmocka_unit_test(more_threads_than_the_maximum_are_not_made),
      cmocka_unit_test(as_many_workers_as_are_planned_for_visit_once),
      cmocka_unit_test(pools_come_and_go),
      cmocka_unit_test(one_cpu_in_the_mask_suffices),
      cmocka_unit_test(binding_is_never_an_error),
      cmocka_unit_test(bound_workers_have_cpus_of_their_own),
      cmocka_unit_test(the_host_may_bring_its_own_threads),
      cmocka_unit_test(signals_interrupt_nothing_and_spare_the_workers),
      cmocka_unit_test(callers_do_not_mix),
      cmocka_unit_test(after_being_held_up_the_pool_runs_alone_for_a_while),
      cmocka_unit_test(a_caller_that_works_for_longer_than_it_waits_is_not_held_up),
      cmocka_unit_test(after_a_slow_greeting_the_pool_runs_with_all_workers),
      cmocka_unit_test(a_caller_with_fewer_items_than_workers_is_not_held_up),
  };
  return cmocka_run_group_tests_name("runtime_pool", tests, NULL, NULL);
}
