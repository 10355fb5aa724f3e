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
#include "support/data_directory.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/folder.h"
#include "template/choices.h"
#include "template/parts.h"
#include "template/run_time_knobs.h"
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

/* It is read with one set for all targets; the number of lanes is the target's. */
static void branches_that_an_instruction_set_decides_stay(void **state) {
  (void)state;
  KernelSpec *vectors = spec();
  vectors->template_name = "vectors";
  const SpecialisedKernel *kernel = specialise(graph, vectors, "k13");
  assert_has(kernel->text, "if (k13_NARROW) x[0] = 1;");
  assert_has(kernel->text, "if (!FEW_REGISTERS) x[1] = 2;");
  assert_has(kernel->text, "\n  x[2] = 3;");
  assert_lacks(kernel->text, "x[3] = 4;");
}

static void file_scope_names_take_the_prefix_and_fields_do_not(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = specialise(graph, spec(), "k3");
  assert_string_equal(kernel->function, "k3_sample");
  assert_has(kernel->text, "static void k3_sample(");
  assert_has(kernel->text, "typedef struct k3_Pair {");
  assert_has(kernel->text, "enum k3_Sign { k3_PLUS = 1 };");
  assert_has(kernel->text, "enum k3_Sign sign = k3_PLUS;");
  assert_has(kernel->text, "k3_Pair pair");
  assert_has(kernel->text, "pair.ROWS_field");
  assert_has(kernel->text, "k3_sum_of(const float parts[k3_PARTS][k3_PARTS])");
  assert_has(kernel->text, "second, sum_of;");
  assert_has(kernel->text, "{pair.sum_of}");
  assert_has(kernel->text, "const float clear = k3_sum_of(parts);");
  assert_has(kernel->text, "+ clear);");
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

static const SpecialisedKernel *sized(int n_run_time, const char *prefix) {
  static const char *const columns = "COLUMNS";
  KernelSpec *made = kernel_spec_new(graph->arena, "sized");
  made->knobs[made->n_knobs++] = (Knob){"STEP", 4};
  for (int i = 0; i < n_run_time; i++) made->run_time[made->n_run_time++] = columns;
  return specialise(graph, made, prefix);
}

static void a_knob_at_run_time_is_a_parameter_and_what_follows_from_it_a_field(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = sized(1, "k8");
  assert_int_equal(kernel->n_parameters, 3);
  assert_string_equal(kernel->parameters[2].name, "columns");
  assert_int_equal(kernel->parameters[2].kind, PARAMETER_INTEGER);
  assert_has(kernel->text, "k8_sized(float *out, int64_t n, int64_t columns) {");
  assert_has(kernel->text, "k8_Sizes all = {.columns = columns};");
  assert_has(kernel->text, "all.steps = (all.columns + 4 - 1) / 4;");
  assert_has(kernel->text, "all.space = 4 * all.steps;");
  assert_has(kernel->text, "enum { k8_WIDTH = 4 * 3 };");
  assert_has(kernel->text, "float zeros[k8_WIDTH]");
}

static void functions_that_use_it_are_given_it_and_others_are_not(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = sized(1, "k9");
  assert_has(kernel->text,
             "k9_place(const k9_Sizes *sizes, int64_t row, int64_t column) { return row * sizes->columns");
  assert_has(kernel->text,
             "k9_end_of(const k9_Sizes *sizes, int64_t row) { return k9_place(sizes, row, sizes->columns)");
  assert_has(kernel->text, "i < k9_end_of(sizes, r)");
  assert_has(kernel->text, "k9_twice(int64_t x)");
  assert_has(kernel->text, "k9_twice(n + sizes->space)");
  assert_has(kernel->text, "if (sizes->columns == 6)");
  assert_has(kernel->text, "r < 4");
}

static void a_kernel_whose_knobs_are_known_is_another_one(void **state) {
  (void)state;
  const SpecialisedKernel *kernel = sized(0, "k10");
  assert_int_equal(kernel->n_parameters, 2);
  assert_lacks(kernel->text, "izes");
  assert_has(kernel->text, "k10_STEPS = (6 + 4 - 1) / 4");
  assert_lacks(kernel->text, "if (");
}

static void leave_an_unknown_knob(void *unused) {
  (void)unused;
  KernelSpec *sample = kernel_spec_new(graph->arena, "sized");
  sample->run_time[sample->n_run_time++] = "BOUND";
  specialise(graph, sample, "k11");
}

static void a_knob_that_the_template_lacks_is_told(void **state) {
  (void)state;
  Outcome outcome = outcome_of(leave_an_unknown_knob, NULL);
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "templates/sized.c has no knob `BOUND`", "");
}

static void leave_bound(void *text) {
  TemplateAst *ast = template_ast_parse(graph->arena, "typed.c", "typed", text, text, graph->config->target->lanes);
  leave_to_run_time(graph->arena, ast, "typed", 1, (const char *const[]){"BOUND"});
}

static void a_type_that_depends_on_it_is_told(void **state) {
  (void)state;
  Outcome outcome = outcome_of(leave_bound, "/* legal: 1..8 */\nenum { BOUND = 4 };\ntypedef struct Row {\n  int "
                                            "x[BOUND];\n} Row;\nstatic void typed(Row *row) { row->x[0] = 1; }\n");
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "typed.c: `Row` depends on a knob that is left to run time", "");
}

