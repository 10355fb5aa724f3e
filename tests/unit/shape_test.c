/* SPDX-License-Identifier: MIT */
/*
 * Every op's shape rule, one case a line: a node in the notation of ir_build.h, and the outputs' shapes or, after `!`,
 * a part of the error message. Where ONNX leaves a choice, the figures are ONNX Runtime's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir_build.h"
#include "shapes/shape.h"

typedef struct ShapeCase {
  const char *property, *op, *inputs, *attributes;
  const char *expected; /* "f32[T, 4]; f32[2]", or "! part of the message"; a failing node of two outputs: "; ! ..." */
} ShapeCase;

static const ShapeCase cases[] = {
#define CASE(property, op, inputs, attributes, expected) {#property, #op, inputs, attributes, expected},
#include "shape_cases.def"
#undef CASE
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int count_expected(const char *expected) {
  int n = 1;
  for (const char *c = expected; *c && *c != '!'; c++) n += *c == ';';
  return n;
}

static void check_outputs(Graph *graph, const Node *node, const char *expected) {
  Text text = text_new(graph->arena);
  for (int i = 0; i < node->n_outputs; i++) text_add(&text, "%s%s", i ? "; " : "", text_of(graph, node->outputs[i]));
  assert_string_equal(text.data, expected);
}

static void check_case(void **state) {
  const ShapeCase *row = *state;
  Arena *arena = arena_new();
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, row->op, row->inputs, row->attributes, count_expected(row->expected));
  capture_errors();
  bool good = infer_node(graph, node);
  const char *errors = captured_errors(arena);
  const char *failure = strstr(row->expected, "! ");
  if (failure) {
    assert_false(good);
    if (!strstr(errors, failure + 2)) assert_string_equal(errors, failure + 2);
    assert_int_equal(node->outputs[0]->rank, -1);
  } else {
    if (!good) assert_string_equal(errors, "");
    check_outputs(graph, node, row->expected);
  }
  arena_free(arena);
}

int main(void) {
  static struct CMUnitTest tests[N_CASES];
  for (int i = 0; i < N_CASES; i++)
    tests[i] = (struct CMUnitTest){cases[i].property, check_case, NULL, NULL, (void *)&cases[i]};
  return _cmocka_run_group_tests("shape", tests, N_CASES, NULL, NULL);
}
