/* SPDX-License-Identifier: MIT */
/*
 * A team of threads, each on a CPU of its own, makes tries that all begin together. The result of a try is the mean
 * over the threads, because a single thread may get bandwidth that another left unused.
 */
#include "speed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>

#include "cpu.h"
#include "dot_loops.h"
#include "matrix_loop.h"
#include "topology.h"

/* ---- the loops, in the vectors of each instruction set ---- */

/* 12 chains hide the latency of two units, and fit 16 registers. */
enum { CHAINS = 12, READ_VECTORS = 8 };

/* As wide as the widest vectors. Where registers are narrower, clang splits it over several. */
typedef float Wide __attribute__((vector_size(64)));
#define LOOP static inline __attribute__((always_inline)) float

/* Reads blocks of 8 vectors, forward; every second pass backward if they alternate. Data is aligned to a cache line. */
LOOP read_blocks(const float *data, size_t bytes, long passes, bool alternate, size_t vector_bytes) {
  const Wide *vectors = (const Wide *)data;
  size_t block_bytes = READ_VECTORS * vector_bytes, blocks = bytes / block_bytes, n = block_bytes / sizeof(Wide);
  Wide sums[READ_VECTORS] = {0};
  for (long pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < blocks; i++) {
      const Wide *block = vectors + n * (alternate && (pass & 1) ? blocks - 1 - i : i);
      for (size_t k = 0; k < n; k++) sums[k] += block[k];
    }
  for (size_t k = 1; k < n; k++) sums[0] += sums[k];
  return sums[0][0];
}

/* CHAINS multiply-adds of vectors a step. Values stay finite: x = x / 2 + 1. If clang knew that one begins with 2,
 * which stays 2, or that two chains are equal, it would remove one. */
LOOP multiply_add(long steps, size_t vector_bytes) {
  static volatile float firsts[sizeof(Wide) / sizeof(float)];
  size_t n = CHAINS * vector_bytes / sizeof(Wide);
  Wide sums[CHAINS], half = {0}, one = {0}, first;
  half += 0.5f;
  one += 1.0f;
  for (size_t lane = 0; lane < sizeof(Wide) / sizeof(float); lane++) first[lane] = firsts[lane];
  for (size_t k = 0; k < n; k++) sums[k] = first + (float)k;
  for (long step = 0; step < steps; step++) {
#pragma clang loop unroll(full)
    for (size_t k = 0; k < n; k++) sums[k] = sums[k] * half + one;
  }
  for (size_t k = 1; k < n; k++) sums[0] += sums[k];
  return sums[0][0];
}

/* The third argument is the attribute of the functions. */
#define LOOPS(name, bytes, ...)                                                                                        \
  __VA_ARGS__ static float read_##name(const float *data, size_t size, long passes, bool alternate) {                  \
    return read_blocks(data, size, passes, alternate, bytes);                                                          \
  }                                                                                                                    \
  __VA_ARGS__ static float multiply_add_##name(long steps) { return multiply_add(steps, bytes); }

LOOPS(plain, 16, )
#if defined __x86_64__
#define X86_FEATURE(name, title, flags, vector_bytes, ...) LOOPS(name, vector_bytes, __attribute__((target(flags))))
#include "cpu.def"
#elif defined __riscv
#define RISCV_FEATURE(name, title, flags, vector_bytes) LOOPS(name, vector_bytes, __attribute__((target("arch=+v"))))
#include "cpu.def"
#elif defined __aarch64__
#include "sve_loops.h"
#endif

enum { TRIES = 25, MAX_THREADS = 1024, HUGE_PAGE = 2 << 20 };
static const double least_ns = 1.5e6; /* of a try */

typedef struct Loops {
  const char *isa;
  uint32_t feature; /* 0: every CPU has it */
  int vector_bytes;
  float (*read)(const float *data, size_t bytes, long passes, bool alternate);
  float (*multiply_add)(long steps);
} Loops;

