/* SPDX-License-Identifier: MIT */
/* What the pool does to the affinity masks of its workers: with a system that refuses, and a host that sets its own. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/asleep.h"
#include "../support/sanitized.h"
#include "pool.h"
#include "steer.h"

static cpu_set_t all; /* the mask of this thread, which new threads have */
static enum { SETS, RESTORES_NONE, HOST_SETS_TOO, HAS_MANY_CPUS } system_does;
static _Atomic int calls;

/* A machine of many CPUs, by what it answers: of CPU 5000 among those of `many`, which is this thread's mask. */
enum { CPU_OF_MANY = 5000 };
static CpuMask many;

int __real_sched_getcpu(void);
int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void) { return system_does == HAS_MANY_CPUS ? CPU_OF_MANY : __real_sched_getcpu(); }

int __real_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set);
int __wrap_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set);
int __wrap_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set) {
  if (system_does != HAS_MANY_CPUS) return __real_pthread_getaffinity_np(thread, size, set);
  if (size < sizeof many) return EINVAL; /* as Linux does */
  memcpy(set, &many, sizeof many);
  return 0;
}

static int set_mask_of_many(size_t size, const cpu_set_t *set) {
  if (size < sizeof many) return EINVAL;
  memcpy(&many, set, sizeof many);
  return 0;
}

/* The runtime's calls come here (--wrap). Of the pool's calls, those that restore have the whole mask. */
int __real_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
  bool restores = CPU_EQUAL(set, &all);
  cpu_set_t others;
  calls++;
  if (system_does == HAS_MANY_CPUS) return set_mask_of_many(size, set);
  if (system_does == RESTORES_NONE && restores) return EINVAL;
  int error = __real_pthread_setaffinity_np(thread, size, set);
  CPU_XOR(&others, &all, set);
  if (system_does == HOST_SETS_TOO && !restores && !error)
    return __real_pthread_setaffinity_np(thread, sizeof others, &others);
  return error;
}

static int read_mask(void **state) {
  (void)state;
  system_does = SETS;
  calls = 0;
  return sched_getaffinity(0, sizeof all, &all);
}

static Pool *pool_of(int threads, int steer) {
  Pool *pool = pool_create(
      &(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = threads, .steer_threads = steer}, 0);
  assert_non_null(pool);
  pool_keep_together(pool);
  return pool;
}

typedef struct Seen {
  pid_t id;
  pthread_t thread;
} Seen;

static void note_thread(void *arg, Team *team) { ((Seen *)arg)[team->rank] = (Seen){gettid(), pthread_self()}; }

/* A run that finds the second thread asleep. */
static Seen wake(Pool *pool) {
  Seen seen[2];
  pool_run(pool, (Turn){0}, note_thread, seen);
  assert_true(falls_asleep(seen[1].id));
  pool_run(pool, (Turn){0}, note_thread, seen);
  return seen[1];
}

static cpu_set_t mask_of(Seen worker) {
  cpu_set_t mask;
  assert_int_equal(pthread_getaffinity_np(worker.thread, sizeof mask, &mask), 0);
  return mask;
}

static void masks_are_restored(void **state) {
  (void)state;
  Pool *pool = pool_of(2, 0);
  cpu_set_t mask = mask_of(wake(pool));
  assert_true(CPU_EQUAL(&mask, &all));
  assert_int_equal(pool_narrowed(pool), 0);
  if (CPU_COUNT(&all) > 1) assert_true(calls >= 4); /* after the thread was made; around waking it */
  pool_destroy(pool);
}

static void with_steering_off_no_mask_is_set(void **state) {
  (void)state;
  Pool *pool = pool_of(2, -1);
  cpu_set_t mask = mask_of(wake(pool));
  assert_true(CPU_EQUAL(&mask, &all));
  assert_int_equal(calls, 0);
  pool_destroy(pool);
}

static void a_mask_that_cannot_be_restored_is_told_and_no_other_is_narrowed(void **state) {
  (void)state;
  if (CPU_COUNT(&all) < 2) skip();
  system_does = RESTORES_NONE;
  Seen seen[4];
  Pool *pool = pool_of(4, 0);
  assert_int_equal(pool_narrowed(pool), 1);
  pool_run(pool, (Turn){0}, note_thread, seen);
  for (int rank = 1; rank < 4; rank++) {
    cpu_set_t mask = mask_of(seen[rank]);
    assert_int_equal(CPU_COUNT(&mask), CPU_COUNT(&all) - (rank == 1));
  }
  pool_destroy(pool);
  assert_int_equal(calls, 2);
}

