/* SPDX-License-Identifier: MIT */
/*
 * Where the time goes, kernel by kernel. Each run is profiled by itself, so that besides the sums the fastest run is
 * known, which was disturbed least: the trace shows it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "speed.h"
#include "support.h"
#include "tensors.h"
#include "trace.h"
#include "verbs.h"

typedef struct Profile {
  size_t count;                  /* of kernels */
  rnncc_profile_entry *total;    /* of all runs; names are the module's */
  rnncc_profile_entry *fastest;  /* of one run */
  uint64_t total_ns, fastest_ns; /* their sums */
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
  for (size_t i = 0; i < profile->count; i++) {
    profile->total[i].calls += rnncc_profile_at(entries, i)->calls;
    profile->total[i].nanoseconds += rnncc_profile_at(entries, i)->nanoseconds;
  }
  uint64_t taken = nanoseconds(entries, profile->count);
  profile->total_ns += taken;
  if (taken >= profile->fastest_ns) return;
  profile->fastest_ns = taken;
  copy_entries(profile->fastest, entries, profile->count);
}

static Profile profile_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, int64_t runs) {
  Profile profile = {.fastest_ns = UINT64_MAX};
  const rnncc_profile_entry *entries = NULL;
  for (int64_t run = 0; run < runs; run++) {
    session_check(session, session->api->profile(session->context, 1, &entries, &profile.count), "profile");
    session_run(session, inputs, outputs);
    session_check(session, session->api->profile(session->context, 0, &entries, &profile.count), "profile");
    size_t bytes = profile.count * sizeof *entries;
    if (run == 0) {
      profile.total = allocate(bytes);
      copy_entries(profile.total, entries, profile.count);
      profile.fastest = allocate(bytes);
      for (size_t i = 0; i < profile.count; i++) profile.total[i].calls = profile.total[i].nanoseconds = 0;
    }
    add_run(&profile, entries);
  }
  return profile;
}

/* Flops and bytes are those at the dimensions' optimum, so the rates are right for runs of that shape. peak: in
 * GFLOP/s, 0 if it is not known. */
static void print_entry(const rnncc_profile_entry *entry, uint64_t total_ns, int64_t runs, double peak) {
  double ns = (double)entry->nanoseconds, calls = (double)entry->calls;
  double per_ns = ns > 0 ? calls / ns : 0;
  printf("%10.2f %6.1f %9.2f %9.2f ", ns * 1e-3 / (double)runs, total_ns ? 100 * ns / (double)total_ns : 0,
         entry->flops * per_ns, entry->bytes * per_ns);
  if (peak > 0)
    printf("%7.1f", 100 * entry->flops * per_ns / peak);
  else
    printf("%7s", "-");
  printf("  %s  %s\n", entry->kernel, entry->node);
}

static void print_table(const Profile *profile, int64_t runs, double peak) {
  puts("  us a run      %   GFLOP/s      GB/s  % peak  kernel  node");
  rnncc_profile_entry sum = {.kernel = "total", .node = "", .nanoseconds = profile->total_ns, .calls = (uint64_t)runs};
  for (size_t i = 0; i < profile->count; i++) {
    print_entry(&profile->total[i], profile->total_ns, runs, peak);
    sum.flops += profile->total[i].flops;
    sum.bytes += profile->total[i].bytes;
  }
  print_entry(&sum, profile->total_ns, runs, peak);
}

static void print_peak(const rnncc_info *info, int threads, double peak) {
  if (peak > 0)
    fprintf(stderr, "peak: %.1f GFLOP/s, %s multiply-adds in registers on %d thread%s\n", peak, info->isa, threads,
            threads == 1 ? "" : "s");
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
  print_table(&profile, arguments->runs, peak);
  print_peak(info, threads, peak);

  free(profile.total);
  free(profile.fastest);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return 0;
}
