/* SPDX-License-Identifier: MIT */
/* run(): the right result; and for each wrong argument its code, its message, and unchanged data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "context.h"
#include "runtime_fake.h"

typedef struct Fixture {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
  FakeCall call;
} Fixture;

static int open_context(void **state) {
  static Fixture it;
  it = (Fixture){.api = rnncc_module_query(RNNCC_ABI, NULL)};
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  if (it.api->model_create(&options, &it.model, NULL)) return -1;
  if (it.api->context_create(it.model, NULL, 0, &it.context, NULL)) return -1;
  fake_call_init(&it.call, 5, 3, 1);
  *state = &it;
  return 0;
}

static int close_context(void **state) {
  Fixture *it = *state;
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
  return 0;
}

/* The recurrence of runtime_fake.h from zero states; every value is a multiple of 2^-16 below 2^8, thus exact. */
static void expect_y(const FakeCall *call, int64_t T, int64_t n, double *y) {
  double h0[FAKE_B * FAKE_F] = {0}, h1[FAKE_B * FAKE_F] = {0};
  for (int64_t t = 0; t < T; t++) {
    for (int64_t i = 0; i < n; i++) h0[i] = h0[i] / 2 + call->scale * call->x[t * n + i];
    for (int64_t i = 0; i < n; i++) y[t * n + i] = h1[i] = h1[i] / 2 + h0[n - 1 - i];
  }
}

static void run_computes_the_recurrence(void **state) {
  Fixture *it = *state;
  for (int64_t T = 0; T <= FAKE_T; T++)
    for (int64_t B = 1; B <= FAKE_B; B++) {
      FakeCall *call = &it->call;
      double y[FAKE_T * FAKE_B * FAKE_F];
      fake_call_init(call, T, B, 1 + T);
      expect_y(call, T, B * FAKE_F, y);
      assert_int_equal(it->api->state_reset(it->context, -1), RNNCC_OK);
      assert_int_equal(fake_call_run(it->api, it->context, call), RNNCC_OK);
      for (int64_t i = 0; i < T * B * FAKE_F; i++) assert_true(call->y[i] == y[i]);
      for (int64_t i = 0; i < B * FAKE_F; i++) {
        int64_t length = call->lengths[i / FAKE_F];
        assert_true(call->last[i] == (length ? y[(length - 1) * B * FAKE_F + i] : 0));
      }
    }
}

static void run_sets_output_shapes_and_writes_no_further(void **state) {
  Fixture *it = *state;
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_OK);
  const rnncc_tensor *y = &it->call.outputs[0], *last = &it->call.outputs[1];
  assert_int_equal(y->rank, 3);
  assert_memory_equal(y->shape, ((int64_t[]){5, 3, FAKE_F}), 3 * sizeof(int64_t));
  assert_int_equal(last->rank, 2);
  assert_memory_equal(last->shape, ((int64_t[]){3, FAKE_F}), 2 * sizeof(int64_t));
  for (int i = 5 * 3 * FAKE_F; i < FAKE_T * FAKE_B * FAKE_F; i++) assert_true(it->call.y[i] == -77);
  for (int i = 3 * FAKE_F; i < FAKE_B * FAKE_F; i++) assert_true(it->call.last[i] == -77);
}

/* Wrong calls: the change that makes a right call wrong, and run's message. */
typedef struct Wrong {
  const char *name;
  void (*spoil)(FakeCall *call);
  rnncc_status status;
  const char *message; /* a part of it */
} Wrong;

