/* SPDX-License-Identifier: MIT */
/* States: carried from run to run, per batch slot, and movable in and out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_fake.h"

enum { H = 0, RUNS = 1, SLOT = 2 * FAKE_F /* floats of h in one slot */, ALL = SLOT * FAKE_B };

typedef struct Fixture {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
} Fixture;

static int open_context(void **state) {
  static Fixture it;
  it.api = rnncc_module_query(RNNCC_ABI, NULL);
  if (it.api->model_create(NULL, &it.model, NULL)) return -1;
  if (it.api->context_create(it.model, NULL, 0, &it.context, NULL)) return -1;
  *state = &it;
  return 0;
}

static int close_context(void **state) {
  Fixture *it = *state;
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
  return 0;
}

/* h[l][b][f] := 100 l + 10 b + f */
static void number_h(Fixture *it) {
  float h[ALL];
  for (int i = 0; i < ALL; i++) {
    int l = i / (FAKE_B * FAKE_F), b = i / FAKE_F % FAKE_B, f = i % FAKE_F;
    h[i] = (float)(100 * l + 10 * b + f);
  }
  assert_int_equal(it->api->state_set(it->context, H, -1, h, sizeof h), RNNCC_OK);
}

static void expect_slot(Fixture *it, int slot, float base, float layer_step) {
  float got[SLOT];
  assert_int_equal(it->api->state_get(it->context, H, slot, got, sizeof got), RNNCC_OK);
  for (int i = 0; i < SLOT; i++) {
    int l = i / FAKE_F, f = layer_step ? i % FAKE_F : 0;
    assert_true(got[i] == base + layer_step * (float)l + (float)f);
  }
}

static void a_fresh_context_is_zero(void **state) {
  float h[ALL];
  Fixture *it = *state;
  assert_int_equal(it->api->state_get(it->context, H, -1, h, sizeof h), RNNCC_OK);
  for (int i = 0; i < ALL; i++) assert_true(h[i] == 0);
}

static void a_slot_is_cut_out_of_the_batch_axis(void **state) {
  Fixture *it = *state;
  number_h(it);
  for (int slot = 0; slot < FAKE_B; slot++) expect_slot(it, slot, 10 * slot, 100);
}

static void setting_a_slot_leaves_the_others(void **state) {
  Fixture *it = *state;
  number_h(it);
  float five[SLOT];
  for (int i = 0; i < SLOT; i++) five[i] = 5;
  assert_int_equal(it->api->state_set(it->context, H, 2, five, sizeof five), RNNCC_OK);
  for (int slot = 0; slot < FAKE_B; slot++)
    if (slot != 2) expect_slot(it, slot, 10 * slot, 100);
  expect_slot(it, 2, 5, 0);
}

static int64_t runs_of(Fixture *it) {
  int64_t runs = -1;
  assert_int_equal(it->api->state_get(it->context, RUNS, 0, &runs, sizeof runs), RNNCC_OK);
  return runs;
}

static void resetting_a_batch_slot_leaves_the_others(void **state) {
  Fixture *it = *state;
  number_h(it);
  it->api->state_set(it->context, RUNS, 0, &(int64_t){7}, sizeof(int64_t));
  assert_int_equal(it->api->state_reset(it->context, 1), RNNCC_OK);
  expect_slot(it, 1, 0, 0);
  for (int slot = 0; slot < FAKE_B; slot++)
    if (slot != 1) expect_slot(it, slot, 10 * slot, 100);
  assert_int_equal(runs_of(it), 7); /* without a batch axis: it belongs to slot 0 */
  assert_int_equal(it->api->state_reset(it->context, 0), RNNCC_OK);
  assert_int_equal(runs_of(it), 0);
  assert_int_equal(it->api->state_reset(it->context, -1), RNNCC_OK);
  for (int slot = 0; slot < FAKE_B; slot++) expect_slot(it, slot, 0, 0);
}

static void slots_past_the_batch_keep_their_values(void **state) {
  Fixture *it = *state;
  number_h(it);
  FakeCall call;
  fake_call_init(&call, 1, 2, 3);
  assert_int_equal(fake_call_run(it->api, it->context, &call), RNNCC_OK);
  expect_slot(it, 2, 20, 100);
  expect_slot(it, 3, 30, 100);
  float got[SLOT];
  assert_int_equal(it->api->state_get(it->context, H, 1, got, sizeof got), RNNCC_OK);
  for (int f = 0; f < FAKE_F; f++) assert_true(got[f] == (10 + f) / 2.f + call.scale * call.x[FAKE_F + f]);
}

