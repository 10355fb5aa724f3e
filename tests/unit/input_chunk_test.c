/* SPDX-License-Identifier: MIT */
/* When a layer's product of its input with W is cut into chunks of steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/recurrent/input_chunk.h"

static const Machine machine = {.cores = 2, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};

static LayerCase lstm(int64_t units) {
  return (LayerCase){.directions = 1,
                     .weight = sizeof(float),
                     .takes_chunks = true,
                     .gates = 4,
                     .lanes = 16,
                     .inputs = units,
                     .hidden = units,
                     .panels = units / 16,
                     .panel_units = 16};
}

static int chunk_of(int64_t units, int64_t steps, int64_t batch) {
  LayerCase layer = lstm(units);
  layer.most_steps = steps;
  layer.most_batch = batch;
  return input_chunk(&machine, &layer);
}

static void one_sample_takes_all_steps(void **state) {
  (void)state;
  assert_int_equal(chunk_of(256, 100, 1), 0);
  assert_int_equal(chunk_of(1024, 100, 1), 0);
}

static void a_result_that_the_caches_keep_is_not_cut(void **state) {
  (void)state;
  assert_int_equal(chunk_of(64, 100, 10), 0);
  assert_int_equal(chunk_of(128, 100, 10), 0);
}

static void a_result_beyond_l2_is_cut_into_some_200_rows(void **state) {
  (void)state;
  assert_int_equal(chunk_of(256, 100, 10), 20);
  assert_int_equal(chunk_of(512, 100, 10), 20);
  assert_int_equal(chunk_of(256, 100, 8), 25);
}

static void so_is_a_result_beyond_l3(void **state) {
  (void)state;
  assert_int_equal(chunk_of(256, 1000, 10), 20);
}

/* 15 MB of weights are read for every 20 steps of a result of 11 MB, not of one of 110. */
static void unless_weights_fill_a_quarter_of_it(void **state) {
  (void)state;
  assert_int_equal(chunk_of(700, 100, 10), 20);
  assert_in_range(chunk_of(700, 1000, 10), 40, 60);
}

static void both_directions_make_twice_the_result(void **state) {
  (void)state;
  LayerCase layer = lstm(128);
  layer.most_steps = 100;
  layer.most_batch = 10;
  assert_int_equal(input_chunk(&machine, &layer), 0);
  layer.directions = 2;
  assert_int_equal(input_chunk(&machine, &layer), 20);
}

static void weights_that_fill_l3_are_not_read_for_every_chunk(void **state) {
  (void)state;
  assert_int_equal(chunk_of(1024, 100, 10), 0);
}

static void a_chunk_of_a_result_beyond_l3_is_a_sixth_of_l3(void **state) {
  (void)state;
  int chunk = chunk_of(800, 300, 20);
  assert_in_range(chunk * 4 * 3200 * 20, (32 << 20) / 7, (32 << 20) / 6);
  assert_int_equal(chunk_of(1024, 1000, 1024), 1);
}

static void layers_that_cannot_run_in_chunks_are_not_cut(void **state) {
  (void)state;
  LayerCase layer = lstm(256);
  layer.most_steps = 100;
  layer.most_batch = 10;
  layer.takes_chunks = false;
  assert_int_equal(input_chunk(&machine, &layer), 0);
}

static void a_chunk_is_a_step_at_least(void **state) {
  (void)state;
  assert_int_equal(chunk_of(512, 20, 1000), 1);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_sample_takes_all_steps),
      cmocka_unit_test(a_result_that_the_caches_keep_is_not_cut),
      cmocka_unit_test(a_result_beyond_l2_is_cut_into_some_200_rows),
      cmocka_unit_test(so_is_a_result_beyond_l3),
      cmocka_unit_test(unless_weights_fill_a_quarter_of_it),
      cmocka_unit_test(both_directions_make_twice_the_result),
      cmocka_unit_test(weights_that_fill_l3_are_not_read_for_every_chunk),
      cmocka_unit_test(a_chunk_of_a_result_beyond_l3_is_a_sixth_of_l3),
      cmocka_unit_test(layers_that_cannot_run_in_chunks_are_not_cut),
      cmocka_unit_test(a_chunk_is_a_step_at_least),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
