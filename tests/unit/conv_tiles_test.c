/* SPDX-License-Identifier: MIT */
/* The tiles of convolutions: what the cost model knows of their sums, chunks and caches, and that they fit in
 * registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "kernels/conv/candidates.h"
#include "kernels/conv/direct_plan.h"
#include "kernels/conv/winograd_plan.h"
#include "passes.h"

/* Expansions of MobileNet-v2, with one row of 14 columns in a tile: 196 pixels of 64 channels, and 49 of 160. */
static void cores_share_the_pixels_where_weights_are_light(void **state) {
  (void)state;
  Machine machine = machine_of(target_find("x86-64-v4"), false, 2);
  DirectLayer layer = {.images = 1, .depth = 64, .out_h = 1, .out_w = 196, .window_h = 1, .window_w = 1};
  DirectPlan all = {.oc_vectors = 2, .columns = 14}, some = {.oc_vectors = 2, .columns = 14, .tile_chunk = 4};
  assert_int_equal(direct_tile_chunk(&machine, &layer, &all), 7);
  assert_int_equal(direct_tile_chunk(&machine, &layer, &some), 4);
  layer.depth = 99;
  assert_int_equal(direct_tile_chunk(&machine, &layer, &all), 14);
  layer = (DirectLayer){.images = 1, .depth = 160, .out_h = 1, .out_w = 49, .window_h = 1, .window_w = 1};
  assert_int_equal(direct_tile_chunk(&machine, &layer, &all), 4);
  layer.images = 8;
  assert_int_equal(direct_tile_chunk(&machine, &layer, &all), 2);
}

/* Seconds of a deep 1x1 layer of so many vectors of kernels, on a core whose additions take four cycles, two at once.
 */
static double seconds_by_tiles(int vectors, int oc, int columns) {
  const Target *target = target_find("x86-64-v3");
  Machine machine = machine_of(target, false, 1);
  machine.fma_latency = 4;
  DirectLayer layer = {.images = 1,
                       .lanes = 8,
                       .in_block = 8,
                       .depth = 128,
                       .span = 16,
                       .oc_vectors = vectors,
                       .in_h = 1,
                       .in_w = 1200,
                       .out_h = 1,
                       .out_w = 1200,
                       .window_h = 1,
                       .window_w = 1,
                       .stride_h = 1,
                       .stride_w = 1,
                       .step = 1,
                       .taps = 1};
  DirectPlan plan = {.oc_vectors = oc, .columns = columns, .tile_chunk = 32};
  return direct_seconds(target, &machine, &layer, &plan);
}

/* On Zen 5, tiles of 8, 9, 10 and 12 sums were measured to reach 83, 87, 89 and 92% of the multiply-adds' peak;
 * those of one vector and 12 columns, which wait for loads, 64%. */
static void sums_wait_for_each_other_the_more_the_fewer_there_are(void **state) {
  (void)state;
  double twelve = seconds_by_tiles(60, 3, 4);
  assert_in_range(100 * seconds_by_tiles(60, 5, 2) / twelve, 101, 106);
  assert_in_range(100 * seconds_by_tiles(60, 3, 3) / twelve, 103, 109);
  assert_in_range(100 * seconds_by_tiles(60, 4, 2) / twelve, 107, 115);
  assert_in_range(100 * seconds_by_tiles(60, 1, 12) / twelve, 130, 150);
}

/* Of three vectors by twos one is alone, in tiles of six sums. */
static void the_last_group_of_few_vectors_counts(void **state) {
  (void)state;
  assert_true(seconds_by_tiles(3, 2, 6) > 1.1 * seconds_by_tiles(3, 3, 4));
  assert_true(seconds_by_tiles(4, 2, 6) < seconds_by_tiles(4, 4, 2));
}

/* Two cores of Zen 3, in whose L2 the input of the layers below has room. */
static Machine zen_3(int cores) {
  Machine machine = machine_of(target_find("x86-64-v3"), false, cores);
  machine.l1_bytes = 32 << 10;
  machine.l2_bytes = 512 << 10;
  machine.l3_gbps = 75;
  machine.barrier_ns = 135;
  return machine;
}

/* A 1x1 layer of MobileNet-v2, 192 channels of 14x14 pixels to 64, whose tiles have 6 pixels: 33 of them. */
static double seconds_by_chunks(const Machine *machine, int64_t tile_chunk) {
  DirectLayer layer = {.images = 1,
                       .lanes = 8,
                       .in_block = 8,
                       .depth = 192,
                       .span = 24,
                       .oc_vectors = 8,
                       .in_h = 1,
                       .in_w = 196,
                       .out_h = 1,
                       .out_w = 196,
                       .window_h = 1,
                       .window_w = 1,
                       .stride_h = 1,
                       .stride_w = 1,
                       .step = 1,
                       .taps = 1};
  DirectPlan plan = {.oc_vectors = 2, .columns = 6, .tile_chunk = tile_chunk};
  return direct_seconds(target_find("x86-64-v3"), machine, &layer, &plan);
}