static void chunks_with_carried_state_equal_the_whole(void **state) {
  Fixture *it = *state;
  FakeCall whole, part;
  fake_call_init(&whole, FAKE_T, 3, 9);
  assert_int_equal(fake_call_run(it->api, it->context, &whole), RNNCC_OK);
  it->api->state_reset(it->context, -1);
  static const int64_t chunks[] = {1, 4, 0, 11};
  for (int64_t c = 0, t = 0; c < 4; t += chunks[c++]) {
    fake_call_init(&part, chunks[c], 3, 1);
    memcpy(part.x, whole.x + t * 3 * FAKE_F, chunks[c] * 3 * FAKE_F * sizeof(float));
    assert_int_equal(fake_call_run(it->api, it->context, &part), RNNCC_OK);
    assert_memory_equal(part.y, whole.y + t * 3 * FAKE_F, chunks[c] * 3 * FAKE_F * sizeof(float));
  }
}

static void a_state_without_batch_axis_has_one_slot(void **state) {
  Fixture *it = *state;
  FakeCall call;
  fake_call_init(&call, 2, 1, 1);
  int64_t runs = 41, again;
  assert_int_equal(it->api->state_set(it->context, RUNS, -1, &runs, sizeof runs), RNNCC_OK);
  assert_int_equal(fake_call_run(it->api, it->context, &call), RNNCC_OK);
  assert_int_equal(it->api->state_get(it->context, RUNS, 0, &runs, sizeof runs), RNNCC_OK);
  assert_int_equal(it->api->state_get(it->context, RUNS, -1, &again, sizeof again), RNNCC_OK);
  assert_int_equal(runs, 42);
  assert_int_equal(again, 42);
}

static void a_saved_state_resumes_in_another_context(void **state) {
  Fixture *it = *state;
  FakeCall first, second, resumed;
  float h[ALL];
  fake_call_init(&first, 5, FAKE_B, 1);
  fake_call_init(&second, 5, FAKE_B, 2);
  resumed = second;
  assert_int_equal(fake_call_run(it->api, it->context, &first), RNNCC_OK);
  it->api->state_get(it->context, H, -1, h, sizeof h);
  assert_int_equal(fake_call_run(it->api, it->context, &second), RNNCC_OK);
  rnncc_context *other;
  assert_int_equal(it->api->context_create(it->model, NULL, 0, &other, NULL), RNNCC_OK);
  it->api->state_set(other, H, -1, h, sizeof h);
  resumed.inputs[0].data = second.x; /* the tensors still point into `second`; only outputs differ */
  resumed.outputs[0].data = resumed.y;
  resumed.outputs[1].data = resumed.last;
  assert_int_equal(fake_call_run(it->api, other, &resumed), RNNCC_OK);
  assert_memory_equal(resumed.y, second.y, sizeof second.y);
  it->api->context_destroy(other);
}

static void wrong_arguments_are_refused(void **state) {
  Fixture *it = *state;
  const rnncc_api *api = it->api;
  float h[ALL + 1] = {0};
  assert_int_equal(api->state_get(NULL, H, 0, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_set(NULL, H, 0, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_reset(NULL, 0), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_get(it->context, 2, 0, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_get(it->context, -1, 0, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_get(it->context, H, FAKE_B, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(api->last_error(it->context), "state 'h' has slots 0 to 3 (-1 for all), not 4");
  assert_int_equal(api->state_set(it->context, H, -2, h, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_reset(it->context, -2), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_reset(it->context, INT32_MAX), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_set(it->context, H, 0, NULL, SLOT * 4), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->state_set(it->context, H, 0, h, SLOT * 4 - 1), RNNCC_ERROR_SIZE);
  assert_int_equal(api->state_get(it->context, H, -1, h, sizeof h), RNNCC_ERROR_SIZE);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, open_context, close_context)
  const struct CMUnitTest tests[] = {
      TEST(a_fresh_context_is_zero),
      TEST(a_slot_is_cut_out_of_the_batch_axis),
      TEST(setting_a_slot_leaves_the_others),
      TEST(resetting_a_batch_slot_leaves_the_others),
      TEST(slots_past_the_batch_keep_their_values),
      TEST(chunks_with_carried_state_equal_the_whole),
      TEST(a_state_without_batch_axis_has_one_slot),
      TEST(a_saved_state_resumes_in_another_context),
      TEST(wrong_arguments_are_refused),
  };
  return cmocka_run_group_tests_name("runtime_state", tests, NULL, NULL);
}
