/* SPDX-License-Identifier: MIT */
/*
 * Regions: the caller pushes one job into each worker's ring, works as rank 0, and waits until every worker has left.
 * After that all epochs are equal, so the next region starts its barriers from there. In a large team each worker
 * passes the job on to those below it in the tree (tree.h), so that the caller need not wake all sleepers itself.
 * tests/protocol/pool.pml is the model of all this that spin checks.
 */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cpu_limit.h"
#include "fork_guard.h"
#include "ring.h"
#include "steer.h"
#include "topology.h"
#include "tree.h"

typedef struct Worker {
  Pool *pool;
  int rank;
  pthread_t thread;
} Worker;

struct Pool {
  /* 1 while some thread is inside a region. Taken by exchange (acquire), given back by a store (release), so that the
   * rings' tails, the epochs and the two counts below pass from one holder to the next. */
  _Alignas(128) _Atomic uint32_t busy;
  _Alignas(128) int size; /* fixed once pool_create returns, as are all below but together, alone and alone_next */
  bool crowded;           /* more threads than CPUs */
  bool together;          /* see pool_keep_together */
  bool steer;             /* whether masks may be narrowed while threads are made and woken */
  rnncc_parallel_for parallel_for;
  void *host;
  /* Used by the holder of `busy`: regions that still run alone, and how many will after the next delayed region. */
  uint32_t alone, alone_next;
  /* Whether a worker had to be woken for this region. Set by whoever woke it, read and cleared by the caller after. */
  _Atomic bool woke;
  /* How many still call pool_destroy(). The last one has acquired what the others released: their regions' ends. */
  _Atomic int users;
  /* Workers whose mask could not be restored. Counted by whoever narrowed it; from the first on, none is narrowed. */
  _Atomic int narrowed;
  ForkGuard *guard;
  TeamEpoch *epochs; /* [size] */
  Ring *rings;       /* [size]; rank 0's is not used */
  Worker *workers;   /* [size]; rank 0 is the caller. Empty with a host's parallel_for */
};

/* 256 KiB of locals and calls is ample for kernels, whose working memory is the arena; the rest is for a debugger's or
 * sanitizer's frames. Small, because a host that locks its memory pays for every page. */
enum { STACK_BYTES = 1 << 20 };

/* A worker without a job sleeps after about the time that the kernel takes to wake it. Within a region threads spin for
 * longer: a CPU that idled takes some 0.2 ms to come back here, and a sleeping thread is often woken on the CPU of the
 * thread that wakes it, where the two then share it. After the first 2 us a waiting thread yields, which costs other
 * programs little. */
enum { IDLE_SPIN_NS = 50000, REGION_SPIN_NS = 1000000 };

static Team pool_team(const Pool *pool, int rank) {
  return (Team){
      .rank = rank,
      .size = pool->size,
      .epochs = pool->epochs,
      .passed = atomic_load_explicit(&pool->epochs[rank].entered.value, memory_order_relaxed),
      .patience = {pool->crowded ? IDLE_SPIN_NS : REGION_SPIN_NS, pool->crowded},
  };
}

static void pool_work(Pool *pool, int rank, Job job) {
  Team team = pool_team(pool, rank);
  job.body(job.arg, &team);
  team_leave(&team);
}

static bool pool_steers(Pool *pool) {
  return pool->steer && atomic_load_explicit(&pool->narrowed, memory_order_relaxed) == 0;
}

/* If the worker falls asleep or wakes up meanwhile, the job is pushed in the other way, which does no harm. */
static void push_to_sleeper(Pool *pool, int rank, Job job) {
  Steering steering = steer_away(pool->workers[rank].thread);
  ring_push(&pool->rings[rank], job);
  if (!steer_end(&steering, pool->workers[rank].thread)) pool->narrowed++;
}

static void push_to(Pool *pool, int rank, Job job) {
  Ring *ring = &pool->rings[rank];
  bool sleeps = ring_sleeps(ring);
  if (sleeps && !pool->crowded && pool_steers(pool))
    push_to_sleeper(pool, rank, job);
  else
    ring_push(ring, job);
  if (sleeps) atomic_store_explicit(&pool->woke, true, memory_order_relaxed);
}

