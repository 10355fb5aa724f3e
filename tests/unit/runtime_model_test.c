/* SPDX-License-Identifier: MIT */
/* Query, models and contexts. The module claims to need AVX-512, AMX and NEON; each test sets the CPU's features. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_fake.h"

static uint32_t injected_features = FAKE_CPU_FEATURES;

static bool granted = true;

/* In place of the runtime's cpu.c. */
uint32_t cpu_features(void) { return injected_features; }
bool cpu_grants(uint32_t features) { return granted || !(features & CPU_AMX); }

static const rnncc_api *query(void) { return rnncc_module_query(RNNCC_ABI, NULL); }

static void another_abi_is_refused(void **state) {
  (void)state;
  const char *why = NULL;
  assert_null(rnncc_module_query(RNNCC_ABI + 1, &why));
  assert_non_null(strstr(why, "older than the application's"));
  assert_null(rnncc_module_query(RNNCC_ABI - 1, &why));
  assert_non_null(strstr(why, "newer than the application's"));
  assert_null(rnncc_module_query(0, NULL));
}

static void a_missing_cpu_feature_is_named(void **state) {
  (void)state;
  const char *why = NULL;
  injected_features = CPU_NEON | CPU_AVX2 | CPU_AMX;
  assert_null(query());
  assert_null(rnncc_module_query(RNNCC_ABI, &why));
  assert_string_equal(why, "this module needs AVX-512 (avx512f, avx512cd, avx512bw, avx512dq, avx512vl), which this "
                           "CPU or its operating system lacks");
  injected_features = CPU_AVX512;
  assert_null(rnncc_module_query(RNNCC_ABI, &why));
  assert_non_null(strstr(why, "NEON"));
  injected_features = FAKE_CPU_FEATURES;
  assert_non_null(rnncc_module_query(RNNCC_ABI, &why));
  assert_null(why);
}

static void registers_that_the_system_refuses_are_named(void **state) {
  (void)state;
  const char *why = NULL;
  granted = false;
  assert_null(rnncc_module_query(RNNCC_ABI, &why));
  assert_string_equal(why,
                      "this module needs AMX (amx-tile, amx-int8, amx-bf16), which this CPU or its operating system "
                      "lacks");
  granted = true;
  assert_non_null(rnncc_module_query(RNNCC_ABI, &why));
}

static void the_table_says_what_it_is(void **state) {
  (void)state;
  assert_int_equal(query()->abi, RNNCC_ABI);
  assert_int_equal(query()->struct_size, sizeof(rnncc_api));
  assert_int_equal(query()->info->struct_size, sizeof(rnncc_info));
  assert_string_equal(query()->info->name, "fake");
}

static void codes_have_names_and_sizes(void **state) {
  (void)state;
  assert_string_equal(rnncc_status_name(RNNCC_OK), "ok");
  assert_string_equal(rnncc_status_name(RNNCC_ERROR_UNSUPPORTED), "unsupported");
  assert_string_equal(rnncc_status_name((rnncc_status)(RNNCC_ERROR_UNSUPPORTED + 1)), "unknown");
  assert_int_equal(rnncc_dtype_size(RNNCC_NONE), 0);
#define DTYPE(name, code, type, ...) assert_int_equal(rnncc_dtype_size(RNNCC_##name), sizeof(type));
#include "dtypes.def"
}

static rnncc_status create_with(rnncc_options options) {
  rnncc_model *model;
  const char *why = "";
  rnncc_status status = query()->model_create(&options, &model, &why);
  if (status) assert_null(model);
  assert_true((status != RNNCC_OK) == (why != NULL));
  query()->model_destroy(model);
  return status;
}

