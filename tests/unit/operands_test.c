/* SPDX-License-Identifier: MIT */
/* Operands of calls say what the call touches, and each is checked against its parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_program.h"
#include "outcome.h"

static Program *program;
static Call *call;
static Value *value;

static void begin(void) {
  program = hand_program();
  call = hand_call(program, NULL, NULL);
  value = hand_value(program, 16);
}

static void a_call_touches_what_its_operands_say(void **state) {
  (void)state;
  begin();
  operand_value(call, "a", value, READ);
  operand_bytes(call, "memory", value, 32, 16, READ_WRITE);
  operand_elements(call, "y", value, dim_const(program->graph->dims, 3), NULL, WRITE);
  const Access *accesses = call->item->accesses;
  assert_int_equal(call->item->n_accesses, 3);
  assert_int_equal(accesses[0].mode, READ);
  assert_int_equal(dim_value(accesses[1].offset), 32);
  assert_int_equal(dim_value(accesses[1].bytes), 16);
  assert_int_equal(dim_value(accesses[2].offset), 12);
  assert_null(accesses[2].bytes);
}

static void no_value_is_a_null_pointer(void **state) {
  (void)state;
  begin();
  operand_value(call, "b", NULL, READ);
  assert_int_equal(call->item->n_accesses, 0);
  assert_int_equal(call->operands[1].kind, OPERAND_NULL);
}

/* ---- mistakes of a family stop the compiler ---- */

static void read_what_may_be_written(void *unused) {
  (void)unused;
  operand_value(call, "y", value, READ);
}
static void write_what_is_const(void *unused) {
  (void)unused;
  operand_value(call, "a", value, WRITE);
}
static void give_a_number_for_a_pointer(void *unused) {
  (void)unused;
  operand_integer(call, "a", 1);
}
static void give_a_pointer_for_a_number(void *unused) {
  (void)unused;
  operand_value(call, "n", value, READ);
}
static void give_an_integer_for_a_float(void *unused) {
  (void)unused;
  operand_integer(call, "scale", 1);
}
static void give_twice(void *unused) {
  (void)unused;
  operand_integer(call, "n", 1);
  operand_integer(call, "n", 1);
}
static void give_what_is_not_asked_for(void *unused) {
  (void)unused;
  operand_integer(call, "x", 1);
}
static void read_an_unknown_value(void *unused) {
  (void)unused;
  operand_value(call, "a", graph_value(program->graph, "w", LOCATION_FILE(NULL)), READ);
}
static void leave_one_out(void *unused) {
  (void)unused;
  complete_operands(call, false);
}

static void an_operand_fits_its_parameter(void **state) {
  (void)state;
  static const struct {
    void (*body)(void *);
    const char *message;
  } CASES[] = {
      {read_what_may_be_written, "`y` is not const, but its operand says READ"},
      {write_what_is_const, "`a` is const, but its operand says WRITE"},
      {give_a_number_for_a_pointer, "`a` is of another kind than its operand"},
      {give_a_pointer_for_a_number, "`n` is of another kind than its operand"},
      {give_an_integer_for_a_float, "`scale` is of another kind than its operand"},
      {give_twice, "`n` is given twice"},
      {give_what_is_not_asked_for, "no parameter `x`"},
      {read_an_unknown_value, "is none of the program's"},
      {leave_one_out, "`a` is not given"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    begin();
    Outcome outcome = outcome_of(CASES[i].body, NULL);
    expect_outcome(&outcome, EXIT_ENVIRONMENT, "internal error", CASES[i].message);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_call_touches_what_its_operands_say),
      TEST(no_value_is_a_null_pointer),
      TEST(an_operand_fits_its_parameter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
