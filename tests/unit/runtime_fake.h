/* SPDX-License-Identifier: MIT */
/*
 * A hand-written Module, for tests of the runtime: a two-layer leaky sum over time, with a state per batch slot.
 *
 *     h[0] := h[0] / 2 + scale * x[t];  h[1] := h[1] / 2 + reversed(h[0]);  y[t] := h[1]        for t in 0..T
 *     last[b] := y[lengths[b] - 1][b], or 0 if there is none;  runs += 1
 *
 * Reversing makes workers read what others wrote, so a missing barrier shows.
 */
#ifndef RUNTIME_FAKE_H
#define RUNTIME_FAKE_H

#include "module.h"

#ifndef FAKE_CPU_FEATURES
#define FAKE_CPU_FEATURES 0 /* what the module says it needs */
#endif

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif

enum { FAKE_T = 16, FAKE_B = 4, FAKE_F = 3 }; /* the maxima of T and B; features */

#define FAKE_POISON 1e30f /* an x this large makes the schedule report RNNCC_ERROR_VALUE, after writing outputs */

/* If set, every worker calls it at the start of the schedule. */
extern void (*fake_hook)(const Team *team);

/* One call of run(): inputs x [T,B,F], lengths [B], scale []; outputs y [T,B,F], last [B,F]. */
typedef struct FakeCall {
  float x[FAKE_T * FAKE_B * FAKE_F], scale, y[FAKE_T * FAKE_B * FAKE_F], last[FAKE_B * FAKE_F];
  int64_t lengths[FAKE_B];
  rnncc_tensor inputs[3], outputs[2];
} FakeCall;

enum { FAKE_INPUTS = 3, FAKE_OUTPUTS = 2 };

/* Small integers drawn from seed; outputs filled with a pattern that no run produces. */
static inline void fake_call_init(FakeCall *call, int64_t T, int64_t B, unsigned seed) {
  *call = (FakeCall){.scale = 2};
  for (int64_t i = 0; i < T * B * FAKE_F; i++) call->x[i] = (int)((seed = seed * 1103515245 + 12345) >> 16 & 7) - 3;
  for (int64_t b = 0; b < B; b++) call->lengths[b] = T > b ? T - b : 0;
  for (int i = 0; i < FAKE_T * FAKE_B * FAKE_F; i++) call->y[i] = -77;
  for (int i = 0; i < FAKE_B * FAKE_F; i++) call->last[i] = -77;
  call->inputs[0] =
      (rnncc_tensor){sizeof(rnncc_tensor), RNNCC_F32, call->x, sizeof(float) * T * B * FAKE_F, 3, {T, B, FAKE_F}};
  call->inputs[1] = (rnncc_tensor){sizeof(rnncc_tensor), RNNCC_I64, call->lengths, sizeof(int64_t) * B, 1, {B}};
  call->inputs[2] = (rnncc_tensor){sizeof(rnncc_tensor), RNNCC_F32, &call->scale, sizeof call->scale, 0, {0}};
  call->outputs[0] = (rnncc_tensor){sizeof(rnncc_tensor), RNNCC_F32, call->y, sizeof call->y, 0, {0}};
  call->outputs[1] = (rnncc_tensor){sizeof(rnncc_tensor), RNNCC_F32, call->last, sizeof call->last, 0, {0}};
}

static inline rnncc_status fake_call_run(const rnncc_api *api, rnncc_context *context, FakeCall *call) {
  return api->run(context, call->inputs, FAKE_INPUTS, call->outputs, FAKE_OUTPUTS);
}

#endif