/* Gives the job to the workers that get it from this one: in a flat team all do from the caller. A worker's ring thus
 * has one producer, who has acquired the end of the job before, directly or through the job. */
static void pool_push(Pool *pool, int from, Job job) {
  if (is_tree(pool->size))
    for (int child = 0; (child = tree_child_after(from, pool->size, child));) push_to(pool, child, job);
  else if (from == 0)
    for (int rank = 1; rank < pool->size; rank++) push_to(pool, rank, job);
}

static void *worker_main(void *arg) {
  Worker *self = arg;
  Pool *pool = self->pool;
  for (uint32_t taken = 0;; taken++) {
    Job job = ring_pop(&pool->rings[self->rank], taken, (Patience){IDLE_SPIN_NS, pool->crowded});
    pool_push(pool, self->rank, job);
    if (!job.body) return NULL;
    pool_work(pool, self->rank, job);
  }
}

static bool pool_woke(Pool *pool) {
  bool woke = atomic_load_explicit(&pool->woke, memory_order_relaxed);
  if (woke) atomic_store_explicit(&pool->woke, false, memory_order_relaxed);
  return woke;
}

/*
 * If other programs use the CPUs too, a worker may lose its CPU for milliseconds, and every barrier waits for it. A
 * region in which the caller was busy for less than 1/size of the time would have ended sooner on the caller alone. So
 * the next region runs alone. If the first region after that is delayed again, the next two run alone, then four, and
 * so on. The time in which a sleeping worker wakes up does not count: regions that run alone let it fall asleep, and
 * must not be the reason for more of them. With more workers than CPUs the rule is off: then the workers delay each
 * other, as their host has chosen.
 */
enum { MAX_ALONE = 64, HICCUP_NS = 200000, WAKE_NS = 2000000 };

static void pool_learn(Pool *pool, uint64_t took, uint64_t waited, bool woke) {
  if (pool->crowded || pool->together) return;
  bool held_up = waited > (woke ? WAKE_NS : HICCUP_NS) && (took - waited) * (uint64_t)pool->size < took;
  pool->alone = held_up ? pool->alone_next : 0;
  if (!held_up)
    pool->alone_next = 1;
  else if (pool->alone_next < MAX_ALONE)
    pool->alone_next *= 2;
}

static void pool_region(Pool *pool, Job job) {
  uint64_t start = clock_ns();
  pool_push(pool, 0, job);
  Team team = pool_team(pool, 0);
  job.body(job.arg, &team);
  team_leave(&team);
  team_await_end(&team);
  pool_learn(pool, clock_ns() - start, team.waited, pool_woke(pool));
}

static void run_alone(PoolBody *body, void *arg) {
  Team alone = {.rank = 0, .size = 1};
  body(arg, &alone);
}

typedef struct HostRegion {
  Pool *pool;
  Job job;
} HostRegion;

static void host_body(void *arg, int index) {
  HostRegion *region = arg;
  pool_work(region->pool, index, region->job);
}

static void pool_give_back(Pool *pool) { atomic_store_explicit(&pool->busy, 0, memory_order_release); }

/* Whether the caller now holds the pool. */
static bool pool_take(Pool *pool) {
  if (pool->size == 1 || !fork_guard_holds(pool->guard)) return false;
  if (atomic_exchange_explicit(&pool->busy, 1, memory_order_acquire)) return false;
  if (pool->alone == 0) return true;
  pool->alone--;
  pool_give_back(pool);
  return false;
}

void pool_run(Pool *pool, PoolBody *body, void *arg) {
  Job job = {body, arg};
  if (!pool_take(pool)) {
    run_alone(body, arg);
    return;
  }
  if (pool->parallel_for)
    pool->parallel_for(pool->host, pool->size, host_body, &(HostRegion){pool, job});
  else
    pool_region(pool, job);
  pool_give_back(pool);
}

/* Workers take no signals but those that their own instructions raise and the profiler's. */
static void mask_for_workers(sigset_t *mask) {
  static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
  sigfillset(mask);
  for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++) sigdelset(mask, synchronous[i]);
}

