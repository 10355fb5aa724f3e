/* SPDX-License-Identifier: MIT */
/*
 * Weights that change, by a module written by hand: what is packed and derived of them, versions that runs read, what
 * is wrong with a call, and that memory which is not there changes nothing.
 *
 *   a [2, 3], kept   c = 2 a, derived   c transposed; a's rows added up; a in bf16
 *   b [4], not kept  d = 3 b, derived where the schedule leaves it   b, each second element of its block
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "module.h"
#include "sha256.h"

enum { ROWS = 2, COLUMNS = 3, N_A = ROWS * COLUMNS, N_B = 4 };
enum { A, B, C, D, C_TURNED, SUMS, A_HALVES, B_APART, BLOCKS };
enum { BYTES_A = N_A * sizeof(float), BYTES_B = N_B * sizeof(float), AT_B = 64 };

/* ---- the module ---- */

static _Alignas(64) float numbers[AT_B / sizeof(float) + N_B] = {1, 2, 3, 4, 5, 6, [AT_B / sizeof(float)] = 7,
                                                                 8, 9, 10};
static char digest_text[SHA256_HEX_BYTES];

static int derived_c; /* how often */
static void derive_c(const Run *run, Team *team) {
  const float *a = run->inputs[A];
  float *c = run->outputs[0];
  derived_c += team->rank == 0;
  for (int i = 0; team->rank == 0 && i < N_A; i++) c[i] = 2 * a[i];
}

static void derive_d(const Run *run, Team *team) {
  const float *b = run->inputs[B];
  float *d = (float *)run->arena;
  for (int i = 0; team->rank == 0 && i < N_B; i++) d[i] = 3 * b[i];
}

static const Module derivation = {
    .info = {.struct_size = sizeof(rnncc_info), .arena_bytes = BYTES_B, .n_inputs = 2, .n_outputs = 2},
    .parts = (void (*const[])(const Run *, Team *)){derive_c, derive_d},
    .n_parts = 2,
    .staged_outputs = (const int64_t[]){-1, 0},
};

static const ModuleCopy copies[] = {
    {C, C_TURNED, RNNCC_F32, 0, 2, 0, 0, {ROWS, COLUMNS}, {COLUMNS, 1}, {1, ROWS}},
    {A, SUMS, RNNCC_F32, 0, 1, 0, 0, {COLUMNS}, {1}, {1}},
    {A, SUMS, RNNCC_F32, 1, 1, COLUMNS, 0, {COLUMNS}, {1}, {1}},
    {A, A_HALVES, RNNCC_BF16, 0, 1, 0, 0, {N_A}, {1}, {1}},
    {B, B_APART, RNNCC_F32, 0, 1, 0, 0, {N_B}, {1}, {2}},
};

static const ModuleMutable table = {
    .given = (const size_t[]){0, AT_B},
    .kept = (const unsigned char[]){1, 0},
    .n_blocks = BLOCKS,
    .block_bytes = (const size_t[]){BYTES_A, BYTES_B, BYTES_A, BYTES_B, BYTES_A, COLUMNS * sizeof(float),
                                    N_A * sizeof(uint16_t), 2 * BYTES_B},
    .copies = copies,
    .n_copies = sizeof copies / sizeof *copies,
    .derivation = &derivation,
    .derives = (const int32_t[]){0, 1},
    .derived_parts = (const int32_t[]){0, 1},
    .n_derived = 2,
};

static void (*hook)(const unsigned char *const *blocks);
static void schedule(const Run *run, Team *team) {
  if (team->rank == 0) {
    memcpy(run->outputs[0], run->blocks, BLOCKS * sizeof *run->blocks);
    if (hook) hook(run->blocks);
  }
}

static void output_shapes(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]) {
  (void)dims;
  shapes[0][0] = BLOCKS;
}

static const rnncc_tensor_info weights[] = {
    {"a", RNNCC_F32, 2, {ROWS, COLUMNS}, {ROWS, COLUMNS}, {-1, -1}},
    {"b", RNNCC_F32, 1, {N_B}, {N_B}, {-1}},
};
static const rnncc_tensor_info outputs[] = {{"blocks", RNNCC_I64, 1, {BLOCKS}, {BLOCKS}, {-1}}};

const Module rnncc_module = {
    .info = {.struct_size = sizeof(rnncc_info),
             .name = "weights",
             .weights_sha256 = digest_text,
             .tensor_size = sizeof *weights,
             .n_outputs = 1,
             .outputs = outputs,
             .n_weights = 2,
             .weights = weights},
    .weights = (const unsigned char *)numbers,
    .file_weights_bytes = sizeof numbers,
    .mutable_weights = &table,
    .output_shapes = output_shapes,
    .schedule = schedule,
};

/* ---- the runtime's allocations, by the linker's --wrap ---- */

