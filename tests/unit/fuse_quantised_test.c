/* SPDX-License-Identifier: MIT */
/* fuse_quantised: QuantizeLinear and DequantizeLinear around operators become operators of small integers. Scales are
 * powers of two and numbers are small, so that f32 holds every sum: the result is the same bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../support/simplify.h"
#include "steps.h"

/* After fusing and in a row, one name for each node that is left, as "QuantizeLinear QLinearConv". */
static const char *names_of(const Graph *graph) {
  Text names = text_new(arena);
  for (int n = 0; n < graph->n_nodes; n++) text_add(&names, n ? " %s" : "%s", graph->nodes[n]->op->name);
  return names.data;
}

static double spread(int64_t i) { return (double)(i * 37 % 101 - 50) / 4; }

static const Tensor *computed(Graph *graph) {
  decompose(graph);
  verify(graph);
  return run_on(graph, spread);
}

static void expect_fused_for(const char *target, const Steps steps, const char *left) {
  const Tensor *before = computed(built_of(steps));
  Graph *graph = built_of(steps);
  build_config(graph, target);
  fuse_quantised(graph);
  verify(graph);
  const char *names = names_of(graph);
  if (strcmp(names, left) != 0) fail_msg("%s ... %s: %s is left, not %s", steps[0][0], steps[2][0], names, left);
  const Tensor *after = computed(graph);
  assert_int_equal(before->dtype, after->dtype);
  assert_memory_equal(before->shape, after->shape, sizeof before->shape);
  for (int64_t i = 0; i < tensor_count(before); i++)
    if (tensor_get(before, i) != tensor_get(after, i))
      fail_msg("%s: element %lld is %g, not %g", names, (long long)i, tensor_get(after, i), tensor_get(before, i));
}

static void expect_fused(const Steps steps, const char *left) { expect_fused_for("x86-64-v3", steps, left); }

#define IN(x) {"QuantizeLinear", x " f32(0.25) u8(130)", ""}, {"DequantizeLinear", "@0 f32(0.25) u8(130)", ""}
#define OUT(x) {"QuantizeLinear", x " f32(16) i8(3)", ""}

static void products_take_the_numbers(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[1,3,6,5]"),
                       {"DequantizeLinear", "i8[2,3,3,3]! f32=0.5,0.25 i8=0,0", "axis=0"},
                       {"Conv", "@1 @2", "pads=[1,1,1,1]"},
                       OUT("@3")},
               "QuantizeLinear QLinearConv");
  expect_fused((Steps){IN("f32[1,3,6,5]"),
                       {"DequantizeLinear", "i8[2,3,3,3]! f32(0.5) i8(1)", ""},
                       {"DequantizeLinear", "i32=100,-300 f32(0.125)", ""},
                       {"Conv", "@1 @2 @3", ""},
                       {"Relu", "@4", ""},
                       OUT("@5")},
               "QuantizeLinear QLinearConv Clip");
  expect_fused((Steps){IN("f32[1,3,6]"),
                       {"DequantizeLinear", "u8[2,3,3]! f32(0.5) u8(9)", ""},
                       {"Conv", "@1 @2 f32=1.5,-8", "strides=[2]"},
                       OUT("@3")},
               "QuantizeLinear QLinearConv");
  expect_fused((Steps){IN("f32[4,6]"),
                       {"DequantizeLinear", "i8[6,3]! f32=0.5,1,0.25", "axis=1"},
                       {"MatMul", "@1 @2", ""},
                       OUT("@3")},
               "QuantizeLinear QLinearMatMul");
  expect_fused((Steps){IN("f32[4,6]"),
                       {"DequantizeLinear", "i8[3,6]! f32=0.5,1,0.25", "axis=0"},
                       {"Gemm", "@1 @2 f32=1,2,-3", "transB=1 alpha=2 beta=0.5"},
                       OUT("@3")},
               "QuantizeLinear QGemm");
}

static void weights_are_found_behind_what_moves_them(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[4,6]"),
                       {"DequantizeLinear", "i8[3,6]! f32=0.5,1,0.25", "axis=0"},
                       {"Transpose", "@2", ""},
                       {"MatMul", "@1 @3", ""},
                       OUT("@4")},
               "QuantizeLinear QLinearMatMul");
  expect_fused((Steps){IN("f32[1,3,6]"),
                       {"QuantizeLinear", "f32[2,3,3]! f32(0.5) i8(0)", ""},
                       {"DequantizeLinear", "@2 f32(0.5) i8(0)", ""},
                       {"Conv", "@1 @3", ""},
                       OUT("@4")},
               "QuantizeLinear QLinearConv");
}

