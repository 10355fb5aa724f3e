/* SPDX-License-Identifier: MIT */
/* Where the time goes, kernel by kernel. */
#include <stdio.h>

#include "counters.h"
#include "extents.h"
#include "profiled.h"
#include "report.h"
#include "support.h"
#include "tensors.h"
#include "trace.h"
#include "verbs.h"

/* ---- the table ---- */

/* What a line is of: a kernel in a run, or all of them. */
typedef struct Work {
  const char *kernel, *node;
  double flops, bytes;
  double peak; /* in GFLOP/s, 0 if it is not known */
} Work;

/* Rates are those of the median. whole: microseconds of a run, on average. */
static void print_line(const Work *work, const Timings *times, double whole) {
  double median = timings_quantile(times, 0.5), mean = timings_mean(times);
  double per_ns = median > 0 ? 1e-3 / median : 0;
  printf("%10.2f %10.2f %6.1f %9.2f %9.2f ", median, mean, whole > 0 ? 100 * mean / whole : 0, work->flops * per_ns,
         work->bytes * per_ns);
  if (work->peak > 0)
    printf("%7.1f", 100 * work->flops * per_ns / work->peak);
  else
    printf("%7s", "-");
  printf("  %s  %s\n", work->kernel, work->node);
}

/* The peak of all is that of their mixture. */
static void print_table(const Profile *profile, const Peaks *peaks) {
  double whole = timings_mean(&profile->run), median_ns = 1e3 * timings_quantile(&profile->run, 0.5);
  Work sum = {.kernel = "total", .node = ""};
  puts(" median us    mean us      %   GFLOP/s      GB/s  % peak  kernel  node");
  for (size_t i = 0; i < profile->count; i++) {
    const rnncc_profile_entry *entry = &profile->fastest[i];
    Work work = {entry->kernel, entry->node, entry->flops_done, entry->bytes_done, peak_of(peaks, entry)};
    print_line(&work, &profile->kernels[i], whole);
    sum.flops += work.flops;
    sum.bytes += work.bytes;
  }
  double share = profile_share_of_peak(profile, peaks);
  if (share > 0) sum.peak = sum.flops / (share * median_ns);
  print_line(&sum, &profile->run, whole);
}

static void print_peak(const char *isa, const char *products, int threads, double peak) {
  if (peak > 0)
    fprintf(stderr, "peak: %.1f GFLOP/s, %s multiply-adds%s in registers on %d thread%s\n", peak, isa, products,
            threads, threads == 1 ? "" : "s");
}

/* ---- extents ---- */

/* A module that was built before it counted what it does knows flops and bytes at the optimum. */
static void tell_other_extents(const rnncc_info *info, const rnncc_tensor *inputs) {
  for (int i = 0; i < info->n_dims; i++) {
    const rnncc_dim_info *dim = rnncc_dim_at(info, i);
    int64_t extent = extent_of(info, inputs, i);
    if (extent != dim->opt)
      fprintf(stderr, "GFLOP/s, GB/s and %% peak are for %s=%lld, which these runs do not have (%lld): --dim %s=%lld\n",
              dim->name, (long long)dim->opt, (long long)extent, dim->name, (long long)dim->opt);
  }
}

/* Runs that nothing but the counters watch. */
static void count_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, Counters *counters,
                       int64_t runs) {
  counters_start(counters);
  for (int64_t run = 0; run < runs; run++) session_run(session, inputs, outputs);
  counters_stop(counters);
}

int profile_verb(const Arguments *arguments) {
  Session session = load_module(arguments->module, arguments->network);
  const rnncc_info *info = session.api->info;
  rnncc_tensor *inputs = make_inputs(info, arguments, "random"), *outputs = make_outputs(info);
  bool page = arguments->html != NULL;
  Counters counters = {0};
  if (page) counters = counters_open();
  session_start(&session, one_thread_count(arguments));
  set_weights(&session, arguments->weights);
  session_check(&session, session.api->warmup(session.context), "warmup");
  session_run(&session, inputs, outputs);

  Profile profile = profile_runs(&session, inputs, outputs, arguments->runs);
  if (arguments->trace) write_trace(arguments->trace, info->name, &profile);
  int threads = session.api->model_threads(session.model);
  Peaks peaks = profile_peaks(&profile, info, threads);
  print_table(&profile, &peaks);
  print_peak(info->isa, "", threads, peaks.f32);
  print_peak(peaks.small_isa, " of 8-bit integers", threads, peaks.int8);
  if (profile.at_optimum) tell_other_extents(info, inputs);
  if (page) {
    count_runs(&session, inputs, outputs, &counters, arguments->runs);
    write_report(&(Report){arguments->html, &session, inputs, &profile, &peaks, &counters, arguments->runs, threads});
    counters_close(&counters);
  }

  profile_free(&profile);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return 0;
}