/* In chunks of 32 of 33 tiles both cores read nearly all pixels: measured, such layers took 1.2 times as long as in
 * chunks of 16, and twice as long where the cores had no L3 in common. */
static void cores_that_meet_inside_a_chunk_read_each_others_input(void **state) {
  (void)state;
  Machine two = zen_3(2), apart = two, one = zen_3(1);
  apart.barrier_ns = 560;
  assert_in_range(100 * seconds_by_chunks(&two, 32) / seconds_by_chunks(&two, 16), 107, 130);
  assert_in_range(100 * seconds_by_chunks(&apart, 32) / seconds_by_chunks(&apart, 16), 140, 200);
  assert_in_range(100 * seconds_by_chunks(&one, 32) / seconds_by_chunks(&one, 16), 95, 105);
}

/* Microseconds of 960 depthwise convolutions of 7x7 pixels. */
static double depthwise_us(int cores) {
  Graph *graph = build_graph(arena);
  Machine machine = zen_3(cores);
  build_config(graph, "x86-64-v3")->machine = arena_copy(arena, &machine, sizeof machine);
  build_node(graph, "Conv", "f32[1,960,7,7] f32[960,1,3,3]!", "group=960 pads=[1,1,1,1]", 1);
  build_output(graph, graph->nodes[0]->outputs[0]);
  infer_shapes(graph);
  choose_layouts(graph);
  insert_layout_transforms(graph);
  Node *conv = producer_named(graph, "Conv");
  return 1e6 * convolution_choose(graph, conv, conv->layout)->seconds;
}

/* Measured: 10.0 us on one core, and no less on two, which take each other's cache lines. */
static void two_cores_are_no_faster_where_they_write_what_both_have_read(void **state) {
  (void)state;
  assert_in_range(depthwise_us(1), 8, 12);
  assert_in_range(depthwise_us(2), 8, 12);
}

static void expect_in_registers(void *argument, const DirectPlan *plan, bool usual) {
  (void)usual;
  int sums = plan->oc_vectors * plan->columns, weights = plan->oc_vectors, elements = 1;
  assert_true(sums + weights + elements <= *(const int *)argument);
}

/* An image of three channels fills no vector of NEON, whose multiply-adds take elements as lanes. */
static void elements_that_are_no_lanes_have_a_register(void **state) {
  (void)state;
  const Target *target = target_find("aarch64-linux-gnu");
  Machine machine = machine_of(target, false, 1);
  DirectLayer layer = {.images = 1,
                       .lanes = 4,
                       .in_block = 3,
                       .depth = 3,
                       .span = 1,
                       .oc_vectors = 16,
                       .in_h = 225,
                       .in_w = 225,
                       .out_h = 112,
                       .out_w = 112,
                       .window_h = 3,
                       .window_w = 3,
                       .stride_h = 2,
                       .stride_w = 2,
                       .step = 1,
                       .taps = 9};
  int registers = target->vector_registers;
  direct_each_plan(target, &machine, &layer, expect_in_registers, &registers);
}

/* Beside a part's sums: its weights, an element, and what clang keeps on SVE. */
static void parts_of_winograds_tiles_fit_in_registers(void **state) {
  (void)state;
  WinogradLayer layer = {.images = 1,
                         .out_h = 56,
                         .out_w = 56,
                         .tiles_known = true,
                         .channels = 64,
                         .kernels = 64,
                         .taps_h = 3,
                         .taps_w = 3};
  for (int t = 0; target_at(t); t++) {
    const Target *target = target_at(t);
    Machine machine = machine_of(target, false, 2);
    for (int oc = 1; oc <= 2; oc++) {
      Knobs knobs = {{[KNOB_winograd_tile] = 4, [KNOB_winograd_oc] = oc, [KNOB_winograd_parts] = 2}};
      WinogradPlan plan = winograd_plan(target, &machine, &layer, &knobs);
      assert_true(plan.part_tiles * oc + oc + 1 <= target->vector_registers - target->kept_registers);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cores_share_the_pixels_where_weights_are_light),
      cmocka_unit_test(sums_wait_for_each_other_the_more_the_fewer_there_are),
      cmocka_unit_test(the_last_group_of_few_vectors_counts),
      cmocka_unit_test(cores_that_meet_inside_a_chunk_read_each_others_input),
      cmocka_unit_test_setup_teardown(two_cores_are_no_faster_where_they_write_what_both_have_read, setup, teardown),
      cmocka_unit_test(elements_that_are_no_lanes_have_a_register),
      cmocka_unit_test(parts_of_winograds_tiles_fit_in_registers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
