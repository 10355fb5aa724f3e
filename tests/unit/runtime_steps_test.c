/* SPDX-License-Identifier: MIT */
/*
 * A host's parallel_for that runs the bodies in whatever order, on whatever threads: a run is then cut into steps at
 * its barriers. Also built with ThreadSanitizer.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/sanitized.h"
#include "fiber.h"
#include "float_mode.h"
#include "pool.h"
#include "runtime_fake.h"

enum { MAX_TEAM = 40 };

/* ---- hosts: how one runs the bodies of a step ---- */

typedef struct Host {
  int steps;
  unsigned seed;
} Host;

typedef void Body(void *arg, int index);

static void in_order(void *host, int n, Body *body, void *arg) {
  ((Host *)host)->steps++;
  for (int i = 0; i < n; i++) body(arg, i);
}

static void backwards(void *host, int n, Body *body, void *arg) {
  ((Host *)host)->steps++;
  while (n-- > 0) body(arg, n);
}

static void at_random(void *host, int n, Body *body, void *arg) {
  Host *it = host;
  int order[MAX_TEAM];
  it->steps++;
  for (int i = 0; i < n; i++) {
    it->seed = it->seed * 1103515245 + 12345;
    int at = (int)(it->seed >> 16) % (i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (int i = 0; i < n; i++) body(arg, order[i]);
}

/* Two threads that take one body after the other: which has which, nobody knows. */
typedef struct Crowd {
  Body *body;
  void *arg;
  int n;
  _Atomic int next;
} Crowd;

static void *take_bodies(void *arg) {
  Crowd *crowd = arg;
  for (int i; (i = crowd->next++) < crowd->n;) crowd->body(crowd->arg, i);
  return NULL;
}

static void by_two_threads(void *host, int n, Body *body, void *arg) {
  Crowd crowd = {body, arg, n, 0};
  pthread_t other;
  ((Host *)host)->steps++;
  assert_int_equal(pthread_create(&other, NULL, take_bodies, &crowd), 0);
  take_bodies(&crowd);
  pthread_join(other, NULL);
}

static const rnncc_parallel_for hosts[] = {in_order, backwards, at_random, by_two_threads};
enum { HOSTS = sizeof hosts / sizeof *hosts };

static Pool *pool_by_steps(int threads, rnncc_parallel_for parallel_for, Host *host) {
  *host = (Host){.seed = 1};
  Pool *pool = pool_create(&(rnncc_options){.struct_size = sizeof(rnncc_options),
                                            .threads = threads,
                                            .parallel_for = parallel_for,
                                            .host = host,
                                            .by_steps = 1},
                           0);
  assert_non_null(pool);
  return pool;
}

/* ---- barriers ---- */

/* Each round, every rank adds its neighbours' numbers of the round before: wrong if a step begins before the last one
 * has ended. Odd rounds meet by the barrier's halves. Sums are in registers across barriers, too. */
enum { ROUNDS = 30 };

typedef struct Sums {
  uint32_t cells[2][MAX_TEAM], kept[MAX_TEAM];
} Sums;

static void next_round(const uint32_t *from, uint32_t *to, int rank, int n) {
  to[rank] = from[rank] + 3 * from[(rank + 1) % n] + 5 * from[(rank + n - 1) % n];
}

static void add_neighbours(void *arg, Team *team) {
  Sums *sums = arg;
  uint32_t kept = (uint32_t)team->rank;
  double kept_too = team->rank;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t *to = sums->cells[(round + 1) % 2];
    next_round(sums->cells[round % 2], to, team->rank, team->size);
    kept = kept * 31 + to[team->rank];
    kept_too += 1;
    if (round % 2) {
      team_arrive(team);
      kept++;
      team_meet(team);
    } else {
      team_barrier(team);
    }
  }
  sums->kept[team->rank] = kept + (uint32_t)kept_too;
}

static void expect_sums(const Sums *got, int n) {
  Sums sums = {.cells = {{1, 2, 3}}};
  for (int rank = 0; rank < n; rank++) sums.kept[rank] = (uint32_t)rank;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t *to = sums.cells[(round + 1) % 2];
    for (int rank = 0; rank < n; rank++) {
      next_round(sums.cells[round % 2], to, rank, n);
      sums.kept[rank] = sums.kept[rank] * 31 + to[rank] + (uint32_t)(round % 2);
    }
  }
  for (int rank = 0; rank < n; rank++) sums.kept[rank] += (uint32_t)(rank + ROUNDS);
  assert_memory_equal(got, &sums, sizeof sums);
}

static void any_order_on_any_threads_will_do(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8, 17, MAX_TEAM};
  for (int h = 0; h < HOSTS; h++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      Host host;
      Pool *pool = pool_by_steps(sizes[s], hosts[h], &host);
      for (int i = 1; i <= 5; i++) {
        Sums sums = {.cells = {{1, 2, 3}}};
        pool_run(pool, (Turn){0}, add_neighbours, &sums);
        expect_sums(&sums, sizes[s]);
        assert_int_equal(host.steps, i * (ROUNDS + 1));
      }
      pool_destroy(pool);
    }
}

