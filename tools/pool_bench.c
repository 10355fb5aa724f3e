/* SPDX-License-Identifier: MIT */
/*
 * pool_bench [threads [rounds]]: the cost of an empty region and of a barrier in the runtime's pool, compared with
 * libgomp in the same run.
 *
 * Rounds of the two pools alternate, so a machine that slows down slows both; each line gives the median and the best
 * round. The workers of the idle pool get time to fall asleep, or they would spin on the CPUs being measured. libgomp
 * is found at run time by its entry points GOMP_parallel and GOMP_barrier; without it only our pool is measured. More
 * threads than CPUs (OMP_WAIT_POLICY and the like apply to libgomp) measure the scheduler.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "cpu_limit.h"
#include "pool.h"

enum { MAX_ROUNDS = 1000, REGIONS = 20000, BARRIERS = 50000 };

typedef struct Gomp {
  void (*parallel)(void (*body)(void *), void *arg, unsigned threads, unsigned flags);
  void (*barrier)(void);
} Gomp;

typedef struct Bench {
  Pool *pool;
  Gomp gomp;
  int threads;
} Bench;

static void empty_body(void *arg, Team *team) { (void)arg, (void)team; }
static void gomp_empty_body(void *arg) { (void)arg; }

static void barrier_body(void *arg, Team *team) {
  (void)arg;
  for (int i = 0; i < BARRIERS; i++) team_barrier(team);
}

static void gomp_barrier_body(void *arg) {
  const Bench *bench = arg;
  for (int i = 0; i < BARRIERS; i++) bench->gomp.barrier();
}

static void pool_regions(const Bench *bench) {
  for (int i = 0; i < REGIONS; i++) pool_run(bench->pool, (Turn){0}, empty_body, NULL);
}

static void gomp_regions(const Bench *bench) {
  for (int i = 0; i < REGIONS; i++) bench->gomp.parallel(gomp_empty_body, NULL, bench->threads, 0);
}

static void pool_barriers(const Bench *bench) { pool_run(bench->pool, (Turn){0}, barrier_body, NULL); }

static void gomp_barriers(const Bench *bench) {
  bench->gomp.parallel(gomp_barrier_body, (void *)bench, bench->threads, 0);
}

typedef struct Series {
  const char *name;
  void (*round)(const Bench *bench);
  int repeats; /* in one round */
  bool needs_gomp;
  double ns[MAX_ROUNDS];
} Series;

static Series all_series[] = {
    {.name = "empty region, rnncc", .round = pool_regions, .repeats = REGIONS},
    {.name = "empty region, libgomp", .round = gomp_regions, .repeats = REGIONS, .needs_gomp = true},
    {.name = "barrier, rnncc", .round = pool_barriers, .repeats = BARRIERS},
    {.name = "barrier, libgomp", .round = gomp_barriers, .repeats = BARRIERS, .needs_gomp = true},
};
enum { SERIES = sizeof all_series / sizeof *all_series };

static bool runs(const Series *series, const Bench *bench) { return bench->gomp.parallel || !series->needs_gomp; }

static Gomp find_gomp(void) {
  Gomp gomp = {0};
  void *library = dlopen("libgomp.so.1", RTLD_NOW);
  void *parallel = library ? dlsym(library, "GOMP_parallel") : NULL;
  void *barrier = library ? dlsym(library, "GOMP_barrier") : NULL;
  if (!parallel || !barrier) return gomp;
  memcpy(&gomp.parallel, &parallel, sizeof parallel);
  memcpy(&gomp.barrier, &barrier, sizeof barrier);
  return gomp;
}

static void measure(Series *series, const Bench *bench, int round) {
  nanosleep(&(struct timespec){0, 5000000}, NULL); /* libgomp's workers spin for some 3 ms by default */
  series->round(bench);                            /* wakes the workers */
  uint64_t start = clock_ns();
  series->round(bench);
  series->ns[round] = (double)(clock_ns() - start) / series->repeats;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(Series *series, int rounds) {
  qsort(series->ns, rounds, sizeof *series->ns, by_value);
  printf("%-24s median %8.3f us   best %8.3f us\n", series->name, series->ns[rounds / 2] / 1000, series->ns[0] / 1000);
}

/* The whole number in the argument; `otherwise` if there is none; -1 if it is not one. */
static int whole_number(const char *argument, int otherwise) {
  char *end;
  if (!argument) return otherwise;
  long value = strtol(argument, &end, 10);
  return *argument && !*end && value >= 0 && value <= MAX_ROUNDS ? (int)value : -1;
}

int main(int argc, char **argv) {
  int threads = whole_number(argc > 1 ? argv[1] : NULL, cpu_limit_threads());
  int rounds = whole_number(argc > 2 ? argv[2] : NULL, 15);
  if (argc > 3 || threads < 1 || rounds < 1) {
    fprintf(stderr, "usage: pool_bench [threads [rounds]], e.g. pool_bench 2 15\n");
    return 2;
  }
  Bench bench = {
      .pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = threads}, 0),
      .gomp = find_gomp(),
      .threads = threads,
  };
  if (!bench.pool) return 5;
  pool_keep_together(bench.pool);
  printf("%d threads on %d CPUs, %d rounds\n", pool_size(bench.pool), cpu_limit_threads(), rounds);
  if (!bench.gomp.parallel) printf("libgomp.so.1 is not installed: nothing to compare with\n");
  for (int round = 0; round < rounds; round++)
    for (int i = 0; i < SERIES; i++)
      if (runs(&all_series[i], &bench)) measure(&all_series[i], &bench, round);
  for (int i = 0; i < SERIES; i++)
    if (runs(&all_series[i], &bench)) report(&all_series[i], rounds);
  pool_destroy(bench.pool);
  return 0;
}
