/* SPDX-License-Identifier: MIT */
/*
 * Latency of a module. Each thread count has a process of its own, so that its load is cold to this process and its
 * peak memory is its own. Every run is timed; the clock costs some 20 ns, which is not subtracted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "support.h"
#include "tensors.h"
#include "verbs.h"

typedef struct Result {
  int threads;
  int64_t runs;
  double load_us, first_us, p50_us, p90_us, p99_us, p999_us, max_us;
  int64_t peak_rss_bytes;
} Result;

static double microseconds(uint64_t from, uint64_t to) { return (double)(to - from) * 1e-3; }

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Nearest rank: the smallest value that at least a part of `fraction` does not exceed. */
static double percentile(const double *sorted, int64_t count, double fraction) {
  int64_t rank = (int64_t)(fraction * (double)count + 0.999999);
  return sorted[rank < 1 ? 0 : rank > count ? count - 1 : rank - 1];
}

static double time_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs) {
  uint64_t start = now_ns();
  session_run(session, inputs, outputs);
  return microseconds(start, now_ns());
}

static void measure_runs(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs, Result *result) {
  double *times = allocate(sizeof *times * (size_t)result->runs);
  result->first_us = time_run(session, inputs, outputs);
  for (int64_t run = 0; run < result->runs; run++) times[run] = time_run(session, inputs, outputs);
  qsort(times, (size_t)result->runs, sizeof *times, by_value);
  result->p50_us = percentile(times, result->runs, 0.5);
  result->p90_us = percentile(times, result->runs, 0.9);
  result->p99_us = percentile(times, result->runs, 0.99);
  result->p999_us = percentile(times, result->runs, 0.999);
  result->max_us = times[result->runs - 1];
  free(times);
}

static Result measure(const Arguments *arguments, int threads) {
  Result result = {.runs = arguments->runs};
  uint64_t start = now_ns();
  Session session = load_module(arguments->module, arguments->network);
  session_start(&session, threads);
  set_weights(&session, arguments->weights);
  session_check(&session, session.api->warmup(session.context), "warmup");
  result.load_us = microseconds(start, now_ns());

  result.threads = session.api->model_threads(session.model);
  const rnncc_info *info = session.api->info;
  rnncc_tensor *inputs = make_inputs(info, arguments, "random"), *outputs = make_outputs(info);
  measure_runs(&session, inputs, outputs, &result);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);

  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
  return result;
}

static void print_json(const Result *r) {
  printf("{\"threads\": %d, \"runs\": %lld, \"load_us\": %.3f, \"first_us\": %.3f, \"p50_us\": %.3f, "
         "\"p90_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, \"peak_rss_bytes\": %lld}\n",
         r->threads, (long long)r->runs, r->load_us, r->first_us, r->p50_us, r->p90_us, r->p99_us, r->p999_us,
         r->max_us, (long long)r->peak_rss_bytes);
}

static void print_text(const Result *r, double signal_ms) {
  printf("%7d %8lld %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f %8.1f", r->threads, (long long)r->runs, r->load_us,
         r->first_us, r->p50_us, r->p90_us, r->p99_us, r->p999_us, r->max_us, (double)r->peak_rss_bytes / (1 << 20));
  if (signal_ms > 0) printf(" %11.5f", r->p50_us * 1e-3 / signal_ms);
  putchar('\n');
}

/* Measures in a child; the parent passes its exit code on. */
static int measure_apart(const Arguments *arguments, int threads) {
  check_stdout();
  pid_t child = fork();
  if (child < 0) fail(EXIT_RESOURCE, "cannot fork");
  if (child == 0) {
    Result result = measure(arguments, threads);
    if (arguments->json)
      print_json(&result);
    else
      print_text(&result, arguments->signal_ms);
    check_stdout();
    exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) fail(EXIT_ENVIRONMENT, "%s: killed by signal %d", arguments->module, WTERMSIG(status));
  return WEXITSTATUS(status);
}

int bench_verb(const Arguments *arguments) {
  if (!arguments->json)
    printf("threads     runs    load us   first us     p50 us     p90 us     p99 us   p99.9 us     max us  RSS MiB%s\n",
           arguments->signal_ms > 0 ? " real-time f" : "");
  if (arguments->threads.count == 0) return measure_apart(arguments, 0);
  for (int i = 0; i < arguments->threads.count; i++) {
    int exit_code = measure_apart(arguments, (int)arguments->threads.items[i]);
    if (exit_code) return exit_code;
  }
  return 0;
}
