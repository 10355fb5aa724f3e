/* SPDX-License-Identifier: MIT */
/* Extents that a node's inputs must have in common are compared once for each input, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir/dim.h"
#include "ir_build.h"
#include "shapes/equal_extents.h"

enum { INPUTS = 50 };

static int differences; /* that were computed: one for each two extents that are compared */

const Dim *__real_dim_sub(DimTable *table, const Dim *a, const Dim *b);
const Dim *__wrap_dim_sub(DimTable *table, const Dim *a, const Dim *b);

const Dim *__wrap_dim_sub(DimTable *table, const Dim *a, const Dim *b) {
  differences++;
  return __real_dim_sub(table, a, b);
}

static void each_input_is_compared_with_the_first_one(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  const Dim *count = dim_symbol(graph->dims, dim_symbol_own(graph->dims, DIM_DATA_DEPENDENT, 0, 9));
  Text inputs = text_new(arena);
  for (int i = 0; i < INPUTS; i++) text_add(&inputs, " f32[T]");
  Node *node = build_node(graph, "Sum", inputs.data, "", 1);
  for (int i = 0; i < INPUTS; i++) node->inputs[i]->shape[0] = dim_add(graph->dims, count, dim_const(graph->dims, i));
  differences = 0;
  expect_extents(graph, node);
  assert_int_equal(differences, INPUTS - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_input_is_compared_with_the_first_one, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