enum { NEVER = -1 };
static int until_failure = NEVER; /* allocations that still succeed */
static int allocated;             /* less what was freed */
static int blocks_taken;

static bool fails(void) {
  if (until_failure == NEVER) return false;
  return until_failure-- == 0;
}

void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static void *counted(void *memory) {
  allocated += memory != NULL;
  return memory;
}

void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__real_calloc(count, bytes)); }
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  blocks_taken++;
  return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}
void __wrap_free(void *memory) {
  allocated -= memory != NULL;
  __real_free(memory);
}

/* ---- a model ---- */

typedef struct Fixture {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
  const void *blocks[BLOCKS]; /* what the last run read */
} Fixture;

static int open_model(Fixture *it, int threads) {
  const rnncc_options options = {.struct_size = sizeof options, .threads = threads, .share_all = 1};
  *it = (Fixture){.api = rnncc_module_query(RNNCC_ABI, NULL)};
  if (it->api->model_create(&options, &it->model, NULL)) return -1;
  return it->api->context_create(it->model, NULL, 0, &it->context, NULL) ? -1 : 0;
}

static void close_model(Fixture *it) {
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
}

static int open_one(void **state) {
  static Fixture it;
  *state = &it;
  return open_model(&it, 1);
}

static int close_one(void **state) {
  close_model(*state);
  return 0;
}

static void run(Fixture *it) {
  rnncc_tensor out = {sizeof out, RNNCC_I64, it->blocks, sizeof it->blocks, 0, {0}};
  assert_int_equal(it->api->run(it->context, NULL, 0, &out, 1), RNNCC_OK);
}

static rnncc_weight weight_of(const char *name, const float *data, size_t bytes) {
  return (rnncc_weight){sizeof(rnncc_weight), RNNCC_F32, name, data, bytes};
}

static rnncc_status set(Fixture *it, const char *name, const float *data, size_t bytes) {
  const rnncc_weight weight = weight_of(name, data, bytes);
  return it->api->weights_set(it->model, &weight, 1, NULL, 0);
}

/* What kernels read of these weights. */
static void expect_packed(const void *const *blocks, const float *a, const float *b) {
  const float *turned = blocks[C_TURNED], *sums = blocks[SUMS], *apart = blocks[B_APART], *d = blocks[D];
  const uint16_t *halves = blocks[A_HALVES];
  for (int i = 0; i < N_A; i++) {
    uint32_t bits = (uint32_t)halves[i] << 16;
    float half;
    memcpy(&half, &bits, sizeof half);
    assert_true(half == a[i]);
    assert_true(turned[i % COLUMNS * ROWS + i / COLUMNS] == 2 * a[i]);
  }
  for (int i = 0; i < COLUMNS; i++) assert_true(sums[i] == a[i] + a[COLUMNS + i]);
  for (int i = 0; i < N_B; i++) assert_true(apart[2 * i] == b[i] && apart[2 * i + 1] == 0 && d[i] == 3 * b[i]);
  assert_memory_equal(blocks[A], a, BYTES_A);
  assert_null(blocks[B]);
}

static void expect_given(Fixture *it, const float *a, const float *b) {
  float own_a[N_A], own_b[N_B];
  assert_int_equal(it->api->weights_get(it->model, "a", own_a, sizeof own_a, NULL, 0), RNNCC_OK);
  assert_int_equal(it->api->weights_get(it->model, "b", own_b, sizeof own_b, NULL, 0), RNNCC_OK);
  assert_memory_equal(own_a, a, BYTES_A);
  assert_memory_equal(own_b, b, BYTES_B);
}

static const float *const first_a = numbers, *const first_b = numbers + AT_B / sizeof(float);
static const float other_a[N_A] = {-1, 0.5f, 32, -4, 0, 8}, other_b[N_B] = {11, -12, 13, 14};

/* ---- what runs read ---- */

static void a_new_model_has_the_weights_of_the_file(void **state) {
  Fixture *it = *state;
  run(it);
  expect_packed(it->blocks, first_a, first_b);
  expect_given(it, first_a, first_b);
  assert_ptr_equal(it->blocks[A], numbers);
}

static void any_number_of_threads_packs_the_same(void **state) {
  (void)state;
  for (int threads = 1; threads <= 5; threads += 2) {
    Fixture it;
    assert_int_equal(open_model(&it, threads), 0);
    assert_int_equal(set(&it, "a", other_a, BYTES_A), RNNCC_OK);
    run(&it);
    expect_packed(it.blocks, other_a, first_b);
    close_model(&it);
  }
}

