/* SPDX-License-Identifier: MIT */
/*
 * A pool as an object of the host's: models of two modules on its threads, who goes first, and what the host does as
 * threads start. Built with ThreadSanitizer, as are the two modules. argv: these.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "context.h"
#include "rnncc_loader.h"
#include "runtime_fake.h"

static const char *module_paths[2];

/* While it stands no region looks delayed, after which others would run alone. The linker sends the runtime's calls
 * here
 * (--wrap). */
static _Atomic bool clock_stands;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  if (!clock_stands) return __real_clock_gettime(clock, now);
  *now = (struct timespec){0};
  return 0;
}

static const rnncc_api *here(void) { return rnncc_module_query(RNNCC_ABI, NULL); }

static rnncc_pool *pool_with(const rnncc_api *api, rnncc_options options) {
  rnncc_pool *pool;
  const char *why = "";
  options.struct_size = sizeof options;
  assert_int_equal(api->pool_create(&options, &pool, &why), RNNCC_OK);
  assert_null(why);
  return pool;
}

static rnncc_model *model_with(const rnncc_api *api, rnncc_options options) {
  rnncc_model *model;
  options.struct_size = sizeof options;
  assert_int_equal(api->model_create(&options, &model, NULL), RNNCC_OK);
  return model;
}

static int run_once(const rnncc_api *api, rnncc_model *model, unsigned seed, FakeCall *call) {
  rnncc_context *context;
  fake_call_init(call, FAKE_T, FAKE_B, seed);
  int failures = api->context_create(model, NULL, 0, &context, NULL) != RNNCC_OK;
  failures += fake_call_run(api, context, call) != RNNCC_OK;
  api->context_destroy(context);
  return failures;
}

/* ---- two modules ---- */

typedef struct Stream {
  pthread_t thread;
  const rnncc_api *api;
  rnncc_model *model;
  unsigned seed;
  int failures;
} Stream;

enum { STREAMS = 6, RUNS = 200 };

static void *run_repeatedly(void *arg) {
  Stream *stream = arg;
  FakeCall alone, call;
  rnncc_model *own = model_with(stream->api, (rnncc_options){.threads = 1});
  stream->failures += run_once(stream->api, own, stream->seed, &alone);
  stream->api->model_destroy(own);
  for (int i = 0; i < RUNS; i++) {
    stream->failures += run_once(stream->api, stream->model, stream->seed, &call);
    stream->failures += memcmp(call.y, alone.y, sizeof call.y) || memcmp(call.last, alone.last, sizeof call.last);
  }
  return NULL;
}

/* Half of the streams wait for the threads, the others go on alone. The host lets go of the pool first. */
static void modules_share_a_pool_from_many_threads(void **state) {
  (void)state;
  rnncc_library libraries[2];
  Stream streams[STREAMS];
  for (int i = 0; i < 2; i++) assert_int_equal(rnncc_load(module_paths[i], &libraries[i], NULL, 0), RNNCC_OK);
  assert_ptr_not_equal(libraries[0].api, libraries[1].api);
  rnncc_pool *pool = pool_with(libraries[0].api, (rnncc_options){.threads = 3});
  assert_int_equal(pool->threads, 3);
  for (int i = 0; i < STREAMS; i++) {
    const rnncc_api *api = libraries[i % 2].api;
    rnncc_options options = {.threads = 7, .pool = pool, .waits = i / 2 % 2, .priority = i};
    streams[i] = (Stream){.api = api, .model = model_with(api, options), .seed = (unsigned)i};
    assert_int_equal(api->model_threads(streams[i].model), 3);
    assert_int_equal(api->model_narrowed(streams[i].model), 0);
  }
  libraries[1].api->pool_destroy(pool); /* by the module that has not made it */
  for (int i = 0; i < STREAMS; i++)
    assert_int_equal(pthread_create(&streams[i].thread, NULL, run_repeatedly, &streams[i]), 0);
  for (int i = 0; i < STREAMS; i++) {
    pthread_join(streams[i].thread, NULL);
    assert_int_equal(streams[i].failures, 0);
    streams[i].api->model_destroy(streams[i].model);
  }
  rnncc_unload(&libraries[1]);
  rnncc_unload(&libraries[0]);
}

/* In a region of one module's model, the threads of the module that has made the pool work. */
static pthread_t workers[2][8];
static int noted;

static void note_thread(const Team *team) { workers[noted][team->rank] = pthread_self(); }

