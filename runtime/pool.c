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
#include "indirect.h"
#include "ring.h"
#include "steer.h"
#include "steps.h"
#include "topology.h"
#include "tree.h"
#include "turns.h"

typedef struct Worker {
  Pool *pool;
  int rank;
  pthread_t thread;
} Worker;

struct Pool {
  /* Whose the threads are. With them the rings' tails, the epochs and the two counts below pass from one to the next.
   */
  Turns turns;
  _Alignas(128) int size; /* fixed once pool_create returns, as are all below but together, alone and alone_next */
  bool crowded;           /* more threads than CPUs */
  bool together;          /* see pool_keep_together */
  bool steer;             /* whether masks may be narrowed while threads are made and woken */
  rnncc_parallel_for parallel_for;
  void *host;
  rnncc_pool *of; /* whose guest this is; then it has no turns, guard, rings and workers */
  Steps *steps;   /* NULL: the threads work at once */
  /* Used by whoever has the threads: regions that still run alone, and how many will after the next delayed region. */
  uint32_t alone, alone_next;
  /* Whether a worker had to be woken for this region. Set by whoever woke it, read and cleared by the caller after. */
  _Atomic bool woke;
  /* How many still call pool_destroy(). The last one has acquired what the others released: their regions' ends. */
  _Atomic int users;
  /* Workers whose mask could not be restored. Counted by whoever narrowed it; from the first on, none is narrowed. */
  _Atomic int narrowed;
  ForkGuard *guard;
  TeamEpoch *epochs; /* [size] */
  Ring *rings;       /* [size]; rank 0's is not used. NULL if the threads are others' */
  Worker *workers;   /* [size]; rank 0 is the caller. NULL with them */
};

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
    Team team = pool_team(pool, self->rank);
    indirect_body(job.body, job.arg, &team);
    team_leave(&team);
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
  indirect_body(job.body, job.arg, &team);
  team_leave(&team);
  team_await_end(&team);
  pool_learn(pool, clock_ns() - start, team.waited, pool_woke(pool));
}

static void run_alone(PoolBody *body, void *arg) {
  Team alone = {.rank = 0, .size = 1};
  indirect_body(body, arg, &alone);
}

/* ---- calls without a team of this pool ---- */

typedef struct Each {
  rnncc_pool_body *body;
  void *arg;
} Each;

static void call_on_worker(void *arg, Team *team) {
  const Each *each = arg;
  team->waited += indirect_each(each->body, each->arg, team->rank);
}

static void call_on_host_thread(void *arg, int index) {
  const Each *each = arg;
  indirect_each(each->body, each->arg, index);
}

void pool_each(Pool *pool, rnncc_pool_body *body, void *arg) {
  Each each = {body, arg};
  if (pool->of)
    indirect_for_each(pool->of, body, arg);
  else if (pool->parallel_for)
    indirect_parallel_for(pool->parallel_for, pool->host, pool->size, call_on_host_thread, &each);
  else
    pool_region(pool, (Job){call_on_worker, &each});
}

/* ---- regions ---- */

typedef struct OthersRegion {
  Pool *pool;
  Job job;
} OthersRegion;

/* On a thread of others: the team's epochs are this pool's. */
static uint64_t others_work(void *arg, int32_t rank) {
  const OthersRegion *region = arg;
  Team team = pool_team(region->pool, rank);
  indirect_body(region->job.body, region->job.arg, &team);
  team_leave(&team);
  return team.waited;
}

void pool_give_back(Pool *pool) {
  if (pool->of)
    indirect_give_back(pool->of);
  else
    turns_end(&pool->turns);
}

static bool take_own(Pool *pool, Turn turn) {
  if (!fork_guard_holds(pool->guard)) return false;
  if (!turns_try(&pool->turns)) {
    if (!turn.waits) return false;
    turns_wait(&pool->turns, turn.priority, (Patience){IDLE_SPIN_NS, pool->crowded});
  }
  if (pool->alone == 0) return true;
  pool->alone--;
  turns_end(&pool->turns);
  return false;
}

bool pool_take(Pool *pool, Turn turn) {
  if (pool->size == 1) return false;
  return pool->of ? indirect_take(pool->of, turn.priority, turn.waits) : take_own(pool, turn);
}

void pool_run(Pool *pool, Turn turn, PoolBody *body, void *arg) {
  Job job = {body, arg};
  if (!pool_take(pool, turn)) {
    run_alone(body, arg);
    return;
  }
  if (pool->steps)
    steps_run(pool->steps, pool, body, arg);
  else if (pool->workers)
    pool_region(pool, job);
  else
    pool_each(pool, others_work, &(OthersRegion){pool, job});
  pool_give_back(pool);
}

