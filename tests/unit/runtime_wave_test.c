/* SPDX-License-Identifier: MIT */
/* The turns of a wavefront, for all small numbers of layers, steps and workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wave.h"

enum { MAX_LAYERS = 5, MAX_STEPS = 12, MAX_CHUNK = 5, MAX_WORKERS = 6 };

/* All workers' views of one wavefront, and what had run before this turn. */
typedef struct Front {
  int workers, turns;
  Wave wave[MAX_WORKERS];
  int64_t done[MAX_WORKERS][MAX_LAYERS], run[MAX_LAYERS];
} Front;

static void start(Front *front, int layers, int64_t steps, int64_t chunk, int workers) {
  *front = (Front){.workers = workers};
  for (int w = 0; w < workers; w++)
    front->wave[w] = (Wave){.layers = layers, .steps = steps, .chunk = chunk, .done = front->done[w]};
}

/* Each worker of a turn sees only what was there before the turn, as if the others were slower. */
static void check_turn(Front *front) {
  int64_t before[MAX_LAYERS];
  for (int l = 0; l < MAX_LAYERS; l++) before[l] = front->run[l];
  for (int w = 0; w < front->workers; w++) {
    const Wave *wave = &front->wave[w];
    if (wave->layer < 0) continue;
    assert_int_equal(wave->first, before[wave->layer]);
    assert_int_equal(front->run[wave->layer], before[wave->layer]); /* no other worker has this layer */
    assert_in_range(wave->count, 1, wave->chunk);
    if (wave->layer) assert_true(wave->first + wave->count <= before[wave->layer - 1]);
    front->run[wave->layer] += wave->count;
  }
}

static bool turn(Front *front) {
  bool more = false;
  for (int w = 0; w < front->workers; w++) {
    Team team = {.rank = w, .size = front->workers};
    bool own = wave_turn(&front->wave[w], &team);
    if (w) assert_int_equal(own, more);
    more = own;
  }
  front->turns += more;
  return more;
}

static void for_each_front(void (*check)(Front *front, int layers, int64_t steps, int64_t chunk)) {
  Front front;
  for (int layers = 2; layers <= MAX_LAYERS; layers++)
    for (int64_t steps = 1; steps <= MAX_STEPS; steps++)
      for (int64_t chunk = 1; chunk <= MAX_CHUNK; chunk++)
        for (int workers = 1; workers <= MAX_WORKERS; workers++) {
          start(&front, layers, steps, chunk, workers);
          check(&front, layers, steps, chunk);
        }
}

static void check_order(Front *front, int layers, int64_t steps, int64_t chunk) {
  (void)chunk;
  while (turn(front)) check_turn(front);
  for (int l = 0; l < layers; l++) assert_int_equal(front->run[l], steps);
}

static void every_layer_runs_all_steps_after_the_layer_before(void **state) {
  (void)state;
  for_each_front(check_order);
}

/* A worker rests only in the first or last turns, while the front has fewer chunks than workers. */
static void check_turns(Front *front, int layers, int64_t steps, int64_t chunk) {
  int64_t chunks = (steps + chunk - 1) / chunk, busy = front->workers < layers ? front->workers : layers;
  while (turn(front)) {
  }
  assert_true(front->turns <= (layers * chunks + busy - 1) / busy + 2 * (layers - 1));
}

static void workers_rest_only_where_the_front_begins_and_ends(void **state) {
  (void)state;
  for_each_front(check_turns);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layer_runs_all_steps_after_the_layer_before),
      cmocka_unit_test(workers_rest_only_where_the_front_begins_and_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
