/* SPDX-License-Identifier: MIT */
/* decompose: what operators become, and what that computes, where the values of a usual network would not tell right
 * from wrong. All else is compared with ONNX Runtime, tests/graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "steps.h"

static Graph *decomposed(const Steps steps) {
  Graph *graph = built_of(steps);
  decompose(graph);
  verify(graph);
  return graph;
}

static double nothing(int64_t i) { return (double)(0 * i); }
static double largest(int64_t i) { return (double)(255 + 0 * i); }
static double large(int64_t i) { return (double)(255 - i % 3); }
static double bytes(int64_t i) { return (double)(i * 37 % 256); }

/* ---- products of integers ---- */

/* x times itself, as a matrix and as a vector. Where a zero point is known at run time only, or B is a vector, no
 * kernel of bytes takes the product. */
#define SQUARES(x, row, column)                                                                                        \
  {{"Cast", x, "to=u8"},           {"Reshape", "@0 " row, ""},                                                         \
   {"Reshape", "@0 " column, ""},  {"Gather", "@0 i64(0)", ""},                                                        \
   {"BitwiseAnd", "@3 u8(0)", ""}, {"MatMulInteger", "@1 @2 _ @4", ""},                                                \
   {"MatMulInteger", "@1 @0", ""}, {"Add", "@5 @6", ""}}

static void expect_squares(const Steps steps, int length) {
  Graph *graph = decomposed(steps);
  assert_int_equal(count_nodes(graph, "MatMulInteger"), 0);
  assert_true(tensor_get(run_on(graph, largest), 0) == 2.0 * length * 255 * 255);
}

/* 601 * 255 * 255 is odd, and more than f32 holds odd numbers of. */
static void sums_of_integers_beyond_f32_are_exact(void **state) {
  (void)state;
  static const Steps squares = SQUARES("f32[601]", "i64=1,601", "i64=601,1");
  expect_squares(squares, 601);
}

/* T may be 400, too much for f32, and is 5. No parts are cut off that would mostly be empty. */
static void lengths_of_the_run_may_be_short(void **state) {
  (void)state;
  static const Steps squares = SQUARES("f32[T]", "i64=1,-1", "i64=-1,1");
  assert_int_equal(count_nodes(decomposed(squares), "Slice"), 0);
  expect_squares(squares, 5);
}

/* x is also the weights, of 2 kernels a group. */
static void groups_of_a_convolution_are_split_along_their_channels(void **state) {
  (void)state;
  enum { GROUPS = 3, CHANNELS = 40, POINTS = 9, KERNEL = CHANNELS * POINTS };
  static const Steps conv = {{"Cast", "f32[2,120,3,3]", "to=u8"},
                             {"Slice", "@0", "axes=[0] starts=[0] ends=[1]"},
                             {"Reshape", "@0 i64=6,40,3,3", ""},
                             {"ConvInteger", "@1 @2", "group=3"}};
  const Tensor *y = run_on(decomposed(conv), large);
  assert_int_equal(tensor_count(y), 2 * GROUPS);
  for (int kernel = 0; kernel < 2 * GROUPS; kernel++) {
    double sum = 0;
    for (int i = 0; i < KERNEL; i++) sum += large(kernel / 2 * KERNEL + i) * large(kernel * KERNEL + i);
    assert_true(sum > 0x1p24 && tensor_get(y, kernel) == sum);
  }
}

/* ---- quantised numbers ---- */

static void a_part_in_the_result_s_scale_is_copied(void **state) {
  (void)state;
  static const Steps steps = {
      {"Cast", "f32[2,3]", "to=u8"},
      {"QLinearConcat", "f32(0.5) u8(3) @0 f32(0.5) u8(3) @0 f32(0.25) u8(3) @0 f32(0.5) u8(4)", "axis=1"}};
  Graph *graph = decomposed(steps);
  const Node *concat = producer_named(graph, "Concat");
  const Value *numbers = producer_named(graph, "Cast")->outputs[0];
  assert_ptr_equal(concat->inputs[0], numbers);
  assert_ptr_not_equal(concat->inputs[1], numbers);
  assert_ptr_not_equal(concat->inputs[2], numbers);
}

/* Half a byte of a block's number, the lower one first. */
static int nibble(int byte, int64_t i) { return byte >> (i % 2 ? 4 : 0) & 15; }

/* Weights that only the run knows, x; rows of an odd number of zero points fill a byte. */
static void expect_blocks(const char *steps[3], int N, int blocks) {
  enum { BLOCK = 16 };
  Graph *graph = build_graph(arena);
  build_node(graph, "Cast", steps[0], "to=u8", 1);
  build_node(graph, "MatMulNBits", steps[1], steps[2], 1);
  build_end(graph);
  decompose(graph);
  verify(graph);
  const Tensor *y = run_on(graph, bytes);
  int row_bytes = (blocks + 1) / 2;
  for (int n = 0; n < N; n++) {
    double sum = 0;
    for (int k = 0; k < blocks * BLOCK; k++) {
      int b = k / BLOCK, zero = nibble(1 + n * row_bytes + b / 2, b);
      int number = nibble((int)bytes((n * blocks * BLOCK + k) / 2), k);
      sum += (double)(k + 1) * (number - zero) * (n * blocks + b + 1);
    }
    assert_true(tensor_get(y, n) == sum);
  }
}