static bool worker_start(Worker *worker, const pthread_attr_t *attributes) {
  if (pthread_create(&worker->thread, attributes, worker_main, worker)) return false;
  if (!pool_steers(worker->pool)) return true;
  Steering steering = steer_away(worker->thread);
  if (!steer_end(&steering, worker->thread)) worker->pool->narrowed++;
  return true;
}

/* Starts workers 1.. and returns how many threads there are with the caller. Workers wait on their rings, and read the
 * pool's other fields only after their first job, so pool->size may still shrink here. */
static int workers_start(Pool *pool, int wanted) {
  sigset_t mask, saved;
  mask_for_workers(&mask);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes)) return 1;
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &mask, &saved); /* inherited by the threads */
  int size = 1;
  for (; size < wanted; size++) {
    pool->workers[size] = (Worker){.pool = pool, .rank = size};
    if (!worker_start(&pool->workers[size], &attributes)) break;
  }
  pthread_sigmask(SIG_SETMASK, &saved, NULL);
  pthread_attr_destroy(&attributes);
  return size;
}

/* The CPUs for workers, in order; NULL: not known, or no memory. The caller frees them. */
static CpuPlace *cpu_places(int *count) {
  CpuMask mask;
  *count = cpu_mask_read(&mask);
  CpuPlace *places = *count ? calloc(*count, sizeof *places) : NULL;
  if (places) *count = topology_order("", &mask, places);
  return places;
}

/* Each worker to a CPU, modulo their number. The first is left to the caller, whose thread is the host's and stays as
 * it is. */
static void workers_bind(const Pool *pool) {
  int count;
  CpuPlace *places = cpu_places(&count);
  for (int rank = 1; places && rank < pool->size; rank++) {
    CpuMask one = {0};
    CPU_SET_S(places[rank % count].cpu, sizeof one, &one.set);
    pthread_setaffinity_np(pool->workers[rank].thread, sizeof one, &one.set);
  }
  free(places);
}

static void *zeroed_lines(size_t count, size_t bytes) {
  void *memory = aligned_alloc(128, count * bytes); /* bytes is a multiple of 128 */
  if (memory) memset(memory, 0, count * bytes);
  return memory;
}

static void pool_free(Pool *pool) {
  fork_guard_destroy(pool->guard);
  free(pool->epochs);
  free(pool->rings);
  free(pool->workers);
  free(pool);
}

static bool pool_allocate(Pool *pool, int threads) {
  pool->guard = fork_guard_create();
  pool->epochs = zeroed_lines(threads, sizeof *pool->epochs);
  pool->rings = zeroed_lines(threads, sizeof *pool->rings);
  pool->workers = calloc(threads, sizeof *pool->workers);
  return pool->guard && pool->epochs && pool->rings && pool->workers;
}

Pool *pool_create(const rnncc_options *options) {
  int threads = options->threads ? options->threads : cpu_limit_threads();
  if (threads > POOL_MAX_THREADS) threads = POOL_MAX_THREADS;
  Pool *pool = zeroed_lines(1, sizeof *pool);
  if (!pool) return NULL;
  if (!pool_allocate(pool, threads)) {
    pool_free(pool);
    return NULL;
  }
  pool->crowded = threads > cpu_limit_cpus();
  pool->alone_next = 1;
  pool->users = 1;
  pool->steer = options->steer_threads >= 0;
  pool->parallel_for = options->parallel_for;
  pool->host = options->host;
  pool->size = pool->parallel_for ? threads : workers_start(pool, threads);
  if (options->bind_threads && !pool->parallel_for) workers_bind(pool);
  return pool;
}

void pool_share(Pool *pool) { atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed); }

void pool_destroy(Pool *pool) {
  if (!pool || atomic_fetch_sub_explicit(&pool->users, 1, memory_order_acq_rel) > 1) return;
  if (!pool->parallel_for && fork_guard_holds(pool->guard)) {
    pool_push(pool, 0, (Job){NULL, NULL});
    /* In the order of ranks: a parent may still use the handles of its children's threads. */
    for (int rank = 1; rank < pool->size; rank++) pthread_join(pool->workers[rank].thread, NULL);
  }
  pool_free(pool);
}

int pool_size(const Pool *pool) { return pool->size; }

int pool_narrowed(const Pool *pool) { return pool->narrowed; }

void pool_keep_together(Pool *pool) { pool->together = true; }
