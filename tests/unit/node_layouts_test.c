/* SPDX-License-Identifier: MIT */
/* The layouts that nodes can run in, by their families and shapes, for a target of 16 lanes; and that asking for the
 * cost of one changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"
#include "layout/layout.h"
#include "layout/layout_costs.h"
#include "layout/row_tiles.h"
#include "passes.h"
#include "support/text.h"

static Graph *graph_of(const char *op, const char *inputs, const char *attributes) {
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  build_output(graph, build_node(graph, op, inputs, attributes, 1)->outputs[0]);
  infer_shapes(graph);
  return graph;
}

/* "row-major>row-major blocked>wide": the layout of inputs[0] and that of the result. */
static const char *text_of_set(LayoutSet set) {
  static const char *const names[] = {"row-major", "narrow", "blocked", "wide", "any"};
  Text text = text_new(arena);
  for (int reads = 0; reads <= LAYOUT_ANY; reads++)
    for (int writes = 0; writes < LAYOUTS; writes++)
      if (set & LAYOUT_BIT(reads, writes))
        text_add(&text, "%s%s>%s", text.length ? " " : "", names[reads], names[writes]);
  return text.data;
}

#define ROW_MAJOR "row-major>row-major"
#define BLOCKED ROW_MAJOR " blocked>blocked"

static void families_and_shapes_say_in_which_layouts_a_node_runs(void **state) {
  (void)state;
  static const char *const rows[][4] = {
      {"Conv", "f32[1,64,56,56] f32[64,64,1,1]!", "", BLOCKED " blocked>wide wide>blocked wide>wide"},
      {"Conv", "f32[1,3,56,56] f32[64,3,7,7]!", "",
       ROW_MAJOR " narrow>blocked narrow>wide blocked>blocked blocked>wide"},
      {"Conv", "f32[1,48,56,56] f32[64,48,1,1]!", "", BLOCKED " blocked>wide"}, /* one and a half wide blocks */
      {"Conv", "f32[1,64,56,56] f32[64,1,3,3]!", "group=64", BLOCKED},
      {"Conv", "f32[1,64,T,56] f32[64,64,1,1]!", "", BLOCKED " blocked>wide wide>blocked wide>wide"},
      {"Conv", "f32[1,64,56,T] f32[64,1,3,3]!", "group=64 pads=[1,1,1,1]", BLOCKED},
      {"ConvTranspose", "f32[1,64,T,8] f32[64,64,2,2]!", "", BLOCKED " blocked>wide wide>blocked wide>wide"},
      {"MaxPool", "f32[1,64,8,T]", "kernel_shape=[1,1]", BLOCKED " wide>wide"},
      {"Relu", "f32[1,64,T,8]", "", BLOCKED " wide>wide"},
      {"ConvTranspose", "f32[1,3,8,8] f32[3,64,2,2]!", "",
       ROW_MAJOR " narrow>blocked narrow>wide blocked>blocked blocked>wide"},
      {"ConvTranspose", "f32[1,64,8,8] f32[64,1,4,4]!", "group=64", BLOCKED},
      {"ConvTranspose", "f32[1,64,2048,4095] f32[64,64,2,4]!", "strides=[2,4]",
       BLOCKED " blocked>wide wide>blocked wide>wide"},
      {"ConvTranspose", "f32[1,64,2048,4096] f32[64,64,2,4]!", "strides=[2,4]", ROW_MAJOR}, /* 2^26 pixels */
      {"ConvTranspose", "f32[1,64,T,4096] f32[64,64,2,4]!", "strides=[2,4]",
       BLOCKED " blocked>wide wide>blocked wide>wide"},
      {"Relu", "f32[1,64,536870912]", "", ROW_MAJOR},
      {"MaxPool", "f32[1,64,8,8]", "kernel_shape=[2,2]", BLOCKED " wide>wide"},
      {"GlobalAveragePool", "f32[1,64,8,8]", "", BLOCKED " wide>blocked"},
      {"Relu", "f32[1,64,8,8]", "", BLOCKED " wide>wide"},
      {"Relu", "f32[1,24,8,8]", "", BLOCKED},
      {"Relu", "f32[8,8]", "", ROW_MAJOR},
      {"Concat", "f32[1,64,8,8] f32[1,32,8,8]", "axis=1", BLOCKED " wide>wide"},
      {"Concat", "f32[1,64,8,8] f32[1,64,8,8]", "axis=2", ROW_MAJOR},
      {"Concat", "u8[1,64,8,8] u8[1,32,8,8]", "axis=1", BLOCKED " wide>wide"},
      {"Concat", "i8[1,64,8,8] i8[1,32,8,8]", "axis=1", BLOCKED " wide>wide"},
      {"Concat", "i32[1,64,8,8] i32[1,32,8,8]", "axis=1", ROW_MAJOR},
      {"ReduceMax", "u8[1,64,8,8]", "axes=[2,3]", ROW_MAJOR}, /* no kernel of blocks of bytes */
      {"Transpose", "f32[1,64,8,8]", "perm=[0,2,3,1]", ROW_MAJOR " any>row-major"},
      {"Transpose", "f32[1,64,8,8]", "perm=[0,1,3,2]", ROW_MAJOR},
      {"Transpose", "f32[1,8,8,64]", "perm=[0,3,1,2]", ROW_MAJOR " row-major>blocked row-major>wide"},
      {"Transpose", "f32[1,8,8,64]", "perm=[0,3,2,1]", ROW_MAJOR},
      {"Transpose", "u8[1,8,8,24]", "perm=[0,3,1,2]", ROW_MAJOR " row-major>blocked"},
      {"Transpose", "f32[1,64,8]", "perm=[0,2,1]", ROW_MAJOR " any>row-major"}, /* either direction */
      {"Transpose", "i32[1,8,8,64]", "perm=[0,3,1,2]", ROW_MAJOR},
      {"MatMul", "f32[1,64,8,8] f32[8,8]!", "", ROW_MAJOR},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Graph *graph = graph_of(rows[i][0], rows[i][1], rows[i][2]);
    const char *found = text_of_set(possible_layouts(graph, graph->nodes[graph->n_nodes - 1]));
    if (strcmp(found, rows[i][3]) != 0)
      fail_msg("%s of %s: expected %s, found %s", rows[i][0], rows[i][1], rows[i][3], found);
  }
}