static void do_nothing(void *arg, Team *team) { ((int *)arg)[team->rank]++; }

/* Thousands of regions use the same stacks, and leave nothing on them. */
static void regions_follow_each_other(void **state) {
  (void)state;
  Host host;
  int visits[3] = {0};
  int regions = SANITIZED ? 20000 : 100000; /* more than ThreadSanitizer has room for calls that never return */
  Pool *pool = pool_by_steps(3, backwards, &host);
  for (int i = 0; i < regions; i++) pool_run(pool, (Turn){0}, do_nothing, visits);
  assert_int_equal(host.steps, regions);
  for (int rank = 0; rank < 3; rank++) assert_int_equal(visits[rank], regions);
  pool_destroy(pool);
}

/* ---- the floating-point mode ---- */

static volatile float small = 0x1p-126f;

static bool flushes(void) {
  volatile float denormal = small;
  denormal = denormal / 4;
  return denormal == 0;
}

static int kept_denormals;

static void count_denormals(void *arg, Team *team) {
  (void)arg;
  FloatMode mode = float_mode_enter();
  for (int i = 0; i < 5; i++) {
    if (!flushes()) kept_denormals++;
    team_barrier(team);
  }
  float_mode_leave(mode);
}

static int flushed_outside;

static void in_order_with_a_look(void *host, int n, Body *body, void *arg) {
  (void)host;
  for (int i = 0; i < n; i++) {
    body(arg, i);
    flushed_outside += flushes();
  }
}

static void the_mode_is_the_runs_inside_and_the_hosts_outside(void **state) {
  (void)state;
  Host host;
  Pool *pool = pool_by_steps(3, in_order_with_a_look, &host);
  kept_denormals = flushed_outside = 0;
  pool_run(pool, (Turn){0}, count_denormals, NULL);
  assert_int_equal(kept_denormals, 0);
  assert_int_equal(flushed_outside, 0);
  pool_destroy(pool);
}

/* ---- models ---- */

static const rnncc_api *here(void) { return rnncc_module_query(RNNCC_ABI, NULL); }

static void run_model(rnncc_options options, FakeCall *call) {
  rnncc_model *model;
  rnncc_context *context;
  const char *why = "";
  options.struct_size = sizeof options;
  fake_call_init(call, FAKE_T, FAKE_B, 3);
  assert_int_equal(here()->model_create(&options, &model, &why), RNNCC_OK);
  assert_int_equal(here()->context_create(model, NULL, 0, &context, &why), RNNCC_OK);
  assert_int_equal(here()->warmup(context), RNNCC_OK);
  assert_int_equal(fake_call_run(here(), context, call), RNNCC_OK);
  here()->context_destroy(context);
  here()->model_destroy(model);
}

/* Of its own, and by a pool that they share: the same bits as on one thread. The fake's run has 2 T + 1 barriers. */
static void models_compute_the_same_by_steps(void **state) {
  (void)state;
  FakeCall alone, call;
  run_model((rnncc_options){.threads = 1}, &alone);
  for (int h = 0; h < HOSTS; h++) {
    Host host = {.seed = 5};
    rnncc_pool *pool;
    rnncc_options options = {
        .struct_size = sizeof options, .threads = 3, .parallel_for = hosts[h], .host = &host, .by_steps = 1};
    run_model(options, &call);
    assert_memory_equal(call.y, alone.y, sizeof call.y);
    assert_int_equal(host.steps, 1 + 2 * FAKE_T + 2);
    assert_int_equal(here()->pool_create(&options, &pool, NULL), RNNCC_OK);
    assert_int_equal(pool->by_steps, 1);
    run_model((rnncc_options){.pool = pool, .waits = 1}, &call);
    here()->pool_destroy(pool);
    assert_memory_equal(call.last, alone.last, sizeof call.last);
    assert_memory_equal(call.y, alone.y, sizeof call.y);
    assert_int_equal(host.steps, 2 * (1 + 2 * FAKE_T + 2));
  }
}

/* A region that finds the stacks in use is done alone. */
typedef struct Nested {
  Pool *pool;
  int inner;
} Nested;

static void note_size(void *arg, Team *team) { *(int *)arg = team->size; }

static void call_again(void *arg, Team *team) {
  Nested *it = arg;
  if (team->rank == 1) pool_run(it->pool, (Turn){0}, note_size, &it->inner);
  team_barrier(team);
}

static void a_region_within_a_region_is_done_alone(void **state) {
  (void)state;
  Host host;
  Nested it = {.pool = pool_by_steps(3, in_order, &host)};
  pool_run(it.pool, (Turn){0}, call_again, &it);
  assert_int_equal(it.inner, 1);
  pool_destroy(it.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_order_on_any_threads_will_do),
      cmocka_unit_test(regions_follow_each_other),
      cmocka_unit_test(the_mode_is_the_runs_inside_and_the_hosts_outside),
      cmocka_unit_test(models_compute_the_same_by_steps),
      cmocka_unit_test(a_region_within_a_region_is_done_alone),
  };
  return cmocka_run_group_tests_name("runtime_steps", tests, NULL, NULL);
}
