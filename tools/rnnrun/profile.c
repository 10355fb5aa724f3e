/* SPDX-License-Identifier: MIT */
/*
 * Where the time goes, kernel by kernel. Each run is profiled by itself: a kernel's median is what it takes where
 * nothing disturbs it, and the fastest run was disturbed least: the trace shows it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "speed.h"
#include "support.h"
#include "tensors.h"
#include "timings.h"
#include "trace.h"
#include "verbs.h"

typedef struct Profile {
  size_t count;                 /* of kernels */
  rnncc_profile_entry *fastest; /* of one run; names are the module's */
  uint64_t fastest_ns;          /* its sum */
  Timings *kernels, run;        /* in microseconds: of each kernel, and of their sum */
} Profile;

static uint64_t nanoseconds(const rnncc_profile_entry *entries, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += rnncc_profile_at(entries, i)->nanoseconds;
  return sum;
}

/* Of the module's entries, which may have more fields than ours. */
static void copy_entries(rnncc_profile_entry *to, const rnncc_profile_entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++) {
    to[i] = *rnncc_profile_at(entries, i);
    to[i].struct_size = sizeof *to;
  }
}

static void add_run(Profile *profile, const rnncc_profile_entry *entries) {
  for (size_t i = 0; i < profile->count; i++)
    timings_add(&profile->kernels[i], (double)rnncc_profile_at(entries, i)->nanoseconds * 1e-3);
  uint64_t taken = nanoseconds(entries, profile->count);
  timings_add(&profile->run, (double)taken * 1e-3);
  if (taken >= profile->fastest_ns) return;
  profile->fastest_ns = taken;
  copy_entries(profile->fastest, entries, profile->count);
}

static void profile_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs,
                        const rnncc_profile_entry **entries, size_t *count) {
  session_check(session, session->api->profile(session->context, 1, entries, count), "profile");
  session_run(session, inputs, outputs);
  session_check(session, session->api->profile(session->context, 0, entries, count), "profile");
}

static Profile profile_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, int64_t runs) {
  Profile profile = {.fastest_ns = UINT64_MAX, .run = timings_new((size_t)runs)};
  for (int64_t run = 0; run < runs; run++) {
    const rnncc_profile_entry *entries = NULL;
    profile_run(session, inputs, outputs, &entries, &profile.count);
    if (run == 0) {
      profile.fastest = allocate(profile.count * sizeof *profile.fastest);
      profile.kernels = allocate(profile.count * sizeof *profile.kernels);
      for (size_t i = 0; i < profile.count; i++) profile.kernels[i] = timings_new((size_t)runs);
    }
    add_run(&profile, entries);
  }
  return profile;
}

static void profile_free(Profile *profile) {
  for (size_t i = 0; i < profile->count; i++) timings_free(&profile->kernels[i]);
  timings_free(&profile->run);
  free(profile->kernels);
  free(profile->fastest);
}

/* ---- the table ---- */

/* What a line is of: a kernel in a run, or all of them. */
typedef struct Work {
  const char *kernel, *node;
  double flops, bytes;
} Work;

/* Rates are those of the median. Flops and bytes are those at the dimensions' optimum, so the rates are right for runs
 * of that shape. whole: microseconds of a run, on average; peak: in GFLOP/s, 0 if it is not known. */
static void print_line(const Work *work, const Timings *times, double whole, double peak) {
  double median = timings_quantile(times, 0.5), mean = timings_mean(times);
  double per_ns = median > 0 ? 1e-3 / median : 0;
  printf("%10.2f %10.2f %6.1f %9.2f %9.2f ", median, mean, whole > 0 ? 100 * mean / whole : 0, work->flops * per_ns,
         work->bytes * per_ns);
  if (peak > 0)
    printf("%7.1f", 100 * work->flops * per_ns / peak);
  else
    printf("%7s", "-");
  printf("  %s  %s\n", work->kernel, work->node);
}

static void print_table(const Profile *profile, double peak) {
  double whole = timings_mean(&profile->run);
  Work sum = {.kernel = "total", .node = ""};
  puts(" median us    mean us      %   GFLOP/s      GB/s  % peak  kernel  node");
  for (size_t i = 0; i < profile->count; i++) {
    const rnncc_profile_entry *entry = &profile->fastest[i];
    double calls = (double)entry->calls;
    Work work = {entry->kernel, entry->node, entry->flops * calls, entry->bytes * calls};
    print_line(&work, &profile->kernels[i], whole, peak);
    sum.flops += work.flops;
    sum.bytes += work.bytes;
  }
  print_line(&sum, &profile->run, whole, peak);
}

static void print_peak(const rnncc_info *info, int threads, double peak) {
  if (peak > 0)
    fprintf(stderr, "peak: %.1f GFLOP/s, %s multiply-adds in registers on %d thread%s\n", peak, info->isa, threads,
            threads == 1 ? "" : "s");
}

/* The extent of a dim in these inputs; its optimum where none has it. */
static int64_t extent_of(const rnncc_info *info, const rnncc_tensor *inputs, int dim) {
  for (int i = 0; i < info->n_inputs; i++) {
    const rnncc_tensor_info *described = rnncc_input_at(info, i);
    for (int axis = 0; axis < described->rank; axis++)
      if (described->dim[axis] == dim) return inputs[i].shape[axis];
  }
  return rnncc_dim_at(info, dim)->opt;
}

/* The module knows flops and bytes at the optimum. */
static void tell_other_extents(const rnncc_info *info, const rnncc_tensor *inputs) {
  for (int i = 0; i < info->n_dims; i++) {
    const rnncc_dim_info *dim = rnncc_dim_at(info, i);
    int64_t extent = extent_of(info, inputs, i);
    if (extent != dim->opt)
      fprintf(stderr, "GFLOP/s, GB/s and %% peak are for %s=%lld, which these runs do not have (%lld): --dim %s=%lld\n",
              dim->name, (long long)dim->opt, (long long)extent, dim->name, (long long)dim->opt);
  }
}

int profile_verb(const Arguments *arguments) {
  Session session = load_module(arguments->module, arguments->network);
  const rnncc_info *info = session.api->info;
  rnncc_tensor *inputs = make_inputs(info, arguments, "random"), *outputs = make_outputs(info);
  session_start(&session, one_thread_count(arguments));
  session_check(&session, session.api->warmup(session.context), "warmup");
  session_run(&session, inputs, outputs);

  Profile profile = profile_runs(&session, inputs, outputs, arguments->runs);
  if (arguments->trace) write_trace(arguments->trace, info->name, profile.fastest, profile.count);
  int threads = session.api->model_threads(session.model);
  double peak = threads * speed_multiply_add(info->isa, threads);
  print_table(&profile, peak);
  print_peak(info, threads, peak);
  tell_other_extents(info, inputs);

  profile_free(&profile);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return 0;
}
