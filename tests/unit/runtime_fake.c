/* SPDX-License-Identifier: MIT */
/* What rnncc would emit for the model described in runtime_fake.h, written by hand. */
#include "runtime_fake.h"

#include <string.h>

void (*fake_hook)(const Team *team);

enum { DIM_T, DIM_B };
enum { LAYER = FAKE_B * FAKE_F * sizeof(float) };
/* The arena. y is staged, because a poisoned x is found too late; `last` is written in place, after that check. */
enum { H_IN = 0, H_OUT = 128, RUNS_IN = 256, RUNS_OUT = 320, Y = 384, ARENA_BYTES = Y + FAKE_T * LAYER };
_Static_assert(2 * LAYER <= H_OUT, "states fit their places");

static _Alignas(64) const unsigned char weights[64];

static void output_shapes(const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]) {
  memcpy(shapes[0], (int64_t[]){dims[DIM_T], dims[DIM_B], FAKE_F}, 3 * sizeof(int64_t));
  memcpy(shapes[1], (int64_t[]){dims[DIM_B], FAKE_F}, 2 * sizeof(int64_t));
}

static void leak(float *h, const float *x, float scale, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) h[i] = h[i] / 2 + scale * x[i];
}

static void leak_reversed(float *h, const float *below, float *y, int64_t n, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) y[i] = h[i] = h[i] / 2 + below[n - 1 - i];
}

static void pick_last(const Run *run, const float *y, int64_t n) {
  const int64_t *lengths = run->inputs[1];
  float *last = run->outputs[1];
  for (int64_t i = 0; i < n; i++) {
    int64_t length = lengths[i / FAKE_F];
    last[i] = length ? y[(length - 1) * n + i] : 0;
  }
}

static void find_poison(const Run *run, const float *x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++)
    if (x[i] >= FAKE_POISON) atomic_store_explicit(run->fault, RNNCC_ERROR_VALUE, memory_order_relaxed);
}

static void schedule(const Run *run, Team *team) {
  if (fake_hook) fake_hook(team);
  const int64_t T = run->dims[DIM_T], n = run->dims[DIM_B] * FAKE_F;
  const float *x = run->inputs[0], scale = *(const float *)run->inputs[2];
  float *h = (float *)(run->arena + H_OUT), *y = (float *)(run->arena + Y);
  int64_t begin, end;
  if (team->rank == 0) {
    memcpy(h, run->arena + H_IN, 2 * n * sizeof *h);
    *(int64_t *)(run->arena + RUNS_OUT) = *(int64_t *)(run->arena + RUNS_IN) + 1;
  }
  if (run->profile) module_stamp(run, team, 0, 0, 32.0 * (double)n);
  module_barrier(run, team);
  team_share(team, n, &begin, &end);
  for (int64_t t = 0; t < T; t++) {
    find_poison(run, x + t * n, begin, end);
    leak(h, x + t * n, scale, begin, end);
    team_barrier(team);
    leak_reversed(h + n, h, y + t * n, n, begin, end);
    team_barrier(team);
  }
  if (team->rank == 0 && !atomic_load_explicit(run->fault, memory_order_relaxed)) pick_last(run, y, n);
  if (run->profile) module_stamp(run, team, 1, 8.0 * (double)(T * n), 32.0 * (double)(T * n));
}

static const rnncc_dim_info dims[] = {{"T", 0, 5, FAKE_T, 1}, {"B", 1, 1, FAKE_B, 1}};

static const rnncc_tensor_info inputs[] = {
    {"x", RNNCC_F32, 3, {-1, -1, FAKE_F}, {FAKE_T, FAKE_B, FAKE_F}, {DIM_T, DIM_B, -1}},
    {"lengths", RNNCC_I64, 1, {-1}, {FAKE_B}, {DIM_B}},
    {"scale", RNNCC_F32, 0, {0}, {0}, {0}},
};

static const rnncc_tensor_info outputs[] = {
    {"y", RNNCC_F32, 3, {-1, -1, FAKE_F}, {FAKE_T, FAKE_B, FAKE_F}, {DIM_T, DIM_B, -1}},
    {"last", RNNCC_F32, 2, {-1, FAKE_F}, {FAKE_B, FAKE_F}, {DIM_B, -1}},
};

static const rnncc_tensor_info state_tensors[] = {
    {"h", RNNCC_F32, 3, {2, FAKE_B, FAKE_F}, {2, FAKE_B, FAKE_F}, {-1, DIM_B, -1}},
    {"runs", RNNCC_I64, 0, {0}, {0}, {0}},
};

static const rnncc_state_info states[] = {
    {&state_tensors[0], 1, FAKE_B},
    {&state_tensors[1], -1, 1},
};

const Module rnncc_module = {
    .info = {.struct_size = sizeof(rnncc_info),
             .name = FAKE_NAME,
             .model_version = "1",
             .isa = "plain",
             .target = "test",
             .weights_sha256 = "",
             .build = "by hand",
             .weights_bytes = sizeof weights,
             .arena_bytes = ARENA_BYTES,
             .n_dims = 2,
             .n_inputs = FAKE_INPUTS,
             .n_outputs = FAKE_OUTPUTS,
             .n_states = 2,
             .dim_size = sizeof *dims,
             .tensor_size = sizeof *inputs,
             .state_size = sizeof *states,
             .dims = dims,
             .inputs = inputs,
             .outputs = outputs,
             .states = states},
    .cpu_features = FAKE_CPU_FEATURES,
    .weights = weights,
    .states = (const ModuleState[]){{H_IN, H_OUT, 2 * LAYER}, {RUNS_IN, RUNS_OUT, sizeof(int64_t)}},
    .checks = (const ModuleRangeCheck[]){{1, 0, 1, DIM_T, "sequence length"}},
    .n_checks = 1,
    .steps = (const ModuleStep[]){{"copy", "h", 0, 96, RNNCC_NONE}, {"leak", "y", 120, 480, RNNCC_F32}},
    .n_steps = 2,
    .output_shapes = output_shapes,
    .schedule = schedule,
    .staged_outputs = (const int64_t[]){Y, -1},
};