static void convolutions_in_floats_are_of_exact_sums_where_bytes_have_dot_products(void **state) {
  (void)state;
  const Steps steps = {IN("f32[1,3,6]"),
                       {"DequantizeLinear", "i8[2,3,3]! f32=0.5,2 i8=0,0", "axis=0"},
                       {"Conv", "@1 @2 f32=1.5,-8", "group=1"}};
  expect_fused_for("x86-64-v3", steps, "QuantizeLinear DequantizeLinear Conv");
  expect_fused_for("x86-64-v3+vnni", steps, "QuantizeLinear ConvIntegerToFloat");
}

static void matrix_products_in_floats_are_of_exact_sums(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[2,4,6]"), {"DequantizeLinear", "i8[6,3]! f32(0.5) i8(0)", ""}, {"MatMul", "@1 @2", ""}},
               "QuantizeLinear MatMulIntegerToFloat");
  expect_fused(
      (Steps){IN("f32[4,6]"), {"DequantizeLinear", "i8[6,3]! f32(0.5) i8(0)", ""}, {"Gemm", "@1 @2 f32=1,2,3", ""}},
      "QuantizeLinear QGemm Add");
}

static void means_take_the_numbers(void **state) {
  (void)state;
  static const char global[] = "QuantizeLinear QLinearGlobalAveragePool";
  expect_fused((Steps){IN("f32[1,3,2,4]"), {"GlobalAveragePool", "@1", ""}, {"QuantizeLinear", "@2 f32(1) u8(4)", ""}},
               global);
  expect_fused((Steps){IN("f32[1,3,2,4]"),
                       {"ReduceMean", "@1 i64=-1,2", "keepdims=1"},
                       {"QuantizeLinear", "@2 f32(1) u8(4)", ""}},
               global);
  expect_fused((Steps){IN("f32[1,3,2,4]"),
                       {"ReduceMean", "@1 i64=2,3", "keepdims=0"},
                       {"QuantizeLinear", "@2 f32(1) u8(4)", ""}},
               "QuantizeLinear QLinearGlobalAveragePool Reshape");
  expect_fused((Steps){IN("f32[1,3,6,8]"),
                       {"AveragePool", "@1", "kernel_shape=[2,2] strides=[2,2]"},
                       {"QuantizeLinear", "@2 f32(1) u8(4)", ""}},
               "QuantizeLinear QLinearAveragePool");
}

static void a_sum_with_what_a_convolution_writes_takes_the_numbers(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[1,2,6]"),
                       {"DequantizeLinear", "i8[2,2,1]! f32(0.5) i8(0)", ""},
                       {"Conv", "@1 @2", ""},
                       {"QuantizeLinear", "@3 f32(1) u8(100)", ""},
                       {"DequantizeLinear", "@4 f32(1) u8(100)", ""},
                       {"Add", "@1 @5", ""},
                       {"Relu", "@6", ""},
                       {"QuantizeLinear", "@7 f32(2) u8(0)", ""}},
               "QuantizeLinear QLinearConv QLinearAdd");
  expect_fused((Steps){IN("f32[1,2,6]"), {"Add", "@1 @1", ""}, {"QuantizeLinear", "@2 f32(2) u8(100)", ""}},
               "QuantizeLinear DequantizeLinear Add QuantizeLinear");
}

static void the_reference_of_a_sum_is_its_formula(void **state) {
  (void)state;
  static const Steps steps = {{"Clip", "f32[2,3,50] f32(0) f32(255)", ""},
                              {"Round", "@0", ""},
                              {"Cast", "@1", "to=u8"},
                              {"QLinearAdd", "@2 f32(0.37) u8(3) @2 f32(1.9) u8(7) f32(0.7) u8(9)", ""}};
  const Tensor *whole = run_on(built_of(steps), spread), *formula = computed(built_of(steps));
  assert_int_equal(whole->dtype, formula->dtype);
  assert_memory_equal(whole->data, formula->data, (size_t)tensor_count(whole));
}

static void a_batch_normalisation_between_numbers_is_a_product_and_a_sum(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[1,3,6]"),
                       {"BatchNormalization", "@1 f32=1,2,0.5 f32=4,-8,1 f32=1,2,-4 f32=4,4,0.25", "epsilon=0"},
                       {"Relu", "@2", ""},
                       {"QuantizeLinear", "@3 f32(0.5) u8(0)", ""}},
               "QuantizeLinear DequantizeLinear Mul Add QuantizeLinear");
  expect_fused((Steps){IN("f32[1,3,6]"),
                       {"BatchNormalization", "@1 f32=1,2,0.5 f32=4,-8,1 f32=1,2,-4 f32=4,4,0.25", "epsilon=0"}},
               "QuantizeLinear DequantizeLinear BatchNormalization");
}

#define SAME(x) {"QuantizeLinear", x " f32(0.25) u8(130)", ""}

