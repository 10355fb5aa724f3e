/* SPDX-License-Identifier: MIT */
/* The op table is well formed, and every mistake of a node that does not fit its row is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "ir_build.h"

static void names_are_unique_and_found(void **state) {
  (void)state;
  for (int i = 0; op_at(i); i++) assert_ptr_equal(op_find(op_at(i)->name), op_at(i));
  assert_null(op_find("Lstm"));
  assert_string_equal(op_closest("Lstm"), "LSTM");
  assert_string_equal(op_closest("Softmx"), "Softmax");
  assert_null(op_closest("Quaternion"));
}

static void every_row_has_a_rule_and_a_kernel(void **state) {
  (void)state;
  for (int i = 0; op_at(i); i++) {
    const OpInfo *op = op_at(i);
    if (!op->shape || !op->reference) fail_msg("%s lacks its rule or its kernel", op->name);
    assert_true(op->max_inputs < 0 || op->min_inputs <= op->max_inputs);
    assert_true(op->max_outputs < 0 || op->min_outputs <= op->max_outputs);
  }
}

/* Reads every default as a pass would, by the kind that the row says. */
static bool is_typed_by_an_input(const OpInfo *op, int variable) {
  for (int i = 0; op->types.inputs[i]; i++)
    if ((op->types.inputs[i] & ~SLOT_OPTIONAL) == variable) return true;
  return false;
}

/* Optional inputs may stand before required ones; what the row counts ends with a required one. */
static void check_required(const OpInfo *op, int input) {
  bool optional = op->types.inputs[input] & SLOT_OPTIONAL;
  if (op->max_inputs < 0 || (input < op->min_inputs - 1 && optional)) return;
  if (optional != (input >= op->min_inputs))
    fail_msg("%s: input %d is%s optional", op->name, input, optional ? "" : " not");
}

/* The row's type variables have types, its outputs' types come from inputs, and its required inputs are counted. */
static void types_agree_with_the_row(void **state) {
  (void)state;
  for (const OpInfo *op = op_at(0); op; op = op_at((int)op->kind + 1)) {
    for (int i = 0; op->types.inputs[i]; i++) {
      int variable = op->types.inputs[i] & ~SLOT_OPTIONAL;
      if (variable != SLOT_BODY && !op->types.variables[variable]) fail_msg("%s: input %d has no type", op->name, i);
      check_required(op, i);
    }
    for (int i = 0; op->types.outputs[i]; i++) {
      int slot = op->types.outputs[i];
      bool typed = slot == SLOT_BODY || slot & SLOT_FIXED || is_typed_by_an_input(op, slot);
      if (!typed) fail_msg("%s: output %d has the type of no input", op->name, i);
    }
  }
}

static void every_default_reads(void **state) {
  (void)state;
  for (int i = 0; op_at(i); i++) {
    Node node = {.op = op_at(i)};
    for (const AttributeSpec *spec = node.op->attributes; spec->id; spec++) {
      assert_int_equal(attribute_find(attribute_name(spec->id)), spec->id);
      if (!spec->has_default) continue;
      if (spec->kind == ATTRIBUTE_INT) assert_true(node_int(&node, spec->id) == spec->i);
      if (spec->kind == ATTRIBUTE_FLOAT) assert_true(node_float(&node, spec->id) == spec->f);
      if (spec->kind == ATTRIBUTE_WORD) assert_int_equal(attribute_word(spec, node_string(&node, spec->id)), 0);
    }
  }
}

static void a_row_names_an_attribute_once(void **state) {
  (void)state;
  for (int i = 0; op_at(i); i++)
    for (const AttributeSpec *spec = op_at(i)->attributes; spec->id; spec++)
      if (op_attribute(op_at(i), spec->id) != spec)
        fail_msg("%s has `%s` twice", op_at(i)->name, attribute_name(spec->id));
}

static void defaults_are_onnx(void **state) {
  (void)state;
  Node elu = {.op = op_info(OP_Elu)}, leaky = {.op = op_info(OP_LeakyRelu)}, lstm = {.op = op_info(OP_LSTM)};
  Node norm = {.op = op_info(OP_BatchNormalization)}, flatten = {.op = op_info(OP_Flatten)};
  assert_true(node_float(&elu, ATTR_alpha) == 1);
  assert_true(node_float(&leaky, ATTR_alpha) == 0.01);
  assert_true(node_float(&norm, ATTR_epsilon) == 1e-5);
  assert_int_equal(node_int(&flatten, ATTR_axis), 1);
  assert_string_equal(node_string(&lstm, ATTR_direction), "forward");
  assert_int_equal(node_word(&lstm, ATTR_direction), DIRECTION_forward);
}