static void options_are_checked(void **state) {
  (void)state;
  assert_int_equal(query()->model_create(NULL, NULL, NULL), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(create_with((rnncc_options){.struct_size = 0}), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(create_with((rnncc_options){.struct_size = sizeof(rnncc_options), .threads = -1}),
                   RNNCC_ERROR_ARGUMENT);
  assert_int_equal(create_with((rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 2}), RNNCC_OK);
}

/* An application built with an older header, whose options end after `threads`; beyond them is other data. */
static void fields_an_old_header_lacks_are_not_read(void **state) {
  (void)state;
  rnncc_options options;
  memset(&options, 0xff, sizeof options);
  options.struct_size = offsetof(rnncc_options, bind_threads);
  options.threads = 2;
  rnncc_model *model;
  assert_int_equal(query()->model_create(&options, &model, NULL), RNNCC_OK);
  assert_int_equal(query()->model_threads(model), 2);
  rnncc_context *context;
  assert_int_equal(query()->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  assert_int_equal(query()->warmup(context), RNNCC_OK); /* would jump through parallel_for */
  query()->context_destroy(context);
  query()->model_destroy(model);
}

static void context_memory_is_checked(void **state) {
  (void)state;
  const rnncc_api *api = query();
  rnncc_model *model;
  rnncc_context *context;
  assert_int_equal(api->model_create(NULL, &model, NULL), RNNCC_OK);
  size_t bytes = api->context_size(model);
  char *memory = aligned_alloc(64, bytes + 64);
  const char *why = NULL;
  assert_int_equal(api->context_create(NULL, NULL, 0, &context, &why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "context_create: the model is NULL");
  assert_int_equal(api->context_create(model, NULL, 0, NULL, &why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "context_create: `out` is NULL");
  assert_int_equal(api->context_create(model, memory + 32, bytes, &context, &why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "context_create: `memory` is not aligned to 64 bytes");
  assert_null(context);
  assert_int_equal(api->context_create(model, memory, bytes - 1, &context, &why), RNNCC_ERROR_SIZE);
  assert_string_equal(why, "context_create: `memory` has fewer bytes than context_size() says");
  assert_null(context);
  memset(memory, 0xff, bytes); /* memory need not be clean */
  assert_int_equal(api->context_create(model, memory, bytes, &context, &why), RNNCC_OK);
  assert_null(why);
  assert_string_equal(api->last_error(context), "");
  int64_t runs = -1;
  assert_int_equal(api->state_get(context, 1, -1, &runs, sizeof runs), RNNCC_OK);
  assert_int_equal(runs, 0);
  api->context_destroy(context);
  free(memory);
  api->model_destroy(model);
}

static void null_is_tolerated(void **state) {
  (void)state;
  query()->model_destroy(NULL);
  query()->context_destroy(NULL);
  assert_int_equal(query()->model_threads(NULL), 0);
  assert_int_equal(query()->model_narrowed(NULL), 0);
  assert_int_equal(query()->context_size(NULL), 0);
  assert_int_equal(query()->warmup(NULL), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(query()->profile(NULL, 1, NULL, NULL), RNNCC_ERROR_ARGUMENT);
}

static void a_profile_counts_runs_and_time_per_step(void **state) {
  (void)state;
  const rnncc_api *api = query();
  rnncc_model *model;
  rnncc_context *context;
  FakeCall call;
  fake_call_init(&call, FAKE_T, FAKE_B, 1);
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  assert_int_equal(api->model_create(&options, &model, NULL), RNNCC_OK);
  assert_int_equal(api->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  const rnncc_profile_entry *entries;
  size_t n;
  for (int round = 1; round <= 2; round++) { /* the second starts from zero */
    assert_int_equal(api->profile(context, 1, NULL, NULL), RNNCC_OK);
    for (int i = 0; i < 10 * round; i++) assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK);
    assert_int_equal(api->profile(context, 0, &entries, &n), RNNCC_OK);
    assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK); /* no longer counted */
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) assert_int_equal(entries[i].calls, 10 * round);
    assert_string_equal(entries[1].kernel, "leak");
    assert_string_equal(entries[1].node, "y");
    assert_true(entries[1].flops == 120 && entries[1].bytes == 480);
    assert_in_range(entries[0].nanoseconds + entries[1].nanoseconds, 1, 60000000000);
  }
  api->context_destroy(context);
  api->model_destroy(model);
}

/* One worker's spans, one after the other, with these entries. */
static void expect_spans(const rnncc_span *spans, size_t count, const int *entries, size_t expected) {
  assert_int_equal(count, expected);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(spans[i].entry, entries[i]);
    assert_true(spans[i].begin <= spans[i].end);
    if (i) assert_true(spans[i - 1].end == spans[i].begin);
  }
}

static void a_trace_says_what_each_worker_did(void **state) {
  (void)state;
  enum { WORKERS = 2, ROOM = 4, SHORT = 1 };
  const rnncc_api *api = query();
  rnncc_model *model;
  rnncc_context *context;
  FakeCall call;
  fake_call_init(&call, FAKE_T, FAKE_B, 1);
  rnncc_options options = {.struct_size = sizeof options, .threads = WORKERS, .share_all = 1};
  assert_int_equal(api->model_create(&options, &model, NULL), RNNCC_OK);
  assert_int_equal(api->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  rnncc_span spans[WORKERS][ROOM];
  size_t counts[WORKERS] = {77, 77};
  rnncc_trace trace = {sizeof trace, sizeof(rnncc_span), WORKERS, ROOM, spans[0], counts};
  assert_int_equal(api->trace(context, &trace), RNNCC_OK);
  assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK); /* not profiled: not traced */
  assert_int_equal(counts[0], 77);
  assert_int_equal(api->profile(context, 1, NULL, NULL), RNNCC_OK);
  for (int run = 0; run < 3; run++) { /* each begins anew */
    assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK);
    bool shared = counts[1] != 0; /* else the pool found the other worker late */
    expect_spans(spans[0], counts[0], shared ? (int[]){0, -1, 1} : (int[]){0, 1}, shared ? 3 : 2);
    if (shared) expect_spans(spans[1], counts[1], (int[]){0, -1, 1}, 3);
  }
  memset(spans, 0, sizeof spans);
  trace.capacity = SHORT;
  assert_int_equal(api->trace(context, &trace), RNNCC_OK);
  assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK);
  assert_true(counts[0] > SHORT && spans[0][SHORT + 1].end == 0); /* it says how many there were */
  api->context_destroy(context);
  api->model_destroy(model);
}

static void a_trace_without_room_is_refused(void **state) {
  (void)state;
  const rnncc_api *api = query();
  rnncc_model *model;
  rnncc_context *context;
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  assert_int_equal(api->model_create(&options, &model, NULL), RNNCC_OK);
  assert_int_equal(api->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  rnncc_span span;
  size_t counts[2];
  const rnncc_trace good = {sizeof good, sizeof span, 2, 0, &span, counts};
  rnncc_trace few = good, old = good, nowhere = good, uncounted = good;
  few.workers = 1, old.span_size = 0, nowhere.spans = NULL, uncounted.counts = NULL;
  assert_int_equal(api->trace(NULL, &good), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->trace(context, &few), RNNCC_ERROR_ARGUMENT);
  assert_non_null(strstr(api->last_error(context), "memory for 1 workers, but the model has 2"));
  assert_int_equal(api->trace(context, &old), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->trace(context, &nowhere), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->trace(context, &uncounted), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->trace(context, &good), RNNCC_OK);
  assert_int_equal(api->trace(context, NULL), RNNCC_OK);
  api->context_destroy(context);
  api->model_destroy(model);
}

/* Results of a stream of runs, to be compared bit for bit. Sums here are inexact from the fifth run on. */
enum { STREAM_RUNS = 12 };
typedef struct StreamResult {
  float y[STREAM_RUNS][FAKE_T * FAKE_B * FAKE_F], last[STREAM_RUNS][FAKE_B * FAKE_F];
} StreamResult;

static int run_stream(rnncc_model *model, unsigned seed, StreamResult *result) {
  const rnncc_api *api = query();
  rnncc_context *context;
  int failures = api->context_create(model, NULL, 0, &context, NULL) != RNNCC_OK;
  for (int i = 0; i < STREAM_RUNS && !failures; i++) {
    FakeCall call;
    fake_call_init(&call, FAKE_T, FAKE_B, seed + i);
    call.scale = 0.3f;
    failures += fake_call_run(api, context, &call) != RNNCC_OK;
    memcpy(result->y[i], call.y, sizeof call.y);
    memcpy(result->last[i], call.last, sizeof call.last);
  }
  api->context_destroy(context);
  return failures;
}

static rnncc_model *model_of(int threads) {
  rnncc_model *model;
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  assert_int_equal(query()->model_create(&options, &model, NULL), RNNCC_OK);
  return model;
}

static void results_are_bit_identical_for_any_number_of_threads(void **state) {
  (void)state;
  static const int threads[] = {1, 2, 3, 8};
  static StreamResult serial, parallel;
  for (int i = 0; i < 4; i++) {
    rnncc_model *model = model_of(threads[i]);
    assert_int_equal(query()->model_threads(model), threads[i]);
    assert_int_equal(run_stream(model, 5, i ? &parallel : &serial), 0);
    if (i) assert_memory_equal(&parallel, &serial, sizeof serial);
    query()->model_destroy(model);
  }
}

enum { CALLERS = 64, RUNS_EACH = 1000 };

typedef struct Caller {
  pthread_t thread;
  rnncc_model *model;
  unsigned seed;
  const StreamResult *expected;
  int failures;
} Caller;

static void *call_repeatedly(void *arg) {
  Caller *caller = arg;
  for (int i = 0; i < (RUNS_EACH + STREAM_RUNS - 1) / STREAM_RUNS; i++) {
    StreamResult result;
    caller->failures += run_stream(caller->model, caller->seed, &result);
    caller->failures += memcmp(&result, caller->expected, sizeof result) != 0;
  }
  return NULL;
}

static void sixty_four_callers_get_what_one_gets(void **state) {
  (void)state;
  static StreamResult expected[CALLERS];
  static Caller callers[CALLERS];
  rnncc_model *alone = model_of(1), *shared = model_of(3);
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(run_stream(alone, 100 * i, &expected[i]), 0);
    callers[i] = (Caller){.model = shared, .seed = 100 * i, .expected = &expected[i]};
  }
  for (int i = 0; i < CALLERS; i++)
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_repeatedly, &callers[i]), 0);
  for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
  for (int i = 0; i < CALLERS; i++) assert_int_equal(callers[i].failures, 0);
  query()->model_destroy(alone);
  query()->model_destroy(shared);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_abi_is_refused),
      cmocka_unit_test(a_missing_cpu_feature_is_named),
      cmocka_unit_test(registers_that_the_system_refuses_are_named),
      cmocka_unit_test(the_table_says_what_it_is),
      cmocka_unit_test(codes_have_names_and_sizes),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(fields_an_old_header_lacks_are_not_read),
      cmocka_unit_test(context_memory_is_checked),
      cmocka_unit_test(null_is_tolerated),
      cmocka_unit_test(a_profile_counts_runs_and_time_per_step),
      cmocka_unit_test(a_trace_says_what_each_worker_did),
      cmocka_unit_test(a_trace_without_room_is_refused),
      cmocka_unit_test(results_are_bit_identical_for_any_number_of_threads),
      cmocka_unit_test(sixty_four_callers_get_what_one_gets),
  };
  return cmocka_run_group_tests_name("runtime_model", tests, NULL, NULL);
}