static void all_models_have_the_same_threads(void **state) {
  (void)state;
  FakeCall call;
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 3});
  clock_stands = true;
  fake_hook = note_thread;
  for (noted = 0; noted < 2; noted++) {
    rnncc_model *model = model_with(here(), (rnncc_options){.pool = pool, .waits = 1});
    assert_int_equal(run_once(here(), model, 1, &call), 0);
    here()->model_destroy(model);
  }
  fake_hook = NULL;
  clock_stands = false;
  here()->pool_destroy(pool);
  for (int rank = 0; rank < 3; rank++) assert_true(pthread_equal(workers[0][rank], workers[1][rank]));
  assert_false(pthread_equal(workers[0][1], workers[0][2]));
}

static pthread_key_t end_of_thread;
static _Atomic int ended;

static void count_end(void *count) { ++*(_Atomic int *)count; }

static void await_end(const Team *team) {
  if (team->rank) pthread_setspecific(end_of_thread, &ended);
}

static void threads_end_with_the_last_who_has_them(void **state) {
  (void)state;
  FakeCall call;
  assert_int_equal(pthread_key_create(&end_of_thread, count_end), 0);
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 3});
  rnncc_model *model = model_with(here(), (rnncc_options){.pool = pool, .waits = 1});
  clock_stands = true;
  fake_hook = await_end;
  assert_int_equal(run_once(here(), model, 1, &call), 0);
  fake_hook = NULL;
  clock_stands = false;
  here()->pool_destroy(pool);
  assert_int_equal(ended, 0);
  here()->model_destroy(model);
  assert_int_equal(ended, 2);
}

/* ---- turns ---- */

static pthread_barrier_t inside; /* twice: the first run has begun; it may end */
static _Atomic int stayed;

static void stay_once(const Team *team) {
  if (team->rank || stayed++) return;
  pthread_barrier_wait(&inside);
  pthread_barrier_wait(&inside);
}

typedef struct Runner {
  pthread_t thread;
  rnncc_model *model;
  int failures;
} Runner;

static void *run_a_model(void *arg) {
  Runner *runner = arg;
  FakeCall call;
  runner->failures = run_once(here(), runner->model, 1, &call);
  return NULL;
}

static void start_runner(rnncc_pool *pool, Runner *runner, bool waits, int32_t priority) {
  *runner = (Runner){.model = model_with(here(), (rnncc_options){.pool = pool, .waits = waits, .priority = priority})};
  assert_int_equal(pthread_create(&runner->thread, NULL, run_a_model, runner), 0);
}

static void end_runner(Runner *runner) {
  pthread_join(runner->thread, NULL);
  assert_int_equal(runner->failures, 0);
  here()->model_destroy(runner->model);
}

/* Who had the threads, in turn. */
static int order[8], ordered;

typedef struct TurnTaker {
  pthread_t thread;
  rnncc_pool *pool;
  int32_t priority;
  int name;
} TurnTaker;

static void *take_a_turn(void *arg) {
  TurnTaker *taker = arg;
  if (!taker->pool->take(taker->pool, taker->priority, 1)) return NULL;
  order[ordered++] = taker->name; /* plain: turns order it */
  taker->pool->give_back(taker->pool);
  return NULL;
}

static void expect_order(const int32_t *priorities, const int *expected, int count) {
  TurnTaker takers[8];
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 2});
  ordered = 0;
  assert_int_equal(pool->take(pool, 0, 0), 1);
  for (int i = 0; i < count; i++) {
    takers[i] = (TurnTaker){.pool = pool, .priority = priorities[i], .name = i};
    assert_int_equal(pthread_create(&takers[i].thread, NULL, take_a_turn, &takers[i]), 0);
    while (pool->waiting(pool) != i + 1) sched_yield();
  }
  assert_int_equal(ordered, 0);
  pool->give_back(pool);
  for (int i = 0; i < count; i++) pthread_join(takers[i].thread, NULL);
  assert_int_equal(pool->waiting(pool), 0);
  assert_int_equal(ordered, count);
  assert_memory_equal(order, expected, (size_t)count * sizeof *order);
  here()->pool_destroy(pool);
}

static void the_highest_priority_goes_first(void **state) {
  (void)state;
  expect_order((int32_t[]){1, 5, 3, -2, 9}, (int[]){4, 1, 2, 0, 3}, 5);
  expect_order((int32_t[]){INT32_MIN, INT32_MAX, 0}, (int[]){1, 2, 0}, 3);
}

