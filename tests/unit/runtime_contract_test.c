/* SPDX-License-Identifier: MIT */
/* What rnncc.h says of cancellation and forks where workers are shared: the rest of its contract has tests elsewhere,
 * which tests/README.md lists. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_fake.h"

static const rnncc_api *here(void) { return rnncc_module_query(RNNCC_ABI, NULL); }

static rnncc_model *model_with(rnncc_options options) {
  rnncc_model *model;
  options.struct_size = sizeof options;
  assert_int_equal(here()->model_create(&options, &model, NULL), RNNCC_OK);
  return model;
}

static rnncc_context *context_of(rnncc_model *model) {
  rnncc_context *context;
  assert_int_equal(here()->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  return context;
}

/* ---- cancellation ---- */

static pthread_t runner;

static void cancel_the_caller(const Team *team) {
  if (team->rank == 0) assert_int_equal(pthread_cancel(runner), 0);
}

typedef struct CancelledRun {
  rnncc_context *context;
  FakeCall call;
  rnncc_status status;
  bool returned, went_on;
} CancelledRun;

static void *run_and_go_on(void *arg) {
  CancelledRun *run = arg;
  runner = pthread_self();
  run->status = fake_call_run(here(), run->context, &run->call);
  run->returned = true;
  pthread_testcancel();
  run->went_on = true;
  return NULL;
}

/* It takes effect at the caller's next cancellation point after: the run is done, and the pool is free. */
static void a_run_has_no_cancellation_point(void **state) {
  (void)state;
  FakeCall alone;
  rnncc_model *model = model_with((rnncc_options){.threads = 3, .share_all = 1});
  rnncc_context *first = context_of(model);
  fake_call_init(&alone, FAKE_T, FAKE_B, 1);
  assert_int_equal(fake_call_run(here(), first, &alone), RNNCC_OK);
  for (int i = 0; i < 20; i++) {
    CancelledRun run = {.context = context_of(model), .status = RNNCC_ERROR_MEMORY};
    pthread_t thread;
    void *result;
    fake_call_init(&run.call, FAKE_T, FAKE_B, 1);
    fake_hook = cancel_the_caller;
    assert_int_equal(pthread_create(&thread, NULL, run_and_go_on, &run), 0);
    pthread_join(thread, &result);
    fake_hook = NULL;
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(run.returned && !run.went_on);
    assert_int_equal(run.status, RNNCC_OK);
    assert_memory_equal(run.call.y, alone.y, sizeof alone.y);
    here()->context_destroy(run.context);
  }
  here()->context_destroy(first);
  here()->model_destroy(model);
}

/* ---- forks ---- */

typedef struct Forked {
  rnncc_pool *pool;
  rnncc_model *model;
  rnncc_context *context;
  FakeCall alone;
} Forked;

static bool child_gives_the_same(const Forked *it) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    FakeCall call;
    alarm(20);
    fake_call_init(&call, FAKE_T, FAKE_B, 1);
    bool same = here()->state_reset(it->context, -1) == RNNCC_OK &&
                fake_call_run(here(), it->context, &call) == RNNCC_OK && !memcmp(call.y, it->alone.y, sizeof call.y);
    here()->context_destroy(it->context);
    here()->model_destroy(it->model);
    here()->pool_destroy(it->pool);
    _exit(!same);
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

static void run_by_loop(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  (void)host;
  for (int i = 0; i < n; i++) body(arg, i);
}

/* In the child there are no threads to wait for, also where another thread of the parent had them. */
static void a_child_of_a_fork_waits_for_nobody(void **state) {
  (void)state;
  for (int by_steps = 0; by_steps < 2; by_steps++) {
    Forked it;
    rnncc_options options = {.struct_size = sizeof options, .threads = 3, .by_steps = by_steps};
    if (by_steps) options.parallel_for = run_by_loop;
    assert_int_equal(here()->pool_create(&options, &it.pool, NULL), RNNCC_OK);
    it.model = model_with((rnncc_options){.pool = it.pool, .waits = 1, .share_all = 1});
    it.context = context_of(it.model);
    fake_call_init(&it.alone, FAKE_T, FAKE_B, 1);
    assert_int_equal(fake_call_run(here(), it.context, &it.alone), RNNCC_OK);
    assert_true(child_gives_the_same(&it));
    while (!it.pool->take(it.pool, 0, 1)) continue;
    assert_true(child_gives_the_same(&it));
    it.pool->give_back(it.pool);
    here()->context_destroy(it.context);
    here()->model_destroy(it.model);
    here()->pool_destroy(it.pool);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_has_no_cancellation_point),
      cmocka_unit_test(a_child_of_a_fork_waits_for_nobody),
  };
  return cmocka_run_group_tests_name("runtime_contract", tests, NULL, NULL);
}