/* ---- workers ---- */

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
static int workers_start(Pool *pool, int wanted, size_t stack) {
  sigset_t mask, saved;
  mask_for_workers(&mask);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes)) return 1;
  pthread_attr_setstacksize(&attributes, worker_stack_bytes(stack));
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

typedef struct Start {
  void (*hook)(void *host, int32_t worker);
  void *host;
} Start;

static void call_hook(void *arg, Team *team) {
  const Start *start = arg;
  if (team->rank) indirect_start(start->hook, start->host, team->rank);
}

/* The first region. However long it takes, the next ones are not told by it that workers are delayed. */
static void workers_greet(Pool *pool, const rnncc_options *options) {
  Start start = {options->thread_start, options->host};
  pool_region(pool, (Job){call_hook, &start});
  pool->alone = 0;
  pool->alone_next = 1;
}

/* ---- making and ending it ---- */

static void *zeroed_lines(size_t count, size_t bytes) {
  void *memory = aligned_alloc(128, count * bytes); /* bytes is a multiple of 128 */
  if (memory) memset(memory, 0, count * bytes);
  return memory;
}

static void pool_free(Pool *pool) {
  fork_guard_destroy(pool->guard);
  steps_destroy(pool->steps);
  free(pool->epochs);
  free(pool->rings);
  free(pool->workers);
  free(pool);
}

static Pool *pool_new(int threads) {
  Pool *pool = zeroed_lines(1, sizeof *pool);
  if (!pool) return NULL;
  pool->epochs = zeroed_lines(threads, sizeof *pool->epochs);
  pool->guard = fork_guard_create();
  pool->size = threads;
  pool->alone_next = 1;
  pool->users = 1;
  if (pool->epochs && pool->guard) return pool;
  pool_free(pool);
  return NULL;
}

/* Of others' threads, with the size that it has. */
static bool take_steps(Pool *pool, bool by_steps, size_t stack) {
  if (by_steps) pool->steps = steps_create(pool->size, stack);
  return !by_steps || pool->steps;
}

static bool make_workers(Pool *pool, const rnncc_options *options, size_t stack) {
  pool->rings = zeroed_lines(pool->size, sizeof *pool->rings);
  pool->workers = calloc(pool->size, sizeof *pool->workers);
  if (!pool->rings || !pool->workers) return false;
  pool->size = workers_start(pool, pool->size, stack);
  if (options->bind_threads) workers_bind(pool);
  if (options->thread_start) workers_greet(pool, options);
  return true;
}

Pool *pool_create(const rnncc_options *options, size_t stack) {
  int threads = options->threads ? options->threads : cpu_limit_threads();
  if (threads > POOL_MAX_THREADS) threads = POOL_MAX_THREADS;
  Pool *pool = pool_new(threads);
  if (!pool) return NULL;
  pool->crowded = threads > cpu_limit_cpus();
  pool->steer = options->steer_threads >= 0;
  pool->parallel_for = options->parallel_for;
  pool->host = options->host;
  if (pool->parallel_for ? take_steps(pool, options->by_steps, stack) : make_workers(pool, options, stack)) return pool;
  pool_free(pool);
  return NULL;
}

Pool *pool_join(rnncc_pool *of, size_t stack) {
  Pool *pool = pool_new(of->threads);
  if (!pool) return NULL;
  pool->crowded = of->crowded;
  pool->of = of;
  if (!take_steps(pool, of->by_steps, stack)) {
    pool_free(pool);
    return NULL;
  }
  indirect_share(of);
  return pool;
}

void pool_share(Pool *pool) { atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed); }

static void end_workers(Pool *pool) {
  pool_push(pool, 0, (Job){NULL, NULL});
  /* In the order of ranks: a parent may still use the handles of its children's threads. */
  for (int rank = 1; rank < pool->size; rank++) pthread_join(pool->workers[rank].thread, NULL);
}

void pool_destroy(Pool *pool) {
  if (!pool || atomic_fetch_sub_explicit(&pool->users, 1, memory_order_acq_rel) > 1) return;
  if (pool->workers && fork_guard_holds(pool->guard)) end_workers(pool);
  if (pool->of) indirect_release(pool->of);
  pool_free(pool);
}

int pool_size(const Pool *pool) { return pool->size; }

int pool_narrowed(const Pool *pool) { return pool->of ? indirect_narrowed(pool->of) : pool->narrowed; }

int pool_waiting(const Pool *pool) { return (int)atomic_load_explicit(&pool->turns.waiting, memory_order_relaxed); }

bool pool_crowded(const Pool *pool) { return pool->crowded; }

void pool_keep_together(Pool *pool) { pool->together = true; }
