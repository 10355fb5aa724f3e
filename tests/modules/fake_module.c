/* SPDX-License-Identifier: MIT */
/*
 * A module written by hand, to test rnnrun without the compiler: y[T,3] = 2 x[T,3] + s and z[2] = k[2] + 1, where the
 * state s counts the runs before this one. k[0] = 99 is refused as out of range. A run takes 100 ns. FAKE_MODULE_RUN in
 * the environment has runs differ: crash, hang or exit says how they end; small: they are of little work, and take 1 us
 * where one of several threads does them alone; late: the eleventh takes 10 us; old: the profile is one of before it
 * counted flops; int8: its products are of integers.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rnncc.h"

struct rnncc_model {
  int32_t threads, share_all;
};

struct rnncc_context {
  const rnncc_model *model;
  float count;
  const char *error;
  rnncc_profile_entry profile;
};

/* As a later rnncc.h may have them: a reader goes on by the sizes that `info` says. */
typedef struct LaterDim {
  rnncc_dim_info known;
  const char *more;
} LaterDim;
typedef struct LaterTensor {
  rnncc_tensor_info known;
  const char *more;
} LaterTensor;

static const LaterDim dims[] = {{.known = {"T", 1, 4, 8, 1}}};
static const LaterTensor inputs[] = {
    {.known = {"x", RNNCC_F32, 2, {RNNCC_DYNAMIC, 3}, {8, 3}, {0, -1}}},
    {.known = {"k", RNNCC_I64, 1, {2}, {2}, {-1}}},
};
static const LaterTensor outputs[] = {
    {.known = {"y", RNNCC_F32, 2, {RNNCC_DYNAMIC, 3}, {8, 3}, {0, -1}}},
    {.known = {"z", RNNCC_I64, 1, {2}, {2}, {-1}}},
};
static const rnncc_tensor_info state = {"s", RNNCC_F32, 1, {1}, {1}, {-1}};
static const rnncc_state_info states[] = {{&state, -1, 1}};
static const rnncc_info info = {
    .struct_size = sizeof info,
    .name = "fake\033[1m",
    .model_version = "",
    .isa = "plain",
    .target = "native",
    .weights_sha256 = "",
    .build = "by hand",
    .n_dims = 1,
    .n_inputs = 2,
    .n_outputs = 2,
    .n_states = 1,
    .dim_size = sizeof *dims,
    .tensor_size = sizeof *inputs,
    .state_size = sizeof *states,
    .dims = &dims->known,
    .inputs = &inputs->known,
    .outputs = &outputs->known,
    .states = states,
};

static rnncc_status model_create(const rnncc_options *options, rnncc_model **out, const char **why) {
  (void)why;
  *out = calloc(1, sizeof **out);
  (*out)->threads = options && options->threads ? options->threads : 1;
  (*out)->share_all = options && options->share_all;
  return RNNCC_OK;
}

static void model_destroy(rnncc_model *model) { free(model); }
static int32_t model_threads(const rnncc_model *model) { return model->threads; }

static bool runs_are(const char *how) {
  const char *asked = getenv("FAKE_MODULE_RUN");
  return asked && !strcmp(asked, how);
}

static rnncc_status context_create(rnncc_model *model, void *memory, size_t bytes, rnncc_context **out,
                                   const char **why) {
  (void)memory, (void)bytes, (void)why;
  *out = calloc(1, sizeof **out);
  (*out)->model = model;
  (*out)->error = "";
  (*out)->profile = (rnncc_profile_entry){.struct_size = sizeof(rnncc_profile_entry),
                                          .kernel = "double_plain",
                                          .node = "y",
                                          .flops = 24,
                                          .bytes = 96,
                                          .products = runs_are("int8") ? RNNCC_I8 : RNNCC_F32};
  return RNNCC_OK;
}

static void context_destroy(rnncc_context *context) { free(context); }

static rnncc_status warmup(rnncc_context *context) {
  (void)context;
  return RNNCC_OK;
}

static void misbehave(void) {
  if (runs_are("crash")) raise(SIGKILL);
  if (runs_are("exit")) _exit(0);
  while (runs_are("hang")) pause();
}

/* count: of runs before this one. */
static uint64_t nanoseconds_of(const rnncc_model *model, float count) {
  bool alone = runs_are("small") && model->threads > 1 && !model->share_all;
  bool late = runs_are("late") && count == 10;
  return late ? 10000 : alone ? 1000 : 100;
}

static rnncc_status run(rnncc_context *context, const rnncc_tensor *in, size_t n_in, rnncc_tensor *out, size_t n_out) {
  (void)n_in, (void)n_out;
  misbehave();
  const float *x = in[0].data;
  const int64_t *k = in[1].data;
  if (k[0] == 99) {
    context->error = "input k: 99 at [0] is out of range";
    return RNNCC_ERROR_VALUE;
  }
  float *y = out[0].data;
  for (int64_t i = 0; i < in[0].shape[0] * 3; i++) y[i] = 2 * x[i] + context->count;
  for (int i = 0; i < 2; i++) ((int64_t *)out[1].data)[i] = k[i] + 1;
  memcpy(out[0].shape, in[0].shape, sizeof in[0].shape);
  out[0].rank = 2;
  out[1].rank = 1;
  out[1].shape[0] = 2;
  context->count += 1;
  context->profile.calls += 1;
  context->profile.flops_done += 6 * (double)in[0].shape[0];
  context->profile.bytes_done += 24 * (double)in[0].shape[0];
  context->profile.nanoseconds += nanoseconds_of(context->model, context->count - 1);
  return RNNCC_OK;
}

static rnncc_status profile(rnncc_context *context, int32_t on, const rnncc_profile_entry **entries, size_t *n) {
  if (on) {
    context->profile.calls = context->profile.nanoseconds = 0;
    context->profile.flops_done = context->profile.bytes_done = 0;
  }
  if (runs_are("old")) context->profile.struct_size = offsetof(rnncc_profile_entry, flops_done);
  *entries = &context->profile;
  *n = 1;
  return RNNCC_OK;
}

static const char *last_error(const rnncc_context *context) { return context->error; }

static const rnncc_api api;
static const rnncc_api *const networks[] = {&api};

static const rnncc_api api = {
    .abi = RNNCC_ABI,
    .struct_size = sizeof api,
    .info = &info,
    .model_create = model_create,
    .model_destroy = model_destroy,
    .model_threads = model_threads,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .warmup = warmup,
    .run = run,
    .profile = profile,
    .last_error = last_error,
    .networks = networks,
    .n_networks = 1,
};

const rnncc_api *rnncc_module_query(uint32_t abi, const char **why) {
  if (getenv("FAKE_MODULE_REFUSES")) {
    *why = "this CPU lacks avx512f";
    return NULL;
  }
  return abi == RNNCC_ABI ? &api : NULL;
}
