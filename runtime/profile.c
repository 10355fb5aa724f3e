/* SPDX-License-Identifier: MIT */
/* The time of each step of a run, on rank 0's clock: between barriers all workers are at about the same step. */
#include <string.h>

#include "clock.h"
#include "context.h"

void module_stamp(const Run *run, const Team *team, int step) {
  if (!run->stamps || team->rank) return;
  uint64_t now = clock_ns();
  run->stamps[1 + step] += now - run->stamps[0];
  run->stamps[0] = now;
}

void profile_begin(rnncc_context *context) {
  if (context->profiling) context->stamps[0] = clock_ns();
}

static void fill_entries(rnncc_context *context) {
  const Module *module = context->model->module;
  for (int i = 0; i < module->n_steps; i++)
    context->entries[i] = (rnncc_profile_entry){
        .struct_size = sizeof(rnncc_profile_entry),
        .kernel = module->steps[i].kernel,
        .node = module->steps[i].node,
        .calls = context->profiled_runs,
        .nanoseconds = context->stamps[1 + i],
        .flops = module->steps[i].flops,
        .bytes = module->steps[i].bytes,
    };
}

rnncc_status context_profile(rnncc_context *context, int32_t on, const rnncc_profile_entry **entries, size_t *n) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  size_t n_steps = context->model->module->n_steps;
  if (on) {
    memset(context->stamps, 0, (1 + n_steps) * sizeof *context->stamps);
    context->profiled_runs = 0;
  }
  context->profiling = on;
  fill_entries(context);
  if (entries) *entries = context->entries;
  if (n) *n = n_steps;
  return RNNCC_OK;
}
