/* SPDX-License-Identifier: MIT */
/*
 * What a run takes, step by step: time on rank 0's clock, flops and bytes of the extents that it had, and for a trace
 * what each worker does. A step's time has the wait at the barrier behind it: that is for its slowest worker.
 */
#include <string.h>

#include "clock.h"
#include "context.h"

void profile_begin(const Run *run) {
  const rnncc_trace *trace = &run->profile->trace;
  if (trace->spans) memset(trace->counts, 0, (size_t)trace->workers * sizeof *trace->counts);
}

void profile_enter(Team *team) {
  team->step = -1;
  team->stamped = clock_ns();
}

static void add_span(const rnncc_trace *trace, const Team *team, int entry, uint64_t now) {
  if (!trace->spans || team->rank >= trace->workers) return;
  size_t place = trace->counts[team->rank]++, first = (size_t)team->rank * trace->capacity;
  if (place >= trace->capacity) return;
  rnncc_span *span = (rnncc_span *)((char *)trace->spans + (first + place) * trace->span_size);
  span->entry = entry;
  span->begin = team->stamped;
  span->end = now;
}

/* The time since this worker's last stamp belongs to `step`; entry: as of rnncc_span. */
static void add_time(const Run *run, Team *team, int step, int entry) {
  if (team->rank && !run->profile->trace.spans) return;
  uint64_t now = clock_ns();
  if (team->rank == 0 && step >= 0) run->profile->steps[step].nanoseconds += now - team->stamped;
  add_span(&run->profile->trace, team, entry, now);
  team->stamped = now;
  team->step = step;
}

static void add_work(const Run *run, int step, double flops, double bytes) {
  run->profile->steps[step].flops += flops;
  run->profile->steps[step].bytes += bytes;
}

void module_stamp(const Run *run, Team *team, int step, double flops, double bytes) {
  if (team->rank == 0) add_work(run, step, flops, bytes);
  add_time(run, team, step, step);
}

void module_stamp_alone(const Run *run, Team *team, int step, double flops, double bytes) {
  add_work(run, step, flops, bytes);
  add_time(run, team, step, step);
}

void module_meet(const Run *run, Team *team) {
  team_barrier(team);
  if (run->profile) add_time(run, team, team->step, -1);
}

static void fill_entries(rnncc_context *context) {
  const Module *module = context->model->module;
  for (int i = 0; i < module->n_steps; i++)
    context->entries[i] = (rnncc_profile_entry){
        .struct_size = sizeof(rnncc_profile_entry),
        .kernel = module->steps[i].kernel,
        .node = module->steps[i].node,
        .calls = context->profiled_runs,
        .nanoseconds = context->profile.steps[i].nanoseconds,
        .flops = module->steps[i].flops,
        .bytes = module->steps[i].bytes,
        .flops_done = context->profile.steps[i].flops,
        .bytes_done = context->profile.steps[i].bytes,
        .products = module->steps[i].products,
    };
}

rnncc_status context_profile(rnncc_context *context, int32_t on, const rnncc_profile_entry **entries, size_t *n) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  size_t n_steps = context->model->module->n_steps;
  if (on) {
    memset(context->profile.steps, 0, n_steps * sizeof *context->profile.steps);
    context->profiled_runs = 0;
  }
  context->profiling = on;
  fill_entries(context);
  if (entries) *entries = context->entries;
  if (n) *n = n_steps;
  return RNNCC_OK;
}

rnncc_status context_trace(rnncc_context *context, const rnncc_trace *trace) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  if (!trace) {
    context->profile.trace = (rnncc_trace){0};
    return RNNCC_OK;
  }
  if (trace->struct_size < sizeof *trace || trace->span_size < sizeof *trace->spans || !trace->spans || !trace->counts)
    return context_fail(context, RNNCC_ERROR_ARGUMENT,
                        "trace: no memory for spans, or struct_size or span_size is not set");
  if (trace->workers < model_threads(context->model))
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "trace: memory for %d workers, but the model has %d",
                        (int)trace->workers, (int)model_threads(context->model));
  context->profile.trace = *trace;
  return RNNCC_OK;
}