static void what_is_made_of_other_weights_stays_where_it_is(void **state) {
  Fixture *it = *state;
  const void *before[BLOCKS];
  int derived_before = derived_c;
  run(it);
  memcpy(before, it->blocks, sizeof before);
  assert_int_equal(set(it, "b", other_b, BYTES_B), RNNCC_OK);
  run(it);
  expect_packed(it->blocks, first_a, other_b);
  expect_given(it, first_a, other_b);
  for (int i = 0; i < BLOCKS; i++) assert_true((it->blocks[i] == before[i]) == (i != D && i != B_APART));
  assert_int_equal(derived_c, derived_before);
}

static void setting_again_takes_the_memory_of_the_version_before(void **state) {
  Fixture *it = *state;
  int after_two = 0;
  for (int i = 0; i < 6; i++) {
    assert_int_equal(set(it, "a", i % 2 ? first_a : other_a, BYTES_A), RNNCC_OK);
    if (i == 1) after_two = blocks_taken;
  }
  assert_int_equal(blocks_taken, after_two);
  run(it);
  expect_packed(it->blocks, first_a, first_b);
}

static void several_are_set_at_once_and_none_by_an_empty_list(void **state) {
  Fixture *it = *state;
  const rnncc_weight both[] = {weight_of("b", other_b, BYTES_B), weight_of("a", other_a, BYTES_A)};
  assert_int_equal(it->api->weights_set(it->model, both, 2, NULL, 0), RNNCC_OK);
  assert_int_equal(it->api->weights_set(it->model, NULL, 0, NULL, 0), RNNCC_OK);
  run(it);
  expect_packed(it->blocks, other_a, other_b);
}

static sem_t has_begun, may_end;

static void wait_in_the_run(const unsigned char *const *blocks) {
  sem_post(&has_begun);
  sem_wait(&may_end);
  expect_packed((const void *const *)blocks, first_a, first_b);
}

static void *run_there(void *arg) {
  run(arg);
  return NULL;
}

/* Each change while it runs takes memory; when it has ended, that of the versions before is used again. */
static void a_run_reads_one_version_however_often_weights_change(void **state) {
  Fixture *it = *state;
  pthread_t thread;
  sem_init(&has_begun, 0, 0);
  sem_init(&may_end, 0, 0);
  hook = wait_in_the_run;
  assert_int_equal(pthread_create(&thread, NULL, run_there, it), 0);
  sem_wait(&has_begun);
  hook = NULL;
  for (int i = 0; i < 3; i++) assert_int_equal(set(it, "a", i % 2 ? first_a : other_a, BYTES_A), RNNCC_OK);
  int while_running = allocated;
  expect_given(it, other_a, first_b);
  sem_post(&may_end);
  pthread_join(thread, NULL);
  for (int i = 0; i < 3; i++) assert_int_equal(set(it, "a", i % 2 ? first_a : other_a, BYTES_A), RNNCC_OK);
  assert_true(allocated < while_running);
  run(it);
  expect_packed(it->blocks, other_a, first_b);
}

static void contexts_come_and_go(void **state) {
  Fixture *it = *state;
  rnncc_context *more[3];
  for (int i = 0; i < 3; i++) assert_int_equal(it->api->context_create(it->model, NULL, 0, &more[i], NULL), RNNCC_OK);
  it->api->context_destroy(more[1]); /* between two others */
  assert_int_equal(set(it, "b", other_b, BYTES_B), RNNCC_OK);
  it->api->context_destroy(more[0]);
  it->api->context_destroy(more[2]);
  run(it);
  expect_packed(it->blocks, first_a, other_b);
}

/* ---- what is wrong with a call ---- */

static void expect_refused(Fixture *it, rnncc_weight weight, rnncc_status status, const char *words) {
  const rnncc_weight list[] = {weight_of("b", other_b, BYTES_B), weight};
  char why[200];
  assert_int_equal(it->api->weights_set(it->model, list, 2, why, sizeof why), status);
  assert_string_equal(why, words);
  assert_int_equal(it->api->weights_set(it->model, list, 2, NULL, 0), status);
  expect_given(it, first_a, first_b); /* of the others, too */
}

static void a_bad_weight_of_a_list_is_named_and_nothing_changes(void **state) {
  Fixture *it = *state;
  rnncc_weight good = weight_of("a", other_a, BYTES_A), bad = good;
  bad.name = "q";
  expect_refused(it, bad, RNNCC_ERROR_ARGUMENT, "no weight `q`; expected one of: a, b");
  bad.name = NULL;
  expect_refused(it, bad, RNNCC_ERROR_ARGUMENT, "weights_set: a name is NULL");
  bad.name = "b";
  bad.bytes = BYTES_B;
  expect_refused(it, bad, RNNCC_ERROR_ARGUMENT, "weight `b` is there twice");
  bad = good;
  bad.bytes--;
  expect_refused(it, bad, RNNCC_ERROR_SIZE, "weight `a`: expected 24 bytes, found 23");
  bad = good;
  bad.data = NULL;
  expect_refused(it, bad, RNNCC_ERROR_ARGUMENT, "weight `a`: its data is NULL");
  bad = good;
  bad.data = (const char *)other_a + 1;
  expect_refused(it, bad, RNNCC_ERROR_ARGUMENT, "weight `a`: its data is not aligned to its element");
  bad = good;
  bad.dtype = RNNCC_F64;
  expect_refused(it, bad, RNNCC_ERROR_DTYPE, "weight `a`: expected element type 1 of rnncc_dtype, found 6");
}