static void rows_of_zero_points_begin_with_a_byte(void **state) {
  (void)state;
  expect_blocks((const char *[]){"f32[3,3,8]", "f32[1,48]! @0 f32[9]! u8[6]!", "K=48 N=3 bits=4 block_size=16"}, 3, 3);
  expect_blocks((const char *[]){"f32[3,1,8]", "f32[1,16]! @0 f32[3]! u8[3]!", "K=16 N=3 bits=4 block_size=16"}, 3, 1);
  expect_blocks((const char *[]){"f32[2,3,8]", "f32[1,48]! @0 f32[6]! u8[4]!", "K=48 N=2 bits=4 block_size=16"}, 2, 3);
}

/* ---- functions ---- */

static void windows_are_sums_of_cosines(void **state) {
  (void)state;
  static const struct {
    Steps steps;
    double a0, a1, a2;
  } windows[] = {
      {{{"HannWindow", "i64(8)", "periodic=0"}, {"Add", "f32[8] @0", ""}}, 0.5, 0.5, 0},
      {{{"HammingWindow", "i64(8)", "periodic=0"}, {"Add", "f32[8] @0", ""}}, 25.0 / 46, 21.0 / 46, 0},
      {{{"BlackmanWindow", "i64(8)", "periodic=0"}, {"Add", "f32[8] @0", ""}}, 0.42, 0.5, 0.08},
  };
  for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
    const Tensor *y = run_on(decomposed(windows[w].steps), nothing);
    for (int i = 0; i < 8; i++) {
      double angle = 2 * M_PI * i / 7,
             due = windows[w].a0 - windows[w].a1 * cos(angle) + windows[w].a2 * cos(2 * angle);
      assert_true(fabs(tensor_get(y, i) - due) < 0x1p-23);
    }
  }
}

/* The mel scale's, 2595 log10(1 + f / 700): FILTERS + 2 steps of equal size from 0 to 4000 Hz. */
static int64_t bin_of_edge(int edge, int filters) {
  double mel = 2595 * log10(1 + 4000.0 / 700) * edge / (filters + 2);
  return (int64_t)floor(65 * 700 * (pow(10, mel / 2595) - 1) / 8000);
}

static void filters_of_mel_are_triangles_between_neighbours(void **state) {
  (void)state;
  enum { FILTERS = 5, BINS = 33 };
  static const Steps steps = {{"MelWeightMatrix", "i64(5) i64(64) i64(8000) f32(0) f32(4000)", ""},
                              {"Add", "f32[33,5] @0", ""}};
  const Tensor *y = run_on(decomposed(steps), nothing);
  assert_int_equal(tensor_count(y), BINS * FILTERS);
  for (int filter = 0; filter < FILTERS; filter++) {
    int64_t low = bin_of_edge(filter, FILTERS), peak = bin_of_edge(filter + 1, FILTERS),
            high = bin_of_edge(filter + 2, FILTERS);
    for (int bin = 0; bin < BINS; bin++) {
      double rising = (double)(bin - low) / (double)(peak - low),
             falling = (double)(high - bin) / (double)(high - peak);
      double due = bin < low || bin >= high ? 0 : bin < peak ? rising : falling;
      assert_true(fabs(tensor_get(y, bin * FILTERS + filter) - due) < 0x1p-23);
    }
  }
}

static void a_split_gelu_has_two_halves(void **state) {
  (void)state;
  static const Steps one = {{"BiasSplitGelu", "f32[2,3,8] f32[8]!", ""}},
                     written = {{"Add", "f32[2,3,8] f32[8]!", ""},
                                {"Slice", "@0", "axes=[2] starts=[0] ends=[4]"},
                                {"Slice", "@0", "axes=[2] starts=[4] ends=[8]"},
                                {"Gelu", "@2", ""},
                                {"Mul", "@1 @3", ""}};
  expect_within(run_on_integers(decomposed(one), -6), run_on_integers(decomposed(written), -6), 0);
}

static int exponentials_of_f64(const char *attributes) {
  const char *inputs = "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]";
  Graph *graph = decomposed((const Steps){{"Attention", inputs, attributes}});
  int found = 0;
  for (int n = 0; n < graph->n_nodes; n++)
    found += is_op(graph->nodes[n], OP_Exp) && graph->nodes[n]->outputs[0]->dtype == RNNCC_F64;
  return found;
}

static void softmax_is_of_the_precision_that_is_asked_for(void **state) {
  (void)state;
  assert_int_equal(exponentials_of_f64("softmax_precision=f64"), 1);
  assert_int_equal(exponentials_of_f64("softmax_precision=f32"), 0);
  assert_int_equal(exponentials_of_f64(""), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(sums_of_integers_beyond_f32_are_exact),
      TEST(lengths_of_the_run_may_be_short),
      TEST(groups_of_a_convolution_are_split_along_their_channels),
      TEST(a_part_in_the_result_s_scale_is_copied),
      TEST(rows_of_zero_points_begin_with_a_byte),
      TEST(windows_are_sums_of_cosines),
      TEST(filters_of_mel_are_triangles_between_neighbours),
      TEST(a_split_gelu_has_two_halves),
      TEST(softmax_is_of_the_precision_that_is_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
