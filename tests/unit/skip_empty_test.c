/* SPDX-License-Identifier: MIT */
/* A call is guarded by those extents of its node's outputs that may be 0, unless one output is never empty, or the node
 * itself finds the extent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_program.h"

static Program *program;

static const Dim *dim_from(int64_t min) {
  return dim_symbol(program->graph->dims, dim_symbol_own(program->graph->dims, DIM_DATA_DEPENDENT, min, 9));
}

static Value *value_of(const Dim *extent) {
  Value *value = hand_value(program, 1);
  value->shape[0] = extent;
  return value;
}

/* A call of a node with these outputs. */
static Call *call_of(int n, Value *const *outputs) {
  Node *node = graph_node(program->graph, op_find("Relu"), "n", 0, n);
  for (int i = 0; i < n; i++) graph_set_output(node, i, outputs[i]);
  return program_call(program, node, &hand_kernel);
}

static void a_result_that_may_be_empty_guards_its_call(void **state) {
  (void)state;
  program = hand_program();
  const Dim *maybe = dim_from(0), *surely = dim_from(1);
  Call *guarded = call_of(1, (Value *[]){value_of(maybe)}), *always = call_of(1, (Value *[]){value_of(surely)});
  skip_empty(program);
  assert_int_equal(guarded->n_guard, 1);
  assert_int_equal(guarded->guard[0].count, 1);
  assert_ptr_equal(guarded->guard[0].list[0], maybe);
  assert_null(always->guard);
}

/* The call has work if one of the results has elements. */
static void one_result_that_is_never_empty_is_enough(void **state) {
  (void)state;
  program = hand_program();
  Call *both = call_of(2, (Value *[]){value_of(dim_from(0)), value_of(dim_from(0))});
  Call *one = call_of(2, (Value *[]){value_of(dim_from(0)), value_of(dim_from(1))});
  skip_empty(program);
  assert_int_equal(both->n_guard, 2);
  assert_null(one->guard);
}

/* Also one whose result is never empty; and it runs only if its result is not empty, too. */
static void a_call_waits_for_what_it_is_for(void **state) {
  (void)state;
  program = hand_program();
  const Dim *maybe = dim_from(0), *when = dim_from(-9);
  Call *always = call_of(1, (Value *[]){value_of(dim_from(1))}), *guarded = call_of(1, (Value *[]){value_of(maybe)});
  always->when = guarded->when = when;
  skip_empty(program);
  assert_int_equal(always->n_guard, 1);
  assert_int_equal(always->guard[0].count, 1);
  assert_ptr_equal(always->guard[0].list[0], when);
  assert_int_equal(guarded->n_guard, 1);
  assert_int_equal(guarded->guard[0].count, 2);
  assert_ptr_equal(guarded->guard[0].list[0], when);
  assert_ptr_equal(guarded->guard[0].list[1], maybe);
}

/* The call must run to find the extent. */
static void a_node_that_finds_the_extent_is_not_guarded_by_it(void **state) {
  (void)state;
  program = hand_program();
  const Dim *found = dim_from(0);
  Call *call = call_of(1, (Value *[]){value_of(found)});
  operand_found(call, "found", found);
  skip_empty(program);
  assert_null(call->guard);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_result_that_may_be_empty_guards_its_call),
      TEST(one_result_that_is_never_empty_is_enough),
      TEST(a_call_waits_for_what_it_is_for),
      TEST(a_node_that_finds_the_extent_is_not_guarded_by_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
