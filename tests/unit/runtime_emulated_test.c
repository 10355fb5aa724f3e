/* SPDX-License-Identifier: MIT */
/* The runtime on AArch64 and RISC-V, under an emulator, without cmocka: results for each thread count, a fork and a
 * lock over it (emulators accept advice about forks and ignore it), the floating-point mode, and a host that runs a
 * run's parts one by one. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork_guard.h"
#include "runtime_fake.h"

enum { THREADS = 4, RUNS = 200 };

typedef struct Stream {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
} Stream;

static void one_by_one(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  ++*(int *)host;
  while (n-- > 0) body(arg, n);
}

static int steps;

static bool stream_open(Stream *it, int threads, bool by_steps) {
  rnncc_options options = {.struct_size = sizeof options, .threads = threads, .by_steps = by_steps};
  if (by_steps) options.parallel_for = one_by_one, options.host = &steps;
  it->api = rnncc_module_query(RNNCC_ABI, NULL);
  return it->api && it->api->model_create(&options, &it->model, NULL) == RNNCC_OK &&
         it->api->context_create(it->model, NULL, 0, &it->context, NULL) == RNNCC_OK;
}

static void stream_close(Stream *it) {
  it->api->context_destroy(it->context);
  it->api->model_destroy(it->model);
}

static bool run_gives(Stream *it, const FakeCall *expected) {
  FakeCall call;
  fake_call_init(&call, FAKE_T, FAKE_B, 3);
  it->api->state_reset(it->context, -1);
  return fake_call_run(it->api, it->context, &call) == RNNCC_OK && !memcmp(call.y, expected->y, sizeof call.y);
}

static bool child_gives(Stream *it, const FakeCall *expected) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(!run_gives(it, expected));
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

static bool lock_is_free_in_a_child(void) {
  int status = -1;
  ForkGuard *guard = fork_guard_create();
  if (!guard) return false;
  fork_guard_lock(guard);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    for (int i = 0; i < 2; i++) {
      fork_guard_lock(guard);
      fork_guard_unlock(guard);
    }
    _exit(0);
  }
  bool waited = waitpid(child, &status, 0) == child;
  fork_guard_unlock(guard);
  fork_guard_lock(guard);
  fork_guard_destroy(guard);
  return waited && status == 0;
}

#if defined __aarch64__

enum { OF_A_RUN = 1 << 24, UPWARD = 1 << 22 }; /* bits of FPCR: flush to zero, round upward */

static uint64_t read_mode(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}

static void write_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }

#else

enum { OF_A_RUN = 0, UPWARD = 3 }; /* of RISC-V's rounding mode: to nearest, upward */

static uint64_t read_mode(void) {
  uint64_t mode;
  __asm__ volatile("frrm %0" : "=r"(mode));
  return mode;
}

static void write_mode(uint64_t mode) { __asm__ volatile("fsrm %0" ::"r"(mode)); }

#endif

static _Atomic int wrong_modes;

static void expect_mode(const Team *team) {
  (void)team;
  if (read_mode() != OF_A_RUN) wrong_modes++;
}

/* The caller rounds upward and, where there is a choice, keeps denormals; the schedule uses the mode of all modules, on
 * every worker. */
static bool mode_is_kept(Stream *it) {
  FakeCall call;
  fake_call_init(&call, FAKE_T, FAKE_B, 3);
  uint64_t saved = read_mode();
  write_mode(UPWARD);
  fake_hook = expect_mode;
  bool ran = fake_call_run(it->api, it->context, &call) == RNNCC_OK;
  fake_hook = NULL;
  uint64_t after = read_mode();
  write_mode(saved);
  return ran && after == UPWARD && wrong_modes == 0;
}

static void report(bool ok, int number, const char *what) {
  printf("%s %d - %s\n", ok ? "ok" : "not ok", number, what);
}

int main(void) {
  static FakeCall serial;
  bool opened = true, same = true, child = true, mode = true, stepwise = true;
  fake_call_init(&serial, FAKE_T, FAKE_B, 3);
  for (int threads = 1; threads <= THREADS; threads++) {
    Stream it = {0};
    if (!(opened &= stream_open(&it, threads, false))) break;
    if (threads == 1) opened &= fake_call_run(it.api, it.context, &serial) == RNNCC_OK;
    for (int i = 0; i < RUNS; i++) same &= run_gives(&it, &serial);
    child &= child_gives(&it, &serial);
    mode &= mode_is_kept(&it);
    stream_close(&it);
    if (threads == 1) continue;
    opened &= stream_open(&it, threads, true);
    for (int i = 0; i < RUNS; i++) stepwise &= run_gives(&it, &serial);
    stepwise &= mode_is_kept(&it) && steps == (RUNS + 1) * (2 * FAKE_T + 2) * (threads - 1);
    stream_close(&it);
  }
  bool lock = lock_is_free_in_a_child();
  printf("1..6\n");
  report(opened, 1, "models_open");
  report(opened && same, 2, "results_are_bit_identical_for_any_number_of_threads");
  report(opened && child, 3, "a_child_of_a_fork_runs_alone");
  report(opened && mode, 4, "the_callers_float_mode_is_kept_and_the_schedules_fixed");
  report(opened && stepwise, 5, "a_host_may_run_the_parts_of_a_run_one_by_one");
  report(lock, 6, "a_lock_that_the_parent_holds_is_free_in_a_child");
  return !(opened && same && child && mode && stepwise && lock);
}