static void of_equal_priorities_the_first_that_came_goes_first(void **state) {
  (void)state;
  expect_order((int32_t[]){0, 0, 0, 0}, (int[]){0, 1, 2, 3}, 4);
  expect_order((int32_t[]){2, 7, 2, 7}, (int[]){1, 3, 0, 2}, 4);
}

static _Atomic int second_size;

static void stay_or_note_size(const Team *team) {
  if (stayed && team->rank == 0) second_size = team->size;
  stay_once(team);
}

/* One run has the threads. A run that does not wait is done alone meanwhile; one that waits has them after. */
static void a_run_waits_if_it_was_asked_to(void **state) {
  (void)state;
  Runner first, impatient, patient;
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 2});
  pthread_barrier_init(&inside, NULL, 2);
  stayed = 0;
  clock_stands = true;
  fake_hook = stay_or_note_size;
  start_runner(pool, &first, false, 0);
  pthread_barrier_wait(&inside);
  start_runner(pool, &impatient, false, 100);
  end_runner(&impatient);
  assert_int_equal(second_size, 1);
  start_runner(pool, &patient, true, 0);
  while (pool->waiting(pool) != 1) sched_yield();
  pthread_barrier_wait(&inside);
  end_runner(&first);
  end_runner(&patient);
  fake_hook = NULL;
  clock_stands = false;
  assert_int_equal(second_size, 2);
  here()->pool_destroy(pool);
}

/* As many turns as there can be at once: none is lost, and no two have the threads together. */
static int turns_taken;

static void *take_many_turns(void *arg) {
  TurnTaker *taker = arg;
  for (int i = 0; i < 3000; i++) {
    if (!taker->pool->take(taker->pool, i % 5 - taker->priority, taker->priority != 0 || i % 2)) continue;
    turns_taken++;
    if (i % 64 == 0) sched_yield();
    taker->pool->give_back(taker->pool);
    taker->name++;
  }
  return NULL;
}

static void turns_neither_overlap_nor_get_lost(void **state) {
  (void)state;
  enum { TAKERS = 6 };
  TurnTaker takers[TAKERS];
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 2});
  turns_taken = 0;
  for (int i = 0; i < TAKERS; i++) {
    takers[i] = (TurnTaker){.pool = pool, .priority = i};
    assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many_turns, &takers[i]), 0);
  }
  int total = 0;
  for (int i = 0; i < TAKERS; i++) {
    pthread_join(takers[i].thread, NULL);
    if (i) assert_int_equal(takers[i].name, 3000);
    total += takers[i].name;
  }
  assert_int_equal(turns_taken, total);
  here()->pool_destroy(pool);
}

/* A crowd's threads yield at once where they wait: also those of a model that has been lent them. */
static void a_guest_knows_whether_the_threads_are_a_crowd(void **state) {
  (void)state;
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 2});
  for (int crowded = 0; crowded < 2; crowded++) {
    pool->crowded = crowded;
    Pool *guest = pool_join(pool, 0);
    assert_int_equal(pool_crowded(guest), crowded);
    pool_destroy(guest);
  }
  here()->pool_destroy(pool);
}

/* ---- threads ---- */

typedef struct Greeting {
  pthread_t threads[8];
  _Atomic int calls;
} Greeting;

static void greet(void *host, int32_t worker) {
  Greeting *greeting = host;
  greeting->threads[worker] = pthread_self();
  greeting->calls++;
  pthread_setname_np(pthread_self(), worker == 1 ? "audio 1" : "audio");
}

static char names[8][16];

static void note_name(const Team *team) { pthread_getname_np(pthread_self(), names[team->rank], sizeof *names); }

static void the_host_greets_each_worker(void **state) {
  (void)state;
  Greeting greeting = {0};
  FakeCall call;
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 4, .thread_start = greet, .host = &greeting});
  assert_int_equal(greeting.calls, 3);
  for (int i = 1; i < 4; i++) assert_false(pthread_equal(greeting.threads[i], pthread_self()));
  rnncc_model *model = model_with(here(), (rnncc_options){.pool = pool, .waits = 1});
  fake_hook = note_name;
  assert_int_equal(run_once(here(), model, 1, &call), 0);
  fake_hook = NULL;
  assert_string_equal(names[1], "audio 1");
  assert_string_equal(names[3], "audio");
  assert_string_not_equal(names[0], "audio");
  assert_int_equal(greeting.calls, 3);
  here()->model_destroy(model);
  here()->pool_destroy(pool);
}

