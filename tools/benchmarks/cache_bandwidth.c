/* SPDX-License-Identifier: MIT */
/*
 * What a core of this machine can do at best: cache_bandwidth THREADS... prints, as JSON and for each number of threads
 * at once, the GFLOP/s of multiply-adds and the GB/s of reading a buffer of its own over and over, from 16 KB to 64 MB,
 * a core, in huge pages where there are. The best of many short tries counts: whatever else runs can only take away.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined __x86_64__
#define ISA avx512
#define TARGET __attribute__((target("avx512f,fma")))
#define VECTOR_BYTES 64
#include "cache_bandwidth.h"
#define ISA avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR_BYTES 32
#include "cache_bandwidth.h"
#endif
#define ISA plain
#define TARGET
#define VECTOR_BYTES 16
#include "cache_bandwidth.h"

enum { SMALLEST = 16 << 10, LARGEST = 64 << 20, TRIES = 25, MOST_THREADS = 1024 };
static const double bytes_a_try = 64e6;
static const long steps_a_try = 200000;

typedef struct Loops {
  const char *isa;
  float (*read)(const float *data, size_t bytes, int passes, int alternate);
  float (*multiply_add)(long steps, double *flops);
} Loops;

/* What all threads do next. The main thread writes it between two barriers, while the others wait. */
typedef struct Task {
  Loops loops;
  size_t bytes; /* 0: multiply-adds */
  int alternate, threads, done;
  pthread_barrier_t barrier;
  double rate[MOST_THREADS]; /* each thread writes its own: operations or bytes a second */
} Task;

typedef struct Worker {
  Task *task;
  pthread_t thread;
  int index;
} Worker;

static volatile float sink; /* keeps the sums */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static Loops best_loops(void) {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) return (Loops){"avx512", read_avx512, multiply_add_avx512};
  if (__builtin_cpu_supports("avx2")) return (Loops){"avx2", read_avx2, multiply_add_avx2};
#endif
  return (Loops){"plain", read_plain, multiply_add_plain};
}

/* To the index-th CPU that this process may use. A failure only means a less steady figure. */
static void pin(int index) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one)) pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static double rate_of(const Task *task, const float *data) {
  double amount = 0, start;
  if (task->bytes == 0) {
    start = now();
    sink = task->loops.multiply_add(steps_a_try, &amount);
  } else {
    int passes = 2 * (1 + (int)(bytes_a_try / 2 / (double)task->bytes)); /* both directions equally often */
    amount = (double)passes * (double)task->bytes;
    sink = task->loops.read(data, task->bytes, 2, task->alternate); /* into the cache */
    start = now();
    sink = task->loops.read(data, task->bytes, passes, task->alternate);
  }
  return amount / (now() - start);
}

static void *work(void *argument) {
  Worker *worker = argument;
  Task *task = worker->task;
  pin(worker->index);
  float *data = aligned_alloc(2 << 20, LARGEST);
  if (!data) exit(4);
  madvise(data, LARGEST, MADV_HUGEPAGE);
  memset(data, 0, LARGEST);
  for (;;) {
    pthread_barrier_wait(&task->barrier);
    if (task->done) break;
    task->rate[worker->index] = rate_of(task, data);
    pthread_barrier_wait(&task->barrier);
  }
  free(data);
  return NULL;
}

/* The mean over the threads, of the best try; in units of 1e9 a second. */
static double measure(Task *task, size_t bytes, int alternate) {
  double best = 0;
  task->bytes = bytes;
  task->alternate = alternate;
  for (int try = 0; try < TRIES; try++) {
    double sum = 0;
    pthread_barrier_wait(&task->barrier);
    pthread_barrier_wait(&task->barrier);
    for (int i = 0; i < task->threads; i++) sum += task->rate[i];
    if (sum > best) best = sum;
  }
  return best / task->threads * 1e-9;
}

static void measure_all(Task *task) {
  printf("{\"threads\": %d, \"gflops\": %.1f, \"read\": [", task->threads, measure(task, 0, 0));
  for (size_t bytes = SMALLEST; bytes <= LARGEST; bytes *= 2)
    printf("%s{\"bytes\": %zu, \"forward\": %.1f, \"alternating\": %.1f}", bytes == SMALLEST ? "" : ", ", bytes,
           measure(task, bytes, 0), measure(task, bytes, 1));
  printf("]}");
}

static int run_threads(int threads, Loops loops) {
  static Task task;
  static Worker workers[MOST_THREADS];
  task = (Task){.loops = loops, .threads = threads};
  pthread_barrier_init(&task.barrier, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    workers[i] = (Worker){.task = &task, .index = i};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return 4;
  }
  measure_all(&task);
  task.done = 1;
  pthread_barrier_wait(&task.barrier);
  for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&task.barrier);
  return 0;
}

int main(int count, char **words) {
  Loops loops = best_loops();
  printf("{\"isa\": \"%s\", \"cores\": [", loops.isa);
  for (int i = 1; i < count; i++) {
    int threads = (int)strtol(words[i], NULL, 10);
    if (threads < 1 || threads > MOST_THREADS) {
      fprintf(stderr, "usage: cache_bandwidth THREADS...   (1 to %d each)\n", MOST_THREADS);
      return 2;
    }
    if (i > 1) printf(", ");
    if (run_threads(threads, loops)) return fprintf(stderr, "cache_bandwidth: cannot start %d threads\n", threads), 4;
  }
  printf("]}\n");
  return 0;
}