static void a_worker_left_narrow_is_the_last_that_is_woken_elsewhere(void **state) {
  (void)state;
  if (CPU_COUNT(&all) < 2) skip();
  Pool *pool = pool_of(2, 0);
  wake(pool);
  system_does = RESTORES_NONE;
  wake(pool);
  assert_int_equal(pool_narrowed(pool), 1);
  int before = calls;
  wake(pool);
  assert_int_equal(calls, before);
  pool_destroy(pool);
}

static void a_mask_that_the_host_sets_meanwhile_stays(void **state) {
  (void)state;
  if (CPU_COUNT(&all) < 2) skip();
  Pool *pool = pool_of(2, 0);
  system_does = HOST_SETS_TOO;
  cpu_set_t mask = mask_of(wake(pool));
  assert_int_equal(CPU_COUNT(&mask), 1); /* the CPU that the pool took out */
  assert_int_equal(pool_narrowed(pool), 0);
  system_does = SETS;
  pool_destroy(pool);
}

/* None would be left. */
static void a_mask_of_this_cpu_alone_stays(void **state) {
  (void)state;
  many = (CpuMask){0};
  CPU_SET_S(CPU_OF_MANY, sizeof many, &many.set);
  system_does = HAS_MANY_CPUS;
  Steering steering = steer_away(pthread_self());
  assert_true(steer_end(&steering, pthread_self()));
  assert_int_equal(calls, 0);
}

static bool has(int cpu) { return CPU_ISSET_S(cpu, sizeof many, &many.set); }

/* More than a cpu_set_t has: this thread's CPU is taken out of the mask as on any machine, and put back. */
static void masks_have_all_cpus_of_large_machines(void **state) {
  (void)state;
  many = (CpuMask){0};
  for (int cpu = CPU_OF_MANY - 1; cpu <= CPU_OF_MANY + 1; cpu++) CPU_SET_S(cpu, sizeof many, &many.set);
  system_does = HAS_MANY_CPUS;
  Steering steering = steer_away(pthread_self());
  assert_true(has(CPU_OF_MANY - 1) && !has(CPU_OF_MANY) && has(CPU_OF_MANY + 1));
  assert_true(steer_end(&steering, pthread_self()));
  assert_true(has(CPU_OF_MANY - 1) && has(CPU_OF_MANY) && has(CPU_OF_MANY + 1));
  assert_int_equal(calls, 2);
}

/* ---- a filter of system calls ---- */

/* This process's call `number` fails from now on. */
static bool refuse_call(unsigned number) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

enum { WORKS, FAILS, NO_FILTERS };

static void count_visit(void *arg, Team *team) { ((int *)arg)[team->rank * 32]++; }

static int run_filtered(unsigned number) {
  int visits[3 * 32] = {0};
  if (!refuse_call(number)) return NO_FILTERS;
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options), .threads = 3, .bind_threads = 1}, 0);
  if (!pool || pool_size(pool) != 3) return FAILS;
  pool_keep_together(pool);
  for (int i = 0; i < 100; i++) pool_run(pool, (Turn){0}, count_visit, visits);
  pool_destroy(pool);
  return visits[0] == 100 && visits[32] == 100 && visits[64] == 100 ? WORKS : FAILS;
}

static void a_pool_works_where_masks_may_not_be_touched(void **state) {
  (void)state;
  static const unsigned refused[] = {SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_openat};
  for (size_t i = 0; i < sizeof refused / sizeof *refused && !SANITIZED; i++) {
    pid_t child = fork();
    if (child == 0) _exit(run_filtered(refused[i]));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS) skip();
    assert_int_equal(status, 0);
  }
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup(function, read_mask)
  const struct CMUnitTest tests[] = {
      TEST(masks_are_restored),
      TEST(with_steering_off_no_mask_is_set),
      TEST(a_mask_that_cannot_be_restored_is_told_and_no_other_is_narrowed),
      TEST(a_worker_left_narrow_is_the_last_that_is_woken_elsewhere),
      TEST(a_mask_that_the_host_sets_meanwhile_stays),
      TEST(a_mask_of_this_cpu_alone_stays),
      TEST(masks_have_all_cpus_of_large_machines),
      TEST(a_pool_works_where_masks_may_not_be_touched),
  };
  return cmocka_run_group_tests_name("runtime_steer", tests, NULL, NULL);
}
