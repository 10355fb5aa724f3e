/* SPDX-License-Identifier: MIT */
/*
 * A shape inferred for a symbolic T, at T = t, is the shape inferred for t itself. Random attributes of the ops whose
 * extents are more than copied. If T's range makes a node invalid, the rule refuses it; such nodes are skipped and
 * counted, so that the test cannot pass with refusals alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir_build.h"
#include "shapes/shape.h"

enum { ROUNDS = 3000 };

/* A node in the notation of ir_build.h, with `%s` for T in its inputs. */
typedef struct Draw {
  const char *inputs, *attributes;
} Draw;

static int between(int least, int most) { return least + rand() % (most - least + 1); }

static Draw draw_conv(Arena *arena) {
  static const char *const automatic[] = {"auto_pad=SAME_UPPER", "auto_pad=SAME_LOWER", "auto_pad=VALID"};
  const char *pad = arena_format(arena, "pads=[%d,%d]", between(0, 4), between(0, 4));
  int kind = between(0, 3);
  return (Draw){arena_format(arena, "f32[1,1,%%s] f32[1,1,%d]", between(1, 4)),
                arena_format(arena, "strides=[%d] dilations=[%d] %s", between(1, 4), between(1, 3),
                             kind ? automatic[kind - 1] : pad)};
}

static Draw draw_pool(Arena *arena) {
  int kernel = between(1, 4);
  return (Draw){"f32[1,1,%s]",
                arena_format(arena, "kernel_shape=[%d] strides=[%d] pads=[%d,%d] ceil_mode=%d", kernel, between(1, 4),
                             between(0, kernel - 1), between(0, kernel - 1), between(0, 1))};
}

static const char *position(Arena *arena) {
  static const char *const far[] = {"9223372036854775807", "-9223372036854775808", "-1", "0"};
  return rand() % 3 ? arena_format(arena, "%d", between(-6, 6)) : far[between(0, 3)];
}

static Draw draw_slice(Arena *arena) {
  static const int steps[] = {1, 1, 2, 3, -1, -2};
  return (Draw){arena_format(arena, "f32[%%s] i64=%s i64=%s i64=0 i64=%d", position(arena), position(arena),
                             steps[between(0, 5)]),
                ""};
}

static Draw draw_pad(Arena *arena) {
  return (Draw){arena_format(arena, "f32[%%s,3] i64=%d,0,%d,1", between(-2, 4), between(-2, 4)), ""};
}

static Draw draw_split(Arena *arena) {
  (void)arena;
  return (Draw){"f32[%s]", "num_outputs=3"};
}

static Draw draw_reshape(Arena *arena) {
  static const char *const targets[] = {"-1", "0,-1", "-1,3", "2,-1", "0,2,6", "1,-1,1", "-1,12"};
  return (Draw){arena_format(arena, "f32[%%s,12] i64=%s", targets[between(0, 6)]), ""};
}

static const struct Row {
  const char *op;
  Draw (*draw)(Arena *);
  int n_outputs;
} rows[] = {{"Conv", draw_conv, 1}, {"MaxPool", draw_pool, 1}, {"Slice", draw_slice, 1},
            {"Pad", draw_pad, 1},   {"Split", draw_split, 3},  {"Reshape", draw_reshape, 1}};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* NULL if the rule refuses the node. */
static Node *infer_with(Arena *arena, const struct Row *row, Draw draw, const char *extent) {
  char inputs[256] = "";
  const char *hole = strstr(draw.inputs, "%s");
  size_t before = (size_t)(hole - draw.inputs);
  memcpy(inputs, draw.inputs, before);
  strcpy(inputs + before, extent);
  strcat(inputs, hole + 2);
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, row->op, inputs, draw.attributes, row->n_outputs);
  capture_errors();
  bool good = infer_node(graph, node);
  captured_errors(arena);
  return good ? node : NULL;
}

static bool check_round(unsigned seed) {
  srand(seed);
  Arena *arena = arena_new();
  const struct Row *row = &rows[seed % N_ROWS];
  Draw draw = row->draw(arena);
  const int64_t point[] = {between(2, 40), 1};
  Node *symbolic = infer_with(arena, row, draw, "T");
  if (symbolic) {
    Node *concrete = infer_with(arena, row, draw, arena_format(arena, "%d", (int)point[0]));
    if (!concrete)
      fail_msg("%u: %s of %s, %s is good for T but not for %d", seed, row->op, draw.inputs, draw.attributes,
               (int)point[0]);
    for (int i = 0; i < row->n_outputs; i++)
      for (int axis = 0; axis < concrete->outputs[i]->rank; axis++)
        assert_int_equal(dim_eval(symbolic->outputs[i]->shape[axis], point),
                         dim_value(concrete->outputs[i]->shape[axis]));
  }
  arena_free(arena);
  return symbolic != NULL;
}

static void symbolic_shapes_evaluate_to_concrete_ones(void **state) {
  (void)state;
  int compared = 0;
  for (unsigned seed = 0; seed < ROUNDS; seed++) compared += check_round(seed);
  assert_true(compared > ROUNDS / 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(symbolic_shapes_evaluate_to_concrete_ones)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
