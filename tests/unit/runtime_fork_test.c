/* SPDX-License-Identifier: MIT */
/* A fork after warm-up: the child has the pool's memory, but not its threads. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fork_guard.h"
#include "runtime_fake.h"

typedef struct Fixture {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
  FakeCall call;
} Fixture;

static void open_model(Fixture *it, int threads) {
  it->api = rnncc_module_query(RNNCC_ABI, NULL);
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  assert_int_equal(it->api->model_create(&options, &it->model, NULL), RNNCC_OK);
  assert_int_equal(it->api->context_create(it->model, NULL, 0, &it->context, NULL), RNNCC_OK);
  assert_int_equal(it->api->warmup(it->context), RNNCC_OK);
  fake_call_init(&it->call, 5, 3, 1);
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_OK);
}

static void close_model(Fixture *it) {
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
}

static int run_again_from_zero(Fixture *it) {
  FakeCall call;
  fake_call_init(&call, 5, 3, 1);
  it->api->state_reset(it->context, -1);
  return fake_call_run(it->api, it->context, &call) || memcmp(call.y, it->call.y, sizeof call.y);
}

static int team_size_seen;
static void note_size(const Team *team) {
  if (team->rank == 0) team_size_seen = team->size;
}

/* What a child does with inherited objects, and then with new ones: a bit for each failure. */
static int child_failures(Fixture *it) {
  int failures = 0;
  fake_hook = note_size;
  for (int i = 0; i < 100; i++) failures |= run_again_from_zero(it) ? 1 : 0;
  if (team_size_seen != 1) failures |= 2;
  close_model(it);
  Fixture fresh;
  open_model(&fresh, 2);
  /* A model made in the child has threads again, except in runs after one that other programs delayed. */
  for (int i = 0; i < 1000 && team_size_seen != 2; i++) failures |= run_again_from_zero(&fresh) ? 8 : 0;
  if (team_size_seen != 2) failures |= 4;
  failures |= run_again_from_zero(&fresh) ? 8 : 0;
  close_model(&fresh);
  return failures;
}

static int exit_of(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

static pid_t fork_child(Fixture *it) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20); /* a child that waits for threads that do not exist fails instead of hanging */
    _exit(child_failures(it));
  }
  return child;
}

static void a_child_runs_alone_and_may_make_its_own(void **state) {
  (void)state;
  Fixture it;
  open_model(&it, 3);
  for (int i = 0; i < 5; i++) {
    if (i % 2) usleep(1000); /* workers asleep, and workers spinning */
    assert_int_equal(exit_of(fork_child(&it)), 0);
    assert_int_equal(run_again_from_zero(&it), 0); /* the parent goes on as before */
  }
  close_model(&it);
}

typedef struct Busy {
  Fixture it;
  _Atomic int stop;
  int failures;
} Busy;

static void *run_until_stopped(void *arg) {
  Busy *busy = arg;
  while (!busy->stop) busy->failures += run_again_from_zero(&busy->it);
  return NULL;
}

/* The fork happens while another thread is inside a region: in the child the pool seems busy for ever. */
static void a_child_forked_in_the_middle_of_a_run_works(void **state) {
  (void)state;
  static Busy busy;
  Fixture mine;
  open_model(&busy.it, 3);
  mine = busy.it; /* the same model, a context of its own */
  assert_int_equal(mine.api->context_create(mine.model, NULL, 0, &mine.context, NULL), RNNCC_OK);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_until_stopped, &busy), 0);
  for (int i = 0; i < 20; i++) assert_int_equal(exit_of(fork_child(&mine)), 0);
  busy.stop = 1;
  pthread_join(thread, NULL);
  assert_int_equal(busy.failures, 0);
  mine.api->context_destroy(mine.context);
  close_model(&busy.it);
}

/* What a process and its child see of each other. */
typedef struct Shared {
  _Atomic int runs, over;
} Shared;

/* A process that is stopped and continued at any time still ends its runs. */
static void stop_and_continue_lose_nothing(void **state) {
  (void)state;
  Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  pid_t child = fork();
  if (child == 0) {
    Fixture it;
    int failures = 0;
    alarm(240); /* only where a run hangs */
    open_model(&it, 3);
    for (; !shared->over; shared->runs++) failures |= run_again_from_zero(&it);
    close_model(&it);
    _exit(failures);
  }
  for (int i = 0; i < 30; i++) {
    for (int seen = shared->runs, tries = 0; shared->runs == seen && tries < 10000; tries++) usleep(100);
    usleep(137 * i);
    kill(child, SIGSTOP);
    usleep(300);
    kill(child, SIGCONT);
  }
  shared->over = 1;
  assert_int_equal(exit_of(child), 0);
  munmap(shared, sizeof *shared);
}

enum { COUNTERS = 4, COUNTS = 20000 };
static ForkGuard *guard;
static int count;

static void *count_alone(void *arg) {
  (void)arg;
  for (int i = 0; i < COUNTS; i++) {
    fork_guard_lock(guard);
    count++;
    fork_guard_unlock(guard);
  }
  return NULL;
}

static int count_of_threads(void) {
  pthread_t threads[COUNTERS];
  count = 0;
  for (int i = 0; i < COUNTERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, count_alone, NULL), 0);
  for (int i = 0; i < COUNTERS; i++) pthread_join(threads[i], NULL);
  return count;
}

/* Nobody unlocks what the parent had; and then the threads of the child take turns. */
static void a_guards_lock_is_free_in_a_child(void **state) {
  (void)state;
  guard = fork_guard_create();
  assert_non_null(guard);
  fork_guard_lock(guard);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(count_of_threads() != COUNTERS * COUNTS);
  }
  assert_int_equal(exit_of(child), 0);
  fork_guard_unlock(guard);
  assert_int_equal(count_of_threads(), COUNTERS * COUNTS);
  fork_guard_destroy(guard);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_runs_alone_and_may_make_its_own),
      cmocka_unit_test(a_child_forked_in_the_middle_of_a_run_works),
      cmocka_unit_test(stop_and_continue_lose_nothing),
      cmocka_unit_test(a_guards_lock_is_free_in_a_child),
  };
  return cmocka_run_group_tests_name("runtime_fork", tests, NULL, NULL);
}