static void a_bad_list_is_refused(void **state) {
  Fixture *it = *state;
  rnncc_weight shorter = weight_of("a", other_a, BYTES_A);
  char why[200], few[12];
  shorter.struct_size = 8;
  assert_int_equal(it->api->weights_set(it->model, &shorter, 1, why, sizeof why), RNNCC_ERROR_ARGUMENT);
  assert_non_null(strstr(why, "weights_set: struct_size: expected at least"));
  assert_int_equal(it->api->weights_set(it->model, NULL, 1, why, sizeof why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "weights_set: `weights` is NULL");
  assert_int_equal(it->api->weights_set(NULL, &shorter, 1, why, sizeof why), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(why, "weights_set: the model is NULL");
  assert_int_equal(it->api->weights_get(it->model, "q", why, 1, few, sizeof few), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(few, "no weight `"); /* as much as there is room for */
  assert_int_equal(it->api->weights_get(it->model, "a", why, 1, why, sizeof why), RNNCC_ERROR_SIZE);
  expect_given(it, first_a, first_b);
}

static void weights_that_are_not_those_that_were_packed_are_told_where_it_is_asked(void **state) {
  (void)state;
  const rnncc_options options = {.struct_size = sizeof options, .threads = 1, .check_weights = 1};
  const rnncc_api *api = rnncc_module_query(RNNCC_ABI, NULL);
  uint8_t digest[SHA256_BYTES];
  const char *why = NULL;
  rnncc_model *model = NULL;
  sha256(numbers, sizeof numbers, digest);
  sha256_hex(digest, digest_text);
  assert_int_equal(api->model_create(&options, &model, &why), RNNCC_OK);
  api->model_destroy(model);
  numbers[1]++;
  assert_int_equal(api->model_create(&options, &model, &why), RNNCC_ERROR_UNSUPPORTED);
  numbers[1]--;
  assert_string_equal(why, "the weights are not those that were compiled (SHA-256): the file is damaged");
}

/* ---- out of memory ---- */

static void a_model_without_memory_is_none(void **state) {
  (void)state;
  const rnncc_options options = {.struct_size = sizeof options, .threads = 1};
  const rnncc_api *api = rnncc_module_query(RNNCC_ABI, NULL);
  rnncc_status status = RNNCC_ERROR_MEMORY;
  for (int k = 0; status; k++) {
    rnncc_model *model = NULL;
    int before = allocated;
    until_failure = k;
    status = api->model_create(&options, &model, NULL);
    bool all = until_failure != NEVER;
    until_failure = NEVER;
    assert_int_equal(status, all ? RNNCC_OK : RNNCC_ERROR_MEMORY);
    if (!status) api->model_destroy(model);
    assert_int_equal(allocated, before);
    assert_true(k < 100);
  }
}

static void without_memory_weights_stay_and_can_be_set_later(void **state) {
  Fixture *it = *state;
  rnncc_status status = RNNCC_ERROR_MEMORY;
  for (int k = 0; status; k++) {
    until_failure = k;
    status = set(it, "a", other_a, BYTES_A);
    until_failure = NEVER;
    assert_true(status == RNNCC_OK || status == RNNCC_ERROR_MEMORY);
    run(it);
    expect_packed(it->blocks, status ? first_a : other_a, first_b);
    assert_true(k < 100);
  }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)
  const struct CMUnitTest tests[] = {
      CASE(a_new_model_has_the_weights_of_the_file),
      cmocka_unit_test(any_number_of_threads_packs_the_same),
      CASE(what_is_made_of_other_weights_stays_where_it_is),
      CASE(setting_again_takes_the_memory_of_the_version_before),
      CASE(several_are_set_at_once_and_none_by_an_empty_list),
      CASE(a_run_reads_one_version_however_often_weights_change),
      CASE(contexts_come_and_go),
      CASE(a_bad_weight_of_a_list_is_named_and_nothing_changes),
      CASE(a_bad_list_is_refused),
      cmocka_unit_test(weights_that_are_not_those_that_were_packed_are_told_where_it_is_asked),
      cmocka_unit_test(a_model_without_memory_is_none),
      CASE(without_memory_weights_stay_and_can_be_set_later),
  };
  return cmocka_run_group_tests_name("runtime_weights", tests, NULL, NULL);
}
