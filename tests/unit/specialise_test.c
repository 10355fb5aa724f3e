/* SPDX-License-Identifier: MIT */
/* The specialiser on a small template: knobs set, dead branches removed, names made unique, hooks and types replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "machine/targets.h"
#include "outcome.h"
#include "support/diagnostics.h"
#include "template/specialise.h"
#include "template/template_ast.h"

static Graph *graph;

static int set_up(void **state) {
  (void)state;
  Arena *arena = arena_new();
  graph = graph_new(arena);
  Config *config = ARENA_NEW(arena, Config);
  config->target = target_find("x86-64-v4");
  graph->config = config;
  return setenv("RNNCC_DATA", TEST_DATA, 1);
}

static int tear_down(void **state) {
  (void)state;
  arena_free(graph->arena);
  return 0;
}

static KernelSpec *spec(void) {
  KernelSpec *made = ARENA_NEW(graph->arena, KernelSpec);
  made->arena = graph->arena;
  made->template_name = "sample";
  return made;
}

static void assert_has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no `%s` in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("`%s` in:\n%s", part, text);
}

static void knobs_become_literals(void **state) {
  (void)state;
  KernelSpec *sample = spec();
  sample->knobs[sample->n_knobs++] = (Knob){"ROWS", 6};
  const SpecialisedKernel *kernel = specialise(graph, sample, "k0");
  assert_has(kernel->text, "float sums[6];");
  assert_has(kernel->text, "r < 6");
  assert_has(kernel->text, "k0_clear(float sums[6])");
  assert_lacks(kernel->text, "ROWS =");
}

static void dead_branches_and_their_helpers_go(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = specialise(graph, spec(), "k1");
  assert_lacks(kernel->text, "used_only_when_negated");
  assert_lacks(kernel->text, "if (");
  assert_has(kernel->text, "sums[i % 4] += in[i];");
}

static void live_branches_stay(void **state) {
  (void)state;
  KernelSpec *sample = spec();
  sample->knobs[sample->n_knobs++] = (Knob){"NEGATE", 1};
  const SpecialisedKernel *kernel = specialise(graph, sample, "k2");
  assert_has(kernel->text, "k2_used_only_when_negated(in[i])");
  assert_lacks(kernel->text, "sums[i % 4] += in[i];");
}

static void file_scope_names_take_the_prefix_and_fields_do_not(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = specialise(graph, spec(), "k3");
  assert_string_equal(kernel->function, "k3_sample");
  assert_has(kernel->text, "static void k3_sample(");
  assert_has(kernel->text, "typedef struct k3_Pair {");
  assert_has(kernel->text, "k3_Pair pair");
  assert_has(kernel->text, "pair.ROWS_field");
}

static void types_and_hooks_are_replaced(void **state) {
  (void)state;
  KernelSpec *sample = spec();
  sample->types[sample->n_types++] = (TypeKnob){"T", "int64_t"};
  sample->hooks[sample->n_hooks++] = (Hook){"finish", "return x * 2;"};
  const SpecialisedKernel *kernel = specialise(graph, sample, "k4");
  assert_has(kernel->text, "const int64_t *in");
  assert_has(kernel->text, "return x * 2;");
  assert_lacks(kernel->text, "float");
}

static void the_signature_is_read(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = specialise(graph, spec(), "k5");
  assert_int_equal(kernel->n_parameters, 3);
  assert_string_equal(kernel->parameters[0].name, "in");
  assert_int_equal(kernel->parameters[0].kind, PARAMETER_POINTER);
  assert_true(kernel->parameters[0].points_to_const);
  assert_int_equal(kernel->parameters[0].element, RNNCC_F32);
  assert_int_equal(kernel->parameters[1].kind, PARAMETER_POINTER);
  assert_false(kernel->parameters[1].points_to_const);
  assert_string_equal(kernel->parameters[2].name, "n");
  assert_int_equal(kernel->parameters[2].kind, PARAMETER_INTEGER);
}

static void a_kernel_is_made_once_and_named_often(void **state) {
  (void)state;
  const SpecialisedKernel *first = specialise_unnamed(spec(), graph->config->target->lanes);
  const SpecialisedKernel *one = specialise(graph, spec(), "k6"), *other = specialise(graph, spec(), "k7");
  assert_ptr_equal(specialise_unnamed(spec(), graph->config->target->lanes), first);
  assert_string_equal(one->function, "k6_sample");
  assert_has(one->text, "k6_clear(");
  assert_has(other->text, "k7_clear(");
  assert_lacks(other->text, "k6_");
  KernelSpec *sample = spec();
  sample->knobs[sample->n_knobs++] = (Knob){"ROWS", 5};
  assert_ptr_not_equal(specialise_unnamed(sample, graph->config->target->lanes), first);
  assert_ptr_not_equal(specialise_unnamed(spec(), graph->config->target->lanes / 2), first);
}

static void parse_as_second(void *text) {
  specialise_unnamed(spec(), graph->config->target->lanes);
  template_ast_parse(graph->arena, "second.c", "second", text, graph->config->target->lanes);
}

static void an_error_is_told_by_the_templates_own_path_and_line(void **state) {
  (void)state;
  Outcome outcome = outcome_of(parse_as_second, "/* its idea */\nstatic int second(void) {\n  return nowhere;\n}\n");
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "template second.c does not compile: second.c:3:10: use of undeclared",
                 "nowhere");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(knobs_become_literals),
      cmocka_unit_test(dead_branches_and_their_helpers_go),
      cmocka_unit_test(live_branches_stay),
      cmocka_unit_test(file_scope_names_take_the_prefix_and_fields_do_not),
      cmocka_unit_test(types_and_hooks_are_replaced),
      cmocka_unit_test(the_signature_is_read),
      cmocka_unit_test(a_kernel_is_made_once_and_named_often),
      cmocka_unit_test(an_error_is_told_by_the_templates_own_path_and_line),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
