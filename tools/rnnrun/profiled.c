/* SPDX-License-Identifier: MIT */
/*
 * Each run is profiled by itself: a kernel's median is what it takes where nothing disturbs it, and the fastest run was
 * disturbed least: the trace shows it.
 */
#include "profiled.h"

#include <stdlib.h>
#include <string.h>

#include "speed.h"
#include "support.h"

/* ---- spans ---- */

static Spans spans_new(int workers, size_t capacity) {
  return (Spans){capacity, allocate((size_t)workers * capacity * sizeof(rnncc_span)),
                 allocate((size_t)workers * sizeof(size_t))};
}

static void spans_free(Spans *spans) {
  free(spans->list);
  free(spans->counts);
}

static void trace_into(Session *session, const Spans *spans, int workers) {
  rnncc_trace trace = {.struct_size = sizeof trace,
                       .span_size = sizeof *spans->list,
                       .workers = workers,
                       .capacity = spans->capacity,
                       .spans = spans->list,
                       .counts = spans->counts};
  session_check(session, session->api->trace(session->context, &trace), "trace");
}

static size_t most_spans(const Spans *spans, int workers) {
  size_t most = 1;
  for (int i = 0; i < workers; i++)
    if (spans->counts[i] > most) most = spans->counts[i];
  return most;
}

const rnncc_span *profile_spans(const Profile *profile, int worker) {
  return profile->spans.list + (size_t)worker * profile->spans.capacity;
}

size_t profile_span_count(const Profile *profile, int worker) { return profile->spans.counts[worker]; }

uint64_t profile_begins(const Profile *profile) {
  uint64_t first = UINT64_MAX;
  for (int worker = 0; profile->spans.list && worker < profile->workers; worker++)
    if (profile->spans.counts[worker] && profile_spans(profile, worker)->begin < first)
      first = profile_spans(profile, worker)->begin;
  return first;
}

/* ---- times of a run ---- */

/* A wait is for the kernel before it; at a worker's beginning, for the one behind it. */
static int kernel_of(const rnncc_span *spans, size_t count, size_t at) {
  size_t i = at;
  while (i > 0 && spans[i].entry < 0) i--;
  while (i < count && spans[i].entry < 0) i++;
  return i < count ? spans[i].entry : -1;
}

/* What each kernel takes of the time of all workers, divided by their number: kernels that run beside each other share
 * the time, and the sum is that of the run. Returns how many workers took part. */
static int times_by_spans(const Profile *profile, uint64_t *times) {
  int workers = 0;
  memset(times, 0, profile->count * sizeof *times);
  for (int worker = 0; worker < profile->workers; worker++) {
    size_t count = profile_span_count(profile, worker);
    const rnncc_span *spans = profile_spans(profile, worker);
    workers += count > 0;
    for (size_t i = 0; i < count; i++) {
      int kernel = kernel_of(spans, count, i);
      if (kernel >= 0) times[kernel] += spans[i].end - spans[i].begin;
    }
  }
  for (size_t i = 0; i < profile->count && workers; i++) times[i] /= (unsigned)workers;
  return workers;
}

/* An older module has the times of the caller's thread. */
static uint64_t run_times(const Profile *run, const rnncc_profile_entry *entries, uint64_t *times) {
  uint64_t sum = 0;
  if (!run->spans.list || !times_by_spans(run, times))
    for (size_t i = 0; i < run->count; i++) times[i] = rnncc_profile_at(entries, i)->nanoseconds;
  for (size_t i = 0; i < run->count; i++) sum += times[i];
  return sum;
}

/* ---- runs ---- */

/* Of the module's entries, which may have more fields than ours, or fewer. */
static void copy_entries(rnncc_profile_entry *to, const rnncc_profile_entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rnncc_profile_entry *entry = rnncc_profile_at(entries, i);
    to[i] = (rnncc_profile_entry){0};
    memcpy(&to[i], entry, entry->struct_size < sizeof *to ? entry->struct_size : sizeof *to);
    to[i].struct_size = sizeof *to;
    if (RNNCC_HAS(entry, bytes_done)) continue;
    to[i].flops_done = entry->flops * (double)entry->calls;
    to[i].bytes_done = entry->bytes * (double)entry->calls;
  }
}

static void profile_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs,
                        const rnncc_profile_entry **entries, size_t *count) {
  session_check(session, session->api->profile(session->context, 1, entries, count), "profile");
  session_run(session, inputs, outputs);
  session_check(session, session->api->profile(session->context, 0, entries, count), "profile");
}