static void a_models_own_workers_are_greeted_too(void **state) {
  (void)state;
  Greeting greeting = {0};
  here()->model_destroy(model_with(here(), (rnncc_options){.threads = 3, .thread_start = greet, .host = &greeting}));
  assert_int_equal(greeting.calls, 2);
}

static int policies[4];

static void note_policy(const Team *team) { policies[team->rank] = sched_getscheduler(0); }

static void *make_a_batch_pool(void *arg) {
  assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}), 0);
  *(rnncc_pool **)arg = pool_with(here(), (rnncc_options){.threads = 2});
  return NULL;
}

/* Of the thread that makes the pool, not of the one that runs. */
static void workers_have_the_scheduling_of_their_maker(void **state) {
  (void)state;
  FakeCall call;
  pthread_t maker;
  rnncc_pool *pool;
  assert_int_equal(pthread_create(&maker, NULL, make_a_batch_pool, &pool), 0);
  pthread_join(maker, NULL);
  rnncc_model *model = model_with(here(), (rnncc_options){.pool = pool, .waits = 1});
  fake_hook = note_policy;
  assert_int_equal(run_once(here(), model, 1, &call), 0);
  fake_hook = NULL;
  assert_int_equal(policies[0], SCHED_OTHER);
  assert_int_equal(policies[1], SCHED_BATCH);
  here()->model_destroy(model);
  here()->pool_destroy(pool);
}

/* ---- mistakes ---- */

static void parallel_for(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  (void)host, (void)n, (void)body, (void)arg;
}

static void expect_refusal(bool of_pool, rnncc_options options, const char *words) {
  rnncc_pool *pool = (rnncc_pool *)&options;
  rnncc_model *model = (rnncc_model *)&options;
  const char *why = NULL;
  if (!options.struct_size) options.struct_size = sizeof options;
  rnncc_status status =
      of_pool ? here()->pool_create(&options, &pool, &why) : here()->model_create(&options, &model, &why);
  assert_int_equal(status, RNNCC_ERROR_ARGUMENT);
  assert_null(of_pool ? (void *)pool : (void *)model);
  assert_string_equal(why, words);
}

static void mistakes_are_told(void **state) {
  (void)state;
  const char *why = NULL;
  rnncc_pool *pool = pool_with(here(), (rnncc_options){.threads = 2});
  rnncc_model *model = model_with(here(), (rnncc_options){.threads = 1});
  for (int of_pool = 0; of_pool < 2; of_pool++) {
    expect_refusal(of_pool, (rnncc_options){.threads = -1}, "options.threads is negative");
    expect_refusal(of_pool, (rnncc_options){.struct_size = 4},
                   "options.struct_size is not set; expected sizeof(rnncc_options)");
    expect_refusal(of_pool, (rnncc_options){.by_steps = 1},
                   "options.by_steps is set without a parallel_for that it is about");
    expect_refusal(of_pool, (rnncc_options){.pool = pool, .pool_of = model},
                   "options.pool and options.pool_of are both given; expected one of them");
  }
  expect_refusal(true, (rnncc_options){.pool = pool},
                 "pool_create: options name a pool already; expected neither pool nor pool_of");
  expect_refusal(true, (rnncc_options){.pool_of = model, .parallel_for = parallel_for},
                 "pool_create: options name a pool already; expected neither pool nor pool_of");
  assert_int_equal(here()->pool_create(NULL, NULL, &why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "pool_create: `out` is NULL");
  here()->pool_destroy(NULL);
  here()->model_destroy(model);
  here()->pool_destroy(pool);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  module_paths[0] = argv[1], module_paths[1] = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(modules_share_a_pool_from_many_threads),
      cmocka_unit_test(all_models_have_the_same_threads),
      cmocka_unit_test(threads_end_with_the_last_who_has_them),
      cmocka_unit_test(the_highest_priority_goes_first),
      cmocka_unit_test(of_equal_priorities_the_first_that_came_goes_first),
      cmocka_unit_test(a_run_waits_if_it_was_asked_to),
      cmocka_unit_test(turns_neither_overlap_nor_get_lost),
      cmocka_unit_test(a_guest_knows_whether_the_threads_are_a_crowd),
      cmocka_unit_test(the_host_greets_each_worker),
      cmocka_unit_test(a_models_own_workers_are_greeted_too),
      cmocka_unit_test(workers_have_the_scheduling_of_their_maker),
      cmocka_unit_test(mistakes_are_told),
  };
  return cmocka_run_group_tests_name("runtime_shared_pool", tests, NULL, NULL);
}
