/* SPDX-License-Identifier: MIT */
/*
 * Each thread multiplies and adds in 12 vectors that stay in registers: enough chains to hide the latency of two units,
 * and they fit 16 registers. All threads begin together; a try is as fast as its slowest thread, and the best of a few
 * tries counts, as any of them may be disturbed.
 */
#include "peak.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { CHAINS = 12, TRIES = 5, MOST_THREADS = 1024 };
static const uint64_t try_ns = 8000000;
static const long steps_a_look = 20000; /* between two looks at the clock */

#define NAME multiply_add_4
#define LANES 4
#define TARGET
#include "peak_loop.h"
#if defined __x86_64__
#define NAME multiply_add_8
#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#include "peak_loop.h"
#define NAME multiply_add_16
#define LANES 16
#define TARGET __attribute__((target("avx512f")))
#include "peak_loop.h"
#endif

typedef struct Loop {
  const char *isa;
  void (*multiply_add)(long steps);
  int lanes;
} Loop;

static const Loop loops[] = {
#if defined __x86_64__
    {"avx512", multiply_add_16, 16},
    {"avx2", multiply_add_8, 8},
#endif
    {"neon", multiply_add_4, 4},
    {"plain", multiply_add_4, 4},
};

static int cpu_has(const char *isa) {
#if defined __x86_64__
  if (!strcmp(isa, "avx512")) return __builtin_cpu_supports("avx512f");
  if (!strcmp(isa, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return isa != NULL;
}

static const Loop *loop_of(const char *isa) {
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
    if (!strcmp(loops[i].isa, isa) && cpu_has(isa)) return &loops[i];
  return NULL;
}

typedef struct Worker {
  const Loop *loop;
  pthread_barrier_t *start; /* all threads, before each try */
  double rate[TRIES];       /* in GFLOP/s; read after the thread is joined */
} Worker;

static double rate_of(const Loop *loop) {
  uint64_t start = now_ns(), taken = 0;
  double steps = 0;
  do {
    loop->multiply_add(steps_a_look);
    steps += (double)steps_a_look;
    taken = now_ns() - start;
  } while (taken < try_ns);
  return 2.0 * CHAINS * loop->lanes * steps / (double)taken;
}

static void *work(void *argument) {
  Worker *worker = argument;
  for (int try = 0; try < TRIES; try++) {
    pthread_barrier_wait(worker->start);
    worker->rate[try] = rate_of(worker->loop);
  }
  return NULL;
}

static double best_try(const Worker *workers, int threads) {
  double best = 0;
  for (int try = 0; try < TRIES; try++) {
    double slowest = workers[0].rate[try];
    for (int i = 1; i < threads; i++)
      if (workers[i].rate[try] < slowest) slowest = workers[i].rate[try];
    if (slowest > best) best = slowest;
  }
  return best * threads;
}

/* The caller is the first worker. */
double peak_gflops(const char *isa, int threads) {
  const Loop *loop = loop_of(isa);
  if (!loop || threads < 1 || threads > MOST_THREADS) return 0;
  pthread_barrier_t start;
  pthread_t ids[MOST_THREADS];
  Worker *workers = allocate(sizeof *workers * (size_t)threads);
  if (pthread_barrier_init(&start, NULL, (unsigned)threads)) fail(EXIT_RESOURCE, "out of memory");
  for (int i = 0; i < threads; i++) workers[i] = (Worker){.loop = loop, .start = &start};
  for (int i = 1; i < threads; i++)
    if (pthread_create(&ids[i], NULL, work, &workers[i])) fail(EXIT_RESOURCE, "cannot start %d threads", threads);
  work(&workers[0]);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  double peak = best_try(workers, threads);
  pthread_barrier_destroy(&start);
  free(workers);
  return peak;
}
