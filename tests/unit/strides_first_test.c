/* SPDX-License-Identifier: MIT */
/* strides_first: which convolutions take over the strides of the 1x1 convolutions behind them. All sums are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shapes/shape.h"
#include "steps.h"

/* The ops in order; windows with their strides: "Conv2,2 Relu Conv1,1". */
static const char *form_of(Graph *graph) {
  Text text = text_new(arena);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    text_add(&text, "%s%s", n ? " " : "", node->op->name);
    Window window;
    bool windows = is_op(node, OP_Conv) || is_op(node, OP_MaxPool);
    if (!windows || !read_window(graph, node, &window)) continue;
    for (int i = 0; i < window.n_spatial; i++) text_add(&text, "%s%d", i ? "," : "", (int)window.stride[i]);
  }
  return text.data;
}

static void expect(const Steps steps, const char *form) {
  Graph *graph = built_of(steps);
  strides_first(graph);
  verify(graph);
  assert_string_equal(form_of(graph), form);
  const Tensor *before = run_on_integers(built_of(steps), -3), *after = run_on_integers(graph, -3);
  assert_memory_equal(before->shape, after->shape, sizeof before->shape);
  assert_memory_equal(before->data, after->data, (size_t)tensor_count(before) * sizeof(float));
}

#define READER(x) {"Conv", x " f32[2,4,1,1]!", "strides=[2,2]"}

static void a_stride_goes_to_the_convolution_before(void **state) {
  (void)state;
  static const Steps odd = {{"Conv", "f32[B,3,7,9] f32[4,3,3,3]! f32=1,2,3,4", "pads=[1,1,1,1]"}, READER("@0")};
  expect(odd, "Conv2,2 Conv1,1");
  static const Steps even = {
      {"Conv", "f32[1,3,6,8] f32[4,3,3,3]!", "pads=[1,1,1,1]"}, {"Relu", "@0", ""}, READER("@1")};
  expect(even, "Conv2,2 Relu Conv1,1");
  static const Steps strided = {{"Conv", "f32[1,4,17,12] f32[4,1,2,3]!", "group=4 strides=[3,1] dilations=[2,1]"},
                                {"Conv", "@0 f32[2,4,1,1]!", "strides=[2,3]"}};
  expect(strided, "Conv6,3 Conv1,1");
  static const Steps line = {{"Conv", "f32[1,3,11] f32[4,3,2]!", ""}, {"Conv", "@0 f32[2,4,1]!", "strides=[3]"}};
  expect(line, "Conv3 Conv1");
}

static void pads_stay_what_the_old_stride_made_them(void **state) {
  (void)state;
  static const Steps same = {{"Conv", "f32[1,3,6,8] f32[4,3,3,3]!", "auto_pad=SAME_LOWER"}, READER("@0")};
  expect(same, "Conv2,2 Conv1,1");
}

static void a_stride_passes_through_1x1_convolutions(void **state) {
  (void)state;
  static const Steps steps = {{"Conv", "f32[1,3,7,8] f32[5,3,3,3]!", "pads=[1,1,1,1]"},
                              {"Relu", "@0", ""},
                              {"Conv", "@1 f32[4,5,1,1]!", ""},
                              READER("@2")};
  expect(steps, "Conv2,2 Relu Conv1,1 Conv1,1");
}

static void a_residual_is_sampled(void **state) {
  (void)state;
  static const Steps steps = {{"Relu", "f32[1,4,7,8]", ""},
                              {"Conv", "@0 f32[4,4,1,1]!", ""},
                              {"Add", "@1 @0", ""},
                              {"Relu", "@2", ""},
                              READER("@3")};
  expect(steps, "Relu Conv2,2 MaxPool2,2 Add Relu Conv1,1");
}

static void all_readers_must_step_alike(void **state) {
  (void)state;
  static const Steps both = {
      {"Conv", "f32[1,3,7,8] f32[4,3,3,3]!", ""}, READER("@0"), READER("@0"), {"Add", "@1 @2", ""}};
  expect(both, "Conv2,2 Conv1,1 Conv1,1 Add");
  static const Steps others = {{"Conv", "f32[1,3,7,7] f32[4,3,3,3]!", ""},
                               READER("@0"),
                               {"Conv", "@0 f32[2,4,1,1]!", "strides=[2,1]"},
                               {"ReduceSum", "@2", "axes=[2,3]"},
                               {"Add", "@1 @3", ""}};
  expect(others, "Conv1,1 Conv2,2 Conv2,1 ReduceSum Add");
  static const Steps whole = {{"Conv", "f32[1,3,7,8] f32[4,3,3,3]!", ""},
                              READER("@0"),
                              {"ReduceMax", "@0", "axes=[1,2,3]"},
                              {"Add", "@1 @2", ""}};
  expect(whole, "Conv1,1 Conv2,2 ReduceMax Add");
}

static void what_reads_other_pixels_stays(void **state) {
  (void)state;
  static const Steps wide = {{"Conv", "f32[1,3,8,8] f32[4,3,3,3]!", ""}, {"Conv", "@0 f32[2,4,1,2]!", "strides=[2,2]"}};
  expect(wide, "Conv1,1 Conv2,2");
  static const Steps padded = {{"Conv", "f32[1,3,8,8] f32[4,3,3,3]!", ""},
                               {"Conv", "@0 f32[2,4,1,1]!", "strides=[2,2] pads=[1,1,1,1]"}};
  expect(padded, "Conv1,1 Conv2,2");
  static const Steps along_a_row = {{"Conv", "f32[1,3,6,6] f32[4,3,3,3]!", ""}, {"Softmax", "@0", ""}, READER("@1")};
  expect(along_a_row, "Conv1,1 Softmax Conv2,2");
  static const Steps of_pixels = {
      {"Conv", "f32[1,3,6,6] f32[4,3,3,3]!", ""}, {"Add", "@0 f32=1,2,3,4", ""}, READER("@1")};
  expect(of_pixels, "Conv1,1 Add Conv2,2");
  static const Steps no_convolution = {{"Relu", "f32[1,4,6,6]", ""}, READER("@0")};
  expect(no_convolution, "Relu Conv2,2");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_stride_goes_to_the_convolution_before),
      TEST(pads_stay_what_the_old_stride_made_them),
      TEST(a_stride_passes_through_1x1_convolutions),
      TEST(a_residual_is_sampled),
      TEST(all_readers_must_step_alike),
      TEST(what_reads_other_pixels_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