/* The best comes last. */
static const Loops all_loops[] = {
    {"plain", 0, 16, read_plain, multiply_add_plain},
#if defined __x86_64__
#define X86_FEATURE(name, title, flags, vector_bytes, ...)                                                             \
  {#name, CPU_##name, vector_bytes, read_##name, multiply_add_##name},
#define X86_OPTION(...)
#elif defined __riscv
#define RISCV_FEATURE(name, title, flags, vector_bytes)                                                                \
  {#name, CPU_##name, vector_bytes, read_##name, multiply_add_##name},
#elif defined __aarch64__
#define AARCH64_OPTION(...)
#define SVE_FEATURE(name, title, flags, vector_bytes) {#name, CPU_##name, vector_bytes, read_sve, multiply_add_sve},
#define AARCH64_FEATURE(name, ...) {#name, CPU_##name, 16, read_plain, multiply_add_plain},
#endif
#include "cpu.def"
};
enum { N_LOOPS = sizeof all_loops / sizeof *all_loops };

static bool cpu_has(const Loops *loops) { return (loops->feature & ~cpu_features()) == 0; }

static const Loops *loops_of(const char *isa) {
  for (int i = 0; i < N_LOOPS; i++)
    if (!strcasecmp(all_loops[i].isa, isa) && cpu_has(&all_loops[i])) return &all_loops[i];
  return NULL;
}

const char *speed_best_isa(void) {
  int i = N_LOOPS - 1;
  while (!cpu_has(&all_loops[i])) i--;
  return all_loops[i].isa;
}

/* ---- the team ---- */

typedef struct Team Team;

typedef struct Worker {
  Team *team;
  pthread_t thread;
  int index;
  float *data;         /* its own, of team->bytes */
  double found[TRIES]; /* read after it is joined */
} Worker;

struct Team {
  const Loops *loops;
  double (*try)(Worker *worker); /* what it finds: a rate, or a time */
  size_t bytes;
  bool alternate;
  int threads;
  pthread_mutex_t gate;    /* held until all threads are there */
  atomic_bool failed;      /* set before the gate opens, or before the first barrier */
  pthread_barrier_t start; /* all, before each try */
  Worker *workers;
};

static volatile float kept; /* what loops return: or they would be left out */

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* To the index-th CPU that this process may use. A failure only means a less steady figure. */
static void pin(int index) {
  CpuMask allowed, one = {0};
  if (sched_getaffinity(0, sizeof allowed, &allowed.set)) return;
  for (int cpu = 0; cpu < MAX_CPUS; cpu++)
    if (CPU_ISSET_S(cpu, sizeof allowed, &allowed.set) && index-- == 0) CPU_SET_S(cpu, sizeof one, &one.set);
  if (CPU_COUNT_S(sizeof one, &one.set)) pthread_setaffinity_np(pthread_self(), sizeof one, &one.set);
}

static float *new_data(size_t bytes) {
  size_t room = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  float *data = aligned_alloc(HUGE_PAGE, room);
  if (!data) return NULL;
  madvise(data, room, MADV_HUGEPAGE);
  memset(data, 0, room);
  return data;
}

static void make_tries(Worker *worker) {
  Team *team = worker->team;
  worker->data = team->bytes ? new_data(team->bytes) : NULL;
  if (team->bytes && !worker->data) team->failed = true;
  pthread_barrier_wait(&team->start);
  for (int try = 0; try < TRIES && !team->failed; try++) {
    pthread_barrier_wait(&team->start);
    worker->found[try] = team->try(worker);
  }
  free(worker->data);
}

static void *work(void *argument) {
  Worker *worker = argument;
  pthread_mutex_lock(&worker->team->gate);
  pthread_mutex_unlock(&worker->team->gate);
  if (worker->team->failed) return NULL;
  pin(worker->index);
  make_tries(worker);
  return NULL;
}

static void start_and_join(Team *team) {
  int started = 0;
  pthread_mutex_lock(&team->gate);
  for (; started < team->threads; started++) {
    Worker *worker = &team->workers[started];
    *worker = (Worker){.team = team, .index = started};
    if (pthread_create(&worker->thread, NULL, work, worker)) break;
  }
  if (started < team->threads) team->failed = true;
  pthread_mutex_unlock(&team->gate);
  while (started > 0) pthread_join(team->workers[--started].thread, NULL);
}

/* False if there are no such threads, or no memory for them. */
static bool run_tries(Team *team) {
  if (!team->loops || team->threads < 1 || team->threads > MAX_THREADS) return false;
  if (pthread_barrier_init(&team->start, NULL, (unsigned)team->threads)) return false;
  pthread_mutex_init(&team->gate, NULL);
  start_and_join(team);
  pthread_mutex_destroy(&team->gate);
  pthread_barrier_destroy(&team->start);
  return !team->failed;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The quantile `part`, 0 to 1, of the tries' means over the threads; 0 if there are no tries. */
static double try_at(Team *team, double part) {
  double means[TRIES] = {0};
  team->workers = malloc((size_t)team->threads * sizeof *team->workers);
  if (!team->workers) return 0;
  bool good = run_tries(team);
  for (int try = 0; good && try < TRIES; try++)
    for (int i = 0; i < team->threads; i++) means[try] += team->workers[i].found[try] / team->threads;
  free(team->workers);
  qsort(means, TRIES, sizeof *means, by_value);
  return good ? means[(int)(part * (TRIES - 1))] : 0;
}

static double best_rate(Team *team) { return try_at(team, 1); }

/* ---- what is tried ---- */

enum { STEPS = 20000 }; /* between two looks at the clock */

static double try_multiply_add(Worker *worker) {
  const Loops *loops = worker->team->loops;
  double start = now_ns(), taken = 0, steps = 0;
  for (; taken < least_ns; taken = now_ns() - start, steps += STEPS) kept = loops->multiply_add(STEPS);
  return 2.0 * CHAINS * loops->vector_bytes / sizeof(float) * steps / taken;
}

double speed_multiply_add(const char *isa, int threads) {
  Team team = {.loops = loops_of(isa), .try = try_multiply_add, .threads = threads};
  return best_rate(&team);
}

static double try_dot_products(Worker *worker) {
  const DotLoop *loop = dot_loop_of(worker->team->loops->vector_bytes);
  double start = now_ns(), taken = 0, steps = 0;
  for (; taken < least_ns; taken = now_ns() - start, steps += STEPS) loop->run(STEPS);
  return 2.0 * CHAINS * loop->products * steps / taken;
}

double speed_dot_products(const char *isa, int threads) {
  Team team = {.loops = loops_of(isa), .try = try_dot_products, .threads = threads};
  return team.loops && dot_loop_of(team.loops->vector_bytes) ? best_rate(&team) : 0;
}

static double try_matrix_products(Worker *worker) {
  enum { MATRIX_STEPS = STEPS / 16 };
  (void)worker;
  double start = now_ns(), taken = 0, steps = 0;
  for (; taken < least_ns; taken = now_ns() - start, steps += MATRIX_STEPS) multiply_matrices(MATRIX_STEPS);
  return 2.0 * MATRIX_PRODUCTS * MATRIX_MULTIPLY_ADDS * steps / taken;
}

double speed_matrix_products(int threads) {
  Team team = {.loops = loops_of("plain"), .try = try_matrix_products, .threads = threads};
  return has_matrices() ? best_rate(&team) : 0;
}

/* At least once in each direction, after two passes that load the data into the nearest cache that holds it. */
static double try_read(Worker *worker) {
  const Team *team = worker->team;
  double start, taken = 0, bytes = 0;
  long passes = 2 + (long)(2e5 / (double)team->bytes) * 2;
  kept = team->loops->read(worker->data, team->bytes, 2, team->alternate);
  for (start = now_ns(); taken < least_ns; taken = now_ns() - start) {
    kept = team->loops->read(worker->data, team->bytes, passes, team->alternate);
    bytes += (double)passes * (double)team->bytes;
  }
  return bytes / taken;
}

double speed_read(const char *isa, int threads, size_t bytes, bool alternate) {
  Team team = {.loops = loops_of(isa), .try = try_read, .bytes = bytes, .alternate = alternate, .threads = threads};
  return best_rate(&team);
}

double speed_memory(const char *isa, int threads, size_t bytes) {
  Team team = {.loops = loops_of(isa), .try = try_read, .bytes = bytes, .threads = threads};
  return try_at(&team, 0.5);
}

/* Adds two registers, each addition waiting for the one before. A constant would not do: some CPUs add it in no time.
 */
static uint64_t add_up(long steps, uint64_t addend) {
  uint64_t sum = 0;
  for (long step = 0; step < steps; step++) {
#pragma clang loop unroll(full)
    for (int k = 0; k < CHAINS; k++) {
      sum += addend;
      __asm__ volatile("" : "+r"(sum));
    }
  }
  return sum;
}

/* A CPU that slows down for wide vectors takes longer than this to speed up again. */
static double try_clock(Worker *worker) {
  try_multiply_add(worker);
  double start = now_ns();
  kept = (float)add_up(STEPS, (uint64_t)start);
  return (double)CHAINS * STEPS / (now_ns() - start);
}

double speed_clock(const char *isa, int threads) {
  Team team = {.loops = loops_of(isa), .try = try_clock, .threads = threads};
  return best_rate(&team);
}

/* ---- barriers ---- */

static inline void pause_cpu(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

/* What one of two threads writes and the other reads, in cache lines of its own. */
typedef struct Side {
  _Alignas(128) atomic_ulong round;
  _Alignas(128) unsigned long line;
} Side;

static Side sides[2];

/* As modules do it (runtime/epoch.c). */
static unsigned long meet(Side *own, const Side *other) {
  unsigned long round = ++own->line;
  atomic_store_explicit(&own->round, round, memory_order_seq_cst);
  while (atomic_load_explicit(&other->round, memory_order_acquire) < round) pause_cpu();
  return other->line;
}

/* The time that barriers add to some work before each: threads that come from work do not arrive at once, and still
 * have other instructions in flight. */
static double try_meeting(Worker *worker) {
  enum { ROUNDS = 2000, WORK = 80 };
  uint64_t sum = 0;
  double start = now_ns();
  for (int round = 0; round < ROUNDS; round++) sum += add_up(WORK, 1);
  double work = now_ns() - start;
  pthread_barrier_wait(&worker->team->start);
  start = now_ns();
  for (int round = 0; round < ROUNDS; round++)
    sum += add_up(WORK, 1) + meet(&sides[worker->index], &sides[1 - worker->index]);
  kept = (float)sum;
  return (now_ns() - start - work) / ROUNDS;
}

double speed_meeting(void) {
  Team team = {.loops = loops_of("plain"), .try = try_meeting, .threads = 2};
  memset(sides, 0, sizeof sides);
  return try_at(&team, 0.25);
}