/* spans: of this run. Returns whether it is the fastest so far. */
static bool add_run(Profile *profile, const rnncc_profile_entry *entries, const Spans *spans, uint64_t *times) {
  Profile run = *profile;
  run.spans = *spans;
  uint64_t taken = run_times(&run, entries, times);
  for (size_t i = 0; i < profile->count; i++) timings_add(&profile->kernels[i], (double)times[i] * 1e-3);
  timings_add(&profile->run, (double)taken * 1e-3);
  if (taken >= profile->fastest_ns) return false;
  profile->fastest_ns = taken;
  copy_entries(profile->fastest, entries, profile->count);
  for (size_t i = 0; i < profile->count; i++) profile->fastest[i].nanoseconds = times[i];
  return true;
}

static Profile profile_new(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, int64_t runs,
                           Spans *next) {
  Profile profile = {.fastest_ns = UINT64_MAX,
                     .run = timings_new((size_t)runs),
                     .workers = session->api->model_threads(session->model)};
  const rnncc_profile_entry *entries = NULL;
  bool spans = RNNCC_HAS(session->api, trace) && session->api->trace;
  if (spans) {
    Spans first = spans_new(profile.workers, 1); /* says how many there are */
    trace_into(session, &first, profile.workers);
    profile_run(session, inputs, outputs, &entries, &profile.count);
    size_t capacity = most_spans(&first, profile.workers);
    profile.spans = spans_new(profile.workers, capacity);
    *next = spans_new(profile.workers, capacity);
    spans_free(&first);
  } else {
    session_check(session, session->api->profile(session->context, 0, &entries, &profile.count), "profile");
  }
  profile.fastest = allocate(profile.count * sizeof *profile.fastest);
  profile.kernels = allocate(profile.count * sizeof *profile.kernels);
  for (size_t i = 0; i < profile.count; i++) profile.kernels[i] = timings_new((size_t)runs);
  profile.at_optimum = profile.count && !RNNCC_HAS(entries, bytes_done);
  return profile;
}

/* Had the run more spans than there is room for? A run that the caller did alone has none of barriers, and later ones
 * do. Makes room. */
static bool spans_are_cut(Spans *spans, int workers) {
  size_t most = spans->list ? most_spans(spans, workers) : 0;
  if (most <= spans->capacity) return false;
  spans_free(spans);
  *spans = spans_new(workers, most);
  return true;
}

Profile profile_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, int64_t runs) {
  Spans next = {0};
  Profile profile = profile_new(session, inputs, outputs, runs, &next);
  uint64_t *times = allocate(profile.count * sizeof *times);
  for (int64_t run = 0; run < runs; run++) {
    const rnncc_profile_entry *entries = NULL;
    do {
      if (next.list) trace_into(session, &next, profile.workers);
      profile_run(session, inputs, outputs, &entries, &profile.count);
    } while (spans_are_cut(&next, profile.workers));
    if (!add_run(&profile, entries, &next, times)) continue;
    Spans slower = profile.spans;
    profile.spans = next;
    next = slower;
  }
  if (next.list) session_check(session, session->api->trace(session->context, NULL), "trace");
  spans_free(&next);
  free(times);
  return profile;
}

void profile_free(Profile *profile) {
  for (size_t i = 0; i < profile->count; i++) timings_free(&profile->kernels[i]);
  timings_free(&profile->run);
  spans_free(&profile->spans);
  free(profile->kernels);
  free(profile->fastest);
}

/* ---- peaks ---- */

/* Products of bf16 for each of f32, at most, by vectors: of AVX512-BF16, of BFMMLA. Not measured. */
static double bf16_products(const char *isa) { return strcmp(isa, "avx512") ? 4 : 2; }

static bool is_int8(const rnncc_profile_entry *entry) { return entry->products == RNNCC_I8; }

Peaks profile_peaks(const Profile *profile, const rnncc_info *info, int threads) {
  double f32 = speed_multiply_add(info->isa, threads);
  double matrices = strstr(info->target, "+amx") ? speed_matrix_products(threads) : 0;
  Peaks peaks = {.f32 = threads * f32,
                 .bf16 = threads * (matrices > 0 ? matrices / 2 : bf16_products(info->isa) * f32),
                 .small_isa = matrices > 0 ? "amx" : info->isa};
  for (size_t i = 0; i < profile->count && !peaks.int8; i++)
    if (is_int8(&profile->fastest[i]))
      peaks.int8 = threads * (matrices > 0 ? matrices : speed_dot_products(info->isa, threads));
  return peaks;
}

double peak_of(const Peaks *peaks, const rnncc_profile_entry *entry) {
  if (entry->products == RNNCC_BF16) return peaks->bf16;
  return is_int8(entry) ? peaks->int8 : peaks->f32;
}

double profile_share_of_peak(const Profile *profile, const Peaks *peaks) {
  double at_peak_ns = 0, median_ns = 1e3 * timings_quantile(&profile->run, 0.5);
  for (size_t i = 0; i < profile->count; i++) {
    double peak = peak_of(peaks, &profile->fastest[i]);
    if (!(peak > 0)) return 0;
    at_peak_ns += profile->fastest[i].flops_done / peak;
  }
  return median_ns > 0 ? at_peak_ns / median_ns : 0;
}