static void x_rank(FakeCall *call) { call->inputs[0].rank = 2; }
static void x_rank_huge(FakeCall *call) { call->inputs[0].rank = 1000000; }
static void x_rank_negative(FakeCall *call) { call->inputs[0].rank = -1; }
static void x_fixed_axis(FakeCall *call) { call->inputs[0].shape[2] = 4; }
static void x_batch_disagrees(FakeCall *call) { call->inputs[1].shape[0] = 2; }
static void x_too_long(FakeCall *call) { call->inputs[0].shape[0] = FAKE_T + 1; }
static void x_negative(FakeCall *call) { call->inputs[0].shape[0] = -1; }
static void x_overflows(FakeCall *call) { call->inputs[0].shape[0] = INT64_MAX / 2; }
static void x_no_batch(FakeCall *call) { call->inputs[0].shape[1] = 0; }
static void x_dtype(FakeCall *call) { call->inputs[0].dtype = RNNCC_I32; }
static void x_dtype_unknown(FakeCall *call) { call->inputs[0].dtype = (rnncc_dtype)12345; }
static void x_bytes(FakeCall *call) { call->inputs[0].bytes -= 1; }
static void x_null(FakeCall *call) { call->inputs[0].data = NULL; }
static void x_misaligned(FakeCall *call) { call->inputs[0].data = (char *)call->x + 1; }
static void lengths_misaligned(FakeCall *call) { call->inputs[1].data = (char *)call->lengths + 4; }
static void length_past_T(FakeCall *call) { call->lengths[2] = 6; }
static void length_negative(FakeCall *call) { call->lengths[0] = -1; }
static void y_dtype(FakeCall *call) { call->outputs[0].dtype = RNNCC_NONE; }
static void y_bytes(FakeCall *call) { call->outputs[0].bytes = 5 * 3 * FAKE_F * sizeof(float) - 1; }
static void y_null(FakeCall *call) { call->outputs[0].data = NULL; }
static void y_misaligned(FakeCall *call) { call->outputs[0].data = (char *)call->y + 2; }
static void y_is_x(FakeCall *call) { call->outputs[0].data = call->x; }
static void last_in_y(FakeCall *call) { call->outputs[1].data = call->y + 44; } /* y's last element */
static void poison(FakeCall *call) { call->x[7] = FAKE_POISON; }

static const Wrong wrongs[] = {
    {"x_rank", x_rank, RNNCC_ERROR_SHAPE, "input 'x' has rank 2, the model's is 3"},
    {"x_rank_huge", x_rank_huge, RNNCC_ERROR_SHAPE, "rank 1000000"},
    {"x_rank_negative", x_rank_negative, RNNCC_ERROR_SHAPE, "rank -1"},
    {"x_fixed_axis", x_fixed_axis, RNNCC_ERROR_SHAPE, "axis 2 is 4, the model's is 3"},
    {"x_batch_disagrees", x_batch_disagrees, RNNCC_ERROR_SHAPE, "'lengths': axis 0 is 2, but 'B' is 3"},
    {"x_too_long", x_too_long, RNNCC_ERROR_BOUND, "axis 0 is 17, but 'T' was compiled for 0 to 16"},
    {"x_negative", x_negative, RNNCC_ERROR_BOUND, "axis 0 is -1"},
    {"x_overflows", x_overflows, RNNCC_ERROR_BOUND, "'T'"},
    {"x_no_batch", x_no_batch, RNNCC_ERROR_BOUND, "'B' was compiled for 1 to 4"},
    {"x_dtype", x_dtype, RNNCC_ERROR_DTYPE, "input 'x' has type i32, the model's is f32"},
    {"x_dtype_unknown", x_dtype_unknown, RNNCC_ERROR_DTYPE, "no known type"},
    {"x_bytes", x_bytes, RNNCC_ERROR_SIZE, "the buffer has 179 bytes, its shape takes 180"},
    {"x_null", x_null, RNNCC_ERROR_ARGUMENT, "input 'x': data is NULL"},
    {"x_misaligned", x_misaligned, RNNCC_ERROR_ARGUMENT, "input 'x': data is not aligned to its 4-byte elements"},
    {"lengths_misaligned", lengths_misaligned, RNNCC_ERROR_ARGUMENT, "8-byte elements"},
    {"length_past_T", length_past_T, RNNCC_ERROR_VALUE, "element 2 is 6; a sequence length lies in 0 to 5"},
    {"length_negative", length_negative, RNNCC_ERROR_VALUE, "element 0 is -1"},
    {"y_dtype", y_dtype, RNNCC_ERROR_DTYPE, "output 'y' has type none"},
    {"y_bytes", y_bytes, RNNCC_ERROR_SIZE, "output 'y': the buffer has 179 bytes, its shape takes 180"},
    {"y_null", y_null, RNNCC_ERROR_ARGUMENT, "output 'y': data is NULL"},
    {"y_misaligned", y_misaligned, RNNCC_ERROR_ARGUMENT, "output 'y': data is not aligned"},
    {"y_is_x", y_is_x, RNNCC_ERROR_ARGUMENT, "output 'y' overlaps input 'x'"},
    {"last_in_y", last_in_y, RNNCC_ERROR_ARGUMENT, "output 'last' overlaps output 'y'"},
    {"poison", poison, RNNCC_ERROR_VALUE, "computed in the model"},
};