static void what_moves_or_compares_numbers_needs_no_floats(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[1,3,6,4]"), {"MaxPool", "@1", "kernel_shape=[2,2]"}, SAME("@2")},
               "QuantizeLinear MaxPool");
  expect_fused((Steps){IN("f32[1,3,6,4]"),
                       {"Reshape", "@1 i64=3,24", ""},
                       {"Transpose", "@2", ""},
                       {"Slice", "@3 i64=1 i64=20 i64=0", ""},
                       {"Pad", "@4 i64=1,0,0,2", ""},
                       SAME("@5")},
               "QuantizeLinear Reshape Transpose Slice Pad");
  expect_fused((Steps){IN("f32[1,3,4,4]"),
                       {"Resize", "@1 _ f32=1,1,2,2", "coordinate_transformation_mode=asymmetric nearest_mode=floor"},
                       SAME("@2")},
               "QuantizeLinear Resize");
  expect_fused((Steps){IN("f32[5,7]"), {"Gather", "@1 i64=3,1,1", "axis=1"}, SAME("@2")}, "QuantizeLinear Gather");
  expect_fused((Steps){IN("f32[5,7]"), {"Relu", "@1", ""}, SAME("@2")}, "QuantizeLinear Clip");
  expect_fused((Steps){IN("f32[5,7]"), {"Clip", "@1 f32(-1.1) f32(2.6)", ""}, SAME("@2")}, "QuantizeLinear Clip");
  expect_fused((Steps){IN("f32[5,7]"), {"Clip", "@1 f32(-99) f32(99)", ""}, SAME("@2")}, "QuantizeLinear");
  expect_fused((Steps){IN("f32[1,2,6]"), {"Concat", "@1 @1", "axis=1"}, SAME("@2")}, "QuantizeLinear Concat");
}

static void other_parameters_are_one_requantisation_before_what_moves(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[5,7]"), {"Transpose", "@1", ""}, OUT("@2")},
               "QuantizeLinear Transpose DequantizeLinear QuantizeLinear");
  expect_fused((Steps){IN("f32[1,2,6]"),
                       {"QuantizeLinear", "f32[1,3,6]! f32(0.25) u8(0)", ""},
                       {"DequantizeLinear", "@2 f32(0.25) u8(0)", ""},
                       {"Concat", "@1 @3", "axis=1"},
                       SAME("@4")},
               "QuantizeLinear QuantizeLinear Concat");
  expect_fused((Steps){IN("f32[1,3,6]"),
                       {"DequantizeLinear", "i8[2,3,3]! f32(0.5) i8(0)", ""},
                       {"Conv", "@1 @2", ""},
                       {"Relu", "@3", ""},
                       {"MaxPool", "@4", "kernel_shape=[2]"},
                       {"Flatten", "@5", ""},
                       OUT("@6")},
               "QuantizeLinear QLinearConv Clip MaxPool Flatten");
}

static void what_is_not_the_same_stays(void **state) {
  (void)state;
  expect_fused((Steps){IN("f32[5,7]"), {"Pad", "@1 i64=1,0,0,2 f32(1.5)", ""}, SAME("@2")}, "QuantizeLinear Pad");
  expect_fused((Steps){IN("f32[1,3,4]"),
                       {"Resize", "@1 _ f32=1,1,2", "mode=linear coordinate_transformation_mode=asymmetric"},
                       SAME("@2")},
               "QuantizeLinear DequantizeLinear Resize QuantizeLinear");
  expect_fused((Steps){IN("f32[1,3,6]"), {"Conv", "@1 f32[2,3,3]!", ""}, OUT("@2")},
               "QuantizeLinear DequantizeLinear Conv QuantizeLinear");
  expect_fused((Steps){IN("f32[4,3]"),
                       {"DequantizeLinear", "i8[3,6]! f32=0.5,1,0.25", "axis=0"},
                       {"MatMul", "@1 @2", ""},
                       OUT("@3")},
               "QuantizeLinear DequantizeLinear MatMul QuantizeLinear");
  expect_fused((Steps){{"Sigmoid", "f32[5,7]", ""}, {"Transpose", "@0", ""}, OUT("@1")},
               "Sigmoid Transpose QuantizeLinear");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(products_take_the_numbers),
      TEST(weights_are_found_behind_what_moves_them),
      TEST(convolutions_in_floats_are_of_exact_sums_where_bytes_have_dot_products),
      TEST(matrix_products_in_floats_are_of_exact_sums),
      TEST(means_take_the_numbers),
      TEST(a_sum_with_what_a_convolution_writes_takes_the_numbers),
      TEST(a_batch_normalisation_between_numbers_is_a_product_and_a_sum),
      TEST(the_reference_of_a_sum_is_its_formula),
      TEST(what_moves_or_compares_numbers_needs_no_floats),
      TEST(other_parameters_are_one_requantisation_before_what_moves),
      TEST(what_is_not_the_same_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