static Value *blocked_value(Graph *graph, const char *type_and_shape, int block) {
  Value *value = build_node(graph, "Relu", type_and_shape, "", 1)->inputs[0];
  value->channel_block = block;
  return value;
}

static void blocks_of_bytes_have_as_many_channels_in_a_fourth_of_the_memory(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  const Value *floats = blocked_value(graph, "f32[1,64,5,7]", 16), *bytes = blocked_value(graph, "u8[1,64,5,7]", 16);
  assert_int_equal(blocked_of(graph, bytes).blocks, blocked_of(graph, floats).blocks);
  assert_int_equal(channel_bytes(floats, 32), 2 * 16 * 5 * 7 * 4);
  assert_int_equal(channel_bytes(bytes, 32), 2 * 16 * 5 * 7);
}

static void narrow_images_of_bytes_have_whole_steps_of_channels(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  build_config(graph, "x86-64-v4");
  assert_int_equal(layout_block(graph, blocked_value(graph, "f32[1,3,5,7]", 0), LAYOUT_NARROW), 3);
  assert_int_equal(layout_block(graph, blocked_value(graph, "u8[1,3,5,7]", 0), LAYOUT_NARROW), 4);
  assert_int_equal(layout_block(graph, blocked_value(graph, "i8[1,8,5,7]", 0), LAYOUT_NARROW), 8);
}

static const char *dump_of(Graph *graph) {
  Text text = text_new(arena);
  graph_dump(&text, graph);
  return text.data;
}

static double seconds_in(Graph *graph, NodeLayout layout) {
  return layout_node_seconds(graph, graph->nodes[0], layout).estimated;
}

static void the_cost_of_a_layout_does_not_depend_on_the_nodes_own_layout(void **state) {
  (void)state;
  static const char *const rows[][3] = {{"Conv", "f32[1,64,56,56] f32[64,64,3,3]!", "pads=[1,1,1,1]"},
                                        {"Concat", "f32[1,64,8,8] f32[1,32,8,8]", "axis=1"},
                                        {"MaxPool", "f32[1,64,8,8]", "kernel_shape=[2,2]"}};
  static const NodeLayout layouts[] = {
      {LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR}, {LAYOUT_BLOCKED, LAYOUT_BLOCKED}, {LAYOUT_WIDE, LAYOUT_WIDE}};
  enum { ASKED = sizeof layouts / sizeof *layouts };
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    Graph *graph = graph_of(rows[row][0], rows[row][1], rows[row][2]);
    double before[ASKED];
    const char *dump = dump_of(graph);
    for (int i = 0; i < ASKED; i++) before[i] = seconds_in(graph, layouts[i]);
    assert_string_equal(dump_of(graph), dump);
    lay_out(graph, graph->nodes[0], layouts[1]);
    dump = dump_of(graph);
    for (int i = 0; i < ASKED; i++) assert_true(seconds_in(graph, layouts[i]) == before[i]);
    assert_string_equal(dump_of(graph), dump);
  }
}

/* Windows of 3 columns, with a column of padding on both sides. */
static void tiles_at_the_edges_have_code_of_their_own_and_all_others_share_theirs(void **state) {
  (void)state;
  assert_int_equal(row_tiles_in(8, 8, 1, 3, 8, 1), 1);
  assert_int_equal(row_tiles_in(8, 4, 1, 3, 8, 1), 2);
  assert_int_equal(row_tiles_in(12, 4, 1, 3, 12, 1), 3);
  assert_int_equal(row_tiles_in(40, 4, 1, 3, 40, 1), 3);
  assert_int_equal(row_tiles_in(40, 4, 1, 3, 42, 0), 1);
  assert_int_equal(row_tiles_in(42, 4, 1, 3, 44, 0), 2); /* the last has 2 pixels */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(families_and_shapes_say_in_which_layouts_a_node_runs, setup, teardown),
      cmocka_unit_test_setup_teardown(blocks_of_bytes_have_as_many_channels_in_a_fourth_of_the_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(narrow_images_of_bytes_have_whole_steps_of_channels, setup, teardown),
      cmocka_unit_test_setup_teardown(the_cost_of_a_layout_does_not_depend_on_the_nodes_own_layout, setup, teardown),
      cmocka_unit_test(tiles_at_the_edges_have_code_of_their_own_and_all_others_share_theirs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