static void check_wrong(Fixture *it, const Wrong *wrong) {
  FakeCall call, before;
  float h[2 * FAKE_B * FAKE_F], h_before[2 * FAKE_B * FAKE_F];
  fake_call_init(&call, 5, 3, 1);
  wrong->spoil(&call);
  before = call;
  it->api->state_get(it->context, 0, -1, h_before, sizeof h_before);
  rnncc_status status = fake_call_run(it->api, it->context, &call);
  if (status != wrong->status) fail_msg("%s: status %d, expected %d", wrong->name, status, wrong->status);
  const char *message = it->api->last_error(it->context);
  if (!strstr(message, wrong->message)) fail_msg("%s: \"%s\" lacks \"%s\"", wrong->name, message, wrong->message);
  if (memcmp(&call, &before, sizeof call)) fail_msg("%s: the caller's data changed", wrong->name);
  it->api->state_get(it->context, 0, -1, h, sizeof h);
  if (memcmp(h, h_before, sizeof h)) fail_msg("%s: the states changed", wrong->name);
}

static void each_wrong_call_has_its_code_and_touches_nothing(void **state) {
  Fixture *it = *state;
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_OK); /* states other than zero */
  for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) check_wrong(it, &wrongs[i]);
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_OK); /* and the context still works */
}