/* sample_sums.h has the knob NEGATE and clear(), which uses the template's ROWS. */
static void a_part_is_text_of_each_kernel(void **state) {
  (void)state;
  KernelSpec *sample = spec();
  sample->knobs[sample->n_knobs++] = (Knob){"NEGATE", 1};
  const SpecialisedKernel *kernel = specialise(graph, sample, "k9");
  assert_has(kernel->text, "void k9_clear(float sums[4])");
  assert_has(kernel->text, "k9_used_only_when_negated(in[i])");
  assert_lacks(kernel->text, "#include");
  assert_lacks(kernel->text, "SPDX");
  for (int i = 0; i < kernel->n_includes; i++) assert_lacks(kernel->includes[i], "parts/");
}

static void parse_as_second(void *text) {
  specialise_unnamed(spec(), graph->config->target->lanes);
  template_ast_parse(graph->arena, "second.c", "second", text, text, graph->config->target->lanes);
}

static void an_error_is_told_by_the_templates_own_path_and_line(void **state) {
  (void)state;
  Outcome outcome = outcome_of(parse_as_second, "/* its idea */\nstatic int second(void) {\n  return nowhere;\n}\n");
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "template second.c does not compile: second.c:3:10: use of undeclared",
                 "nowhere");
}

static void a_template_without_a_function_of_its_name_is_told(void **state) {
  (void)state;
  Outcome outcome = outcome_of(parse_as_second, "static int third(void) { return 3; }\n");
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "second.c: no function `second`", "");
}

static void make_with_its_hook(void *made) { specialise(graph, made, "k12"); }

static KernelSpec *with_a_hook(const char *name, const char *body) {
  KernelSpec *made = kernel_spec_new(graph->arena, name);
  made->hooks[made->n_hooks++] = (Hook){"finish", body};
  return made;
}

/* A hook's body has more lines than what it replaces. */
static void a_mistake_behind_a_hook_is_told_by_its_line(void **state) {
  (void)state;
  Outcome outcome = outcome_of(make_with_its_hook, with_a_hook("mistaken", "x *= 2;\n  x += 1;\n  return x;"));
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "templates/mistaken.c:6:62: use of undeclared identifier 'nowhere'", "");
}

static void a_mistake_in_a_hook_is_told(void **state) {
  (void)state;
  Outcome outcome = outcome_of(make_with_its_hook, with_a_hook("sample", "return x * nowhere_else;"));
  expect_outcome(&outcome, EXIT_ENVIRONMENT, "templates/sample.c:", "undeclared identifier 'nowhere_else'");
}

/* What is read of its text alone is what libclang finds. */
static void expect_same_choices(Arena *arena, const TemplateAst *ast) {
  Choices choices = template_choices(arena, ast->text);
  int found = 0;
  for (int i = 0; i < ast->n_declarations; i++) {
    const Declaration *declaration = &ast->declarations[i];
    if (declaration->kind == DECLARATION_OTHER) continue;
    if (found == choices.count) fail_msg("%s: no choice `%s`", ast->path, declaration->name);
    const Choice *choice = &choices.list[found++];
    assert_string_equal(choice->name, declaration->name);
    assert_int_equal(choice->kind, declaration->kind);
    assert_int_equal(choice->value.begin, declaration->value.begin);
    assert_int_equal(choice->value.end, declaration->value.end);
  }
  assert_int_equal(found, choices.count);
}

/* One whose names those of the headers are, would not compile. */
static void each_template_is_parsed_behind_the_headers(void **state) {
  (void)state;
  enum { OTHER_LANES = 4 }; /* no unit of the templates above */
  unsetenv("RNNCC_DATA");
  Arena *arena = graph->arena;
  const char *folder = arena_format(arena, "%s/templates", data_directory(arena));
  FileNames templates = folder_list(arena, folder, ".c");
  assert_true(templates.count > 70);
  for (int i = 0; i < templates.count; i++) {
    const char *path = arena_format(arena, "%s/%s", folder, templates.names[i]);
    const char *name = file_with_suffix(arena, templates.names[i], "");
    const TemplateAst *ast =
        template_ast_parse(arena, path, name, template_text(arena, path), template_text(arena, path), OTHER_LANES);
    assert_non_null(template_declaration(ast, name));
    expect_same_choices(arena, ast);
  }
  setenv("RNNCC_DATA", TEST_DATA, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(knobs_become_literals),
      cmocka_unit_test(dead_branches_and_their_helpers_go),
      cmocka_unit_test(live_branches_stay),
      cmocka_unit_test(branches_that_an_instruction_set_decides_stay),
      cmocka_unit_test(file_scope_names_take_the_prefix_and_fields_do_not),
      cmocka_unit_test(types_and_hooks_are_replaced),
      cmocka_unit_test(the_signature_is_read),
      cmocka_unit_test(a_kernel_is_made_once_and_named_often),
      cmocka_unit_test(a_knob_at_run_time_is_a_parameter_and_what_follows_from_it_a_field),
      cmocka_unit_test(functions_that_use_it_are_given_it_and_others_are_not),
      cmocka_unit_test(a_kernel_whose_knobs_are_known_is_another_one),
      cmocka_unit_test(a_knob_that_the_template_lacks_is_told),
      cmocka_unit_test(a_type_that_depends_on_it_is_told),
      cmocka_unit_test(a_part_is_text_of_each_kernel),
      cmocka_unit_test(an_error_is_told_by_the_templates_own_path_and_line),
      cmocka_unit_test(a_template_without_a_function_of_its_name_is_told),
      cmocka_unit_test(a_mistake_behind_a_hook_is_told_by_its_line),
      cmocka_unit_test(a_mistake_in_a_hook_is_told),
      cmocka_unit_test(each_template_is_parsed_behind_the_headers),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