/* The message of op_check_node about a node; "" if it has none. */
static const char *complaint(Node *node) {
  capture_errors();
  bool good = op_check_node(node);
  const char *errors = captured_errors(arena);
  assert_int_equal(good, *errors == 0);
  return errors;
}

static void expect_complaint(Node *node, const char *part) {
  const char *errors = complaint(node);
  if (!strstr(errors, part)) assert_string_equal(errors, part);
}

static Attribute integer(const char *name, int64_t value) {
  return (Attribute){.name = name, .kind = ATTRIBUTE_INT, .i = value, .where = LOCATION_FILE("test")};
}

static Node *softmax_with(Graph *graph, Attribute attribute) {
  Node *node = build_node(graph, "Softmax", "f32[T]", "", 1);
  node->attributes[node->n_attributes++] = attribute;
  return node;
}

static void a_good_node_passes(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  assert_string_equal(complaint(build_node(graph, "Softmax", "f32[T]", "axis=0", 1)), "");
  assert_string_equal(complaint(build_node(graph, "Clip", "f32[T] _ f32[]", "", 1)), "");
  assert_string_equal(complaint(build_node(graph, "LSTM", "f32[T,B,5] f32[1] f32[1]", "hidden_size=3", 0)), "");
}

static void unknown_attributes_are_named_with_the_right_ones(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  expect_complaint(softmax_with(graph, integer("axes", 0)),
                   "Softmax has no attribute `axes`; did you mean `axis`? It has: axis");
  Node *tanh = build_node(graph, "Tanh", "f32[T]", "", 1);
  tanh->attributes[tanh->n_attributes++] = integer("axis", 0);
  expect_complaint(tanh, "Tanh has no attributes, found `axis`");
}

static void messages_about_wrong_kinds_name_both_kinds(void **state) {
  (void)state;
  Attribute text = {.name = "axis", .kind = ATTRIBUTE_STRING, .s = "one", .where = LOCATION_FILE("test")};
  expect_complaint(softmax_with(build_graph(arena), text), "`axis` of Softmax must be an integer, found a string");
}

static void an_integer_is_accepted_as_a_number(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "Elu", "f32[T]", "", 1);
  node->attributes[node->n_attributes++] = integer("alpha", 2);
  assert_string_equal(complaint(node), "");
  assert_true(node_float(node, ATTR_alpha) == 2);
}

static void alternatives_are_listed(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "LSTM", "f32[T,B,5] f32[1] f32[1]", "hidden_size=3 direction=backward", 1);
  expect_complaint(node, "`direction` of LSTM is \"backward\"; it must be one of forward|reverse|bidirectional");
  node = build_node(graph, "LSTM", "f32[T,B,5] f32[1] f32[1]", "hidden_size=3 direction=forwar", 1);
  expect_complaint(node, "\"forwar\"");
}

static void every_mistake_is_reported_at_once(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "LSTM", "f32[T,B,5] _", "", 4);
  node->attributes[node->n_attributes++] = integer("layout", 0);
  node->attributes[node->n_attributes++] = integer("layout", 0);
  const char *errors = complaint(node);
  assert_non_null(strstr(errors, "LSTM has 3 to 8 inputs, found 2"));
  assert_non_null(strstr(errors, "LSTM has 0 to 3 outputs, found 4"));
  assert_non_null(strstr(errors, "input 1 of LSTM is absent"));
  assert_non_null(strstr(errors, "`layout` is given twice"));
  assert_non_null(strstr(errors, "LSTM needs the attribute `hidden_size`, an integer"));
}

static void required_outputs_must_be_there(void **state) {
  (void)state;
  Graph *graph = build_graph(arena);
  Node *node = build_node(graph, "Split", "f32[6]", "", 2);
  node->outputs[1] = NULL;
  expect_complaint(node, "output 1 of Split is absent");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_unique_and_found),
      cmocka_unit_test(every_row_has_a_rule_and_a_kernel),
      cmocka_unit_test(types_agree_with_the_row),
      cmocka_unit_test(every_default_reads),
      cmocka_unit_test(a_row_names_an_attribute_once),
      cmocka_unit_test(defaults_are_onnx),
      cmocka_unit_test_setup_teardown(a_good_node_passes, setup, teardown),
      cmocka_unit_test_setup_teardown(unknown_attributes_are_named_with_the_right_ones, setup, teardown),
      cmocka_unit_test_setup_teardown(messages_about_wrong_kinds_name_both_kinds, setup, teardown),
      cmocka_unit_test_setup_teardown(an_integer_is_accepted_as_a_number, setup, teardown),
      cmocka_unit_test_setup_teardown(alternatives_are_listed, setup, teardown),
      cmocka_unit_test_setup_teardown(every_mistake_is_reported_at_once, setup, teardown),
      cmocka_unit_test_setup_teardown(required_outputs_must_be_there, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
