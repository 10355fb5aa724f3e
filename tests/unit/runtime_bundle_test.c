/* SPDX-License-Identifier: MIT */
/* An object of two networks: their tables, and models that share workers. Each is the hand-written module, once of the
 * name "second"; the runtime is told of both as rnncc tells it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context.h"
#include "rnncc_loader.h"
#include "runtime_fake.h"

extern void (*second_hook)(const Team *team); /* of the second network */

static const rnncc_api *network(int index) { return rnncc_module_query(RNNCC_ABI, NULL)->networks[index]; }

static rnncc_model *model_of(const rnncc_api *api, int threads, rnncc_model *pool_of) {
  rnncc_model *model;
  const char *why = "";
  rnncc_options options = {.struct_size = sizeof options, .threads = threads, .pool_of = pool_of};
  assert_int_equal(api->model_create(&options, &model, &why), RNNCC_OK);
  assert_null(why);
  return model;
}

static int threads_made;

/* In place of libc's, by the linker's --wrap. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg) {
  threads_made++;
  return __real_pthread_create(thread, attributes, start, arg);
}

/* ---- tables ---- */

static void each_table_has_all_of_them(void **state) {
  (void)state;
  const rnncc_api *first = rnncc_module_query(RNNCC_ABI, NULL);
  assert_int_equal(first->n_networks, 2);
  assert_ptr_equal(first->networks[0], first);
  assert_ptr_equal(first->networks[1]->networks, first->networks);
  assert_string_equal(first->info->name, "fake");
  assert_string_equal(first->networks[1]->info->name, "second");
}

static void a_name_finds_its_network(void **state) {
  (void)state;
  char error[64], little[12];
  const rnncc_api *first = network(0);
  assert_ptr_equal(rnncc_network(first, "second", error, sizeof error), network(1));
  assert_ptr_equal(rnncc_network(network(1), "fake", NULL, 0), first);
  assert_null(rnncc_network(first, "third", error, sizeof error));
  assert_string_equal(error, "the module has no network third; it has fake, second");
  assert_null(rnncc_network(first, "third", little, sizeof little));
  assert_string_equal(little, "the module ");
  assert_null(rnncc_network(first, "third", NULL, 0));
}

/* ---- one pool ---- */

static int run_once(const rnncc_api *api, rnncc_model *model, FakeCall *call) {
  rnncc_context *context;
  fake_call_init(call, FAKE_T, FAKE_B, 7);
  int failures = api->context_create(model, NULL, 0, &context, NULL) != RNNCC_OK;
  failures += fake_call_run(api, context, call) != RNNCC_OK;
  api->context_destroy(context);
  return failures;
}

static void sharing_makes_no_threads(void **state) {
  (void)state;
  threads_made = 0;
  rnncc_model *first = model_of(network(0), 3, NULL);
  assert_int_equal(threads_made, 2);
  rnncc_model *second = model_of(network(1), 1, first);
  assert_int_equal(threads_made, 2);
  assert_int_equal(network(1)->model_threads(second), 3);
  network(0)->model_destroy(first);
  FakeCall call;
  assert_int_equal(run_once(network(1), second, &call), 0);
  network(1)->model_destroy(second);
}

static void a_model_of_another_module_is_refused(void **state) {
  (void)state;
  static const Module other;
  rnncc_model foreign = {.module = &other}, *model = &foreign;
  const char *why = NULL;
  rnncc_options options = {.struct_size = sizeof options, .pool_of = &foreign};
  assert_int_equal(network(0)->model_create(&options, &model, &why), RNNCC_ERROR_ARGUMENT);
  assert_null(model);
  assert_string_equal(why, "options.pool_of is a model of another module, which options.pool may share with");
}

static pthread_barrier_t inside; /* twice: the first run has begun; the second has ended */
static _Atomic int second_size;

static void stay(const Team *team) {
  if (team->rank) return;
  pthread_barrier_wait(&inside);
  pthread_barrier_wait(&inside);
}

static void note_size(const Team *team) { second_size = team->size; }

static void *run_first(void *model) {
  FakeCall call;
  return run_once(network(0), model, &call) ? model : NULL;
}

static void a_run_that_finds_the_workers_busy_is_done_alone(void **state) {
  (void)state;
  rnncc_model *first = model_of(network(0), 2, NULL), *second = model_of(network(1), 0, first);
  FakeCall free_call, busy_call;
  pool_keep_together(first->pool);
  second_hook = note_size;
  assert_int_equal(run_once(network(1), second, &free_call), 0);
  assert_int_equal(second_size, 2);
  fake_hook = stay;
  pthread_t thread;
  pthread_barrier_init(&inside, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, run_first, first), 0);
  pthread_barrier_wait(&inside);
  int failures = run_once(network(1), second, &busy_call);
  pthread_barrier_wait(&inside);
  void *failed;
  pthread_join(thread, &failed);
  fake_hook = second_hook = NULL;
  assert_null(failed);
  assert_int_equal(failures, 0);
  assert_int_equal(second_size, 1);
  assert_memory_equal(busy_call.y, free_call.y, sizeof free_call.y);
  network(1)->model_destroy(second);
  network(0)->model_destroy(first);
}

typedef struct Stream {
  pthread_t thread;
  const rnncc_api *api;
  rnncc_model *model;
  int failures;
} Stream;

enum { STREAMS = 4, RUNS = 300 };

static void *run_repeatedly(void *arg) {
  Stream *stream = arg;
  for (int i = 0; i < RUNS; i++) {
    FakeCall call, again;
    stream->failures += run_once(stream->api, stream->model, &call);
    stream->failures += run_once(stream->api, stream->model, &again);
    stream->failures += memcmp(call.y, again.y, sizeof call.y) != 0;
  }
  return NULL;
}

/* Without a race, which ThreadSanitizer would find; the model that made the workers goes first. */
static void networks_run_at_once_and_end_in_any_order(void **state) {
  (void)state;
  Stream streams[STREAMS];
  rnncc_model *first = model_of(network(0), 3, NULL);
  for (int i = 0; i < STREAMS; i++)
    streams[i] = (Stream){.api = network(i % 2), .model = model_of(network(i % 2), 0, first)};
  network(0)->model_destroy(first);
  for (int i = 0; i < STREAMS; i++)
    assert_int_equal(pthread_create(&streams[i].thread, NULL, run_repeatedly, &streams[i]), 0);
  for (int i = 0; i < STREAMS; i++) {
    pthread_join(streams[i].thread, NULL);
    assert_int_equal(streams[i].failures, 0);
    streams[i].api->model_destroy(streams[i].model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_table_has_all_of_them),
      cmocka_unit_test(a_name_finds_its_network),
      cmocka_unit_test(sharing_makes_no_threads),
      cmocka_unit_test(a_model_of_another_module_is_refused),
      cmocka_unit_test(a_run_that_finds_the_workers_busy_is_done_alone),
      cmocka_unit_test(networks_run_at_once_and_end_in_any_order),
  };
  return cmocka_run_group_tests_name("runtime_bundle", tests, NULL, NULL);
}