static void wrong_counts_and_nulls_are_refused(void **state) {
  Fixture *it = *state;
  const rnncc_api *api = it->api;
  FakeCall *call = &it->call;
  assert_int_equal(api->run(NULL, call->inputs, 3, call->outputs, 2), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->run(it->context, NULL, 3, call->outputs, 2), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->run(it->context, call->inputs, 3, NULL, 2), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->run(it->context, call->inputs, 2, call->outputs, 2), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(api->last_error(it->context), "2 inputs given, the model has 3");
  assert_int_equal(api->run(it->context, call->inputs, 3, call->outputs, 3), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(api->run(it->context, call->inputs, (size_t)1 << 32 | 3, call->outputs, 2), RNNCC_ERROR_ARGUMENT);
}

static void zero_steps_need_no_buffers_and_keep_the_states(void **state) {
  Fixture *it = *state;
  float h[2 * FAKE_B * FAKE_F], after[2 * FAKE_B * FAKE_F];
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_OK);
  it->api->state_get(it->context, 0, -1, h, sizeof h);
  FakeCall empty;
  fake_call_init(&empty, 0, 3, 1);
  empty.inputs[0].data = empty.outputs[0].data = NULL;
  empty.outputs[0].bytes = 0;
  assert_int_equal(fake_call_run(it->api, it->context, &empty), RNNCC_OK);
  assert_int_equal(empty.outputs[0].shape[0], 0);
  for (int i = 0; i < 3 * FAKE_F; i++) assert_true(empty.last[i] == 0);
  it->api->state_get(it->context, 0, -1, after, sizeof after);
  assert_memory_equal(h, after, sizeof h);
}

static void a_fresh_context_has_no_error(void **state) {
  Fixture *it = *state;
  assert_string_equal(it->api->last_error(it->context), "");
  assert_string_equal(it->api->last_error(NULL), "");
}

static void tensors_without_their_size_are_refused(void **state) {
  Fixture *it = *state;
  it->call.inputs[0].struct_size = 0;
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(it->api->last_error(it->context), "inputs[0].struct_size is 0; expected sizeof(rnncc_tensor)");
  fake_call_init(&it->call, 5, 3, 1);
  it->call.outputs[0].struct_size = sizeof(rnncc_tensor) + 1;
  assert_int_equal(fake_call_run(it->api, it->context, &it->call), RNNCC_ERROR_ARGUMENT);
  assert_non_null(strstr(it->api->last_error(it->context), "outputs[0].struct_size is 97"));
}

static rnncc_status shapes_at(const Fixture *it, int64_t T, int64_t B, int64_t (*shapes)[RNNCC_MAX_RANK]) {
  return it->api->output_shapes(it->context, (const int64_t[]){T, B}, 2, shapes, FAKE_OUTPUTS);
}

static void shapes_are_known_before_a_run(void **state) {
  const Fixture *it = *state;
  int64_t shapes[FAKE_OUTPUTS][RNNCC_MAX_RANK];
  assert_int_equal(shapes_at(it, 7, 2, shapes), RNNCC_OK);
  assert_memory_equal(shapes[0], ((const int64_t[]){7, 2, FAKE_F}), 3 * sizeof(int64_t));
  assert_memory_equal(shapes[1], ((const int64_t[]){2, FAKE_F}), 2 * sizeof(int64_t));
  assert_int_equal(shapes_at(it, FAKE_T + 1, 2, shapes), RNNCC_ERROR_BOUND);
  assert_string_equal(it->api->last_error(it->context), "'T' is 17, but was compiled for 0 to 16");
  assert_int_equal(shapes_at(it, 7, 0, shapes), RNNCC_ERROR_BOUND);
  const int64_t dims[] = {7, 2};
  assert_int_equal(it->api->output_shapes(it->context, dims, 1, shapes, FAKE_OUTPUTS), RNNCC_ERROR_ARGUMENT);
  assert_string_equal(it->api->last_error(it->context), "1 dims given, the model has 2");
  assert_int_equal(it->api->output_shapes(it->context, NULL, 2, shapes, FAKE_OUTPUTS), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(it->api->output_shapes(it->context, dims, 2, NULL, FAKE_OUTPUTS), RNNCC_ERROR_ARGUMENT);
  assert_int_equal(it->api->output_shapes(NULL, dims, 2, shapes, FAKE_OUTPUTS), RNNCC_ERROR_ARGUMENT);
}

static void shapes_keep_to_multiples(void **state) {
  const Fixture *it = *state;
  Module even = rnncc_module;
  rnncc_dim_info dims[] = {rnncc_module.info.dims[0], rnncc_module.info.dims[1]};
  dims[0].multiple = 4;
  even.info.dims = dims;
  Fixture own = {.api = it->api};
  int64_t shapes[FAKE_OUTPUTS][RNNCC_MAX_RANK];
  assert_int_equal(model_create(&even, NULL, &own.model, NULL), RNNCC_OK);
  assert_int_equal(own.api->context_create(own.model, NULL, 0, &own.context, NULL), RNNCC_OK);
  assert_int_equal(shapes_at(&own, 8, 1, shapes), RNNCC_OK);
  assert_int_equal(shapes_at(&own, 6, 1, shapes), RNNCC_ERROR_BOUND);
  assert_string_equal(own.api->last_error(own.context), "'T' is 6, but was compiled for multiples of 4");
  own.api->context_destroy(own.context);
  own.api->model_destroy(own.model);
}

/* Of the last run. */
static int team_size;
static void see_team(const Team *team) {
  if (team->rank == 0) team_size = team->size;
}

static int team_of_run(const rnncc_api *api, const Module *module, int32_t share_all, int64_t T, int64_t B) {
  rnncc_options options = {.struct_size = sizeof options, .threads = 2, .share_all = share_all};
  rnncc_model *model;
  rnncc_context *context;
  FakeCall call;
  assert_int_equal(model_create(module, &options, &model, NULL), RNNCC_OK);
  assert_int_equal(api->context_create(model, NULL, 0, &context, NULL), RNNCC_OK);
  fake_call_init(&call, T, B, 1);
  fake_hook = see_team;
  assert_int_equal(fake_call_run(api, context, &call), RNNCC_OK);
  fake_hook = NULL;
  api->context_destroy(context);
  api->model_destroy(model);
  return team_size;
}

/* The optima are T = 5 and B = 1. */
static void a_run_of_little_work_is_its_callers_alone(void **state) {
  const Fixture *it = *state;
  Module small = rnncc_module;
  assert_int_equal(team_of_run(it->api, &small, 0, 1, 1), 2);
  small.share_from = 6;
  assert_int_equal(team_of_run(it->api, &small, 0, 5, 1), 1);
  assert_int_equal(team_of_run(it->api, &small, 0, 14, 2), 1);
  assert_int_equal(team_of_run(it->api, &small, 0, 15, 2), 2);
  assert_int_equal(team_of_run(it->api, &small, 1, 5, 1), 2);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, open_context, close_context)
  const struct CMUnitTest tests[] = {
      TEST(tensors_without_their_size_are_refused),
      TEST(shapes_are_known_before_a_run),
      TEST(shapes_keep_to_multiples),
      TEST(run_computes_the_recurrence),
      TEST(run_sets_output_shapes_and_writes_no_further),
      TEST(each_wrong_call_has_its_code_and_touches_nothing),
      TEST(wrong_counts_and_nulls_are_refused),
      TEST(zero_steps_need_no_buffers_and_keep_the_states),
      TEST(a_fresh_context_has_no_error),
      TEST(a_run_of_little_work_is_its_callers_alone),
  };
  return cmocka_run_group_tests_name("runtime_run", tests, NULL, NULL);
}
