/* SPDX-License-Identifier: MIT */
/* What clang says of frames is read from its objects, of every architecture whose calls are known; linkers leave it
 * out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "link/call_graph.h"
#include "link/stack_sizes.h"
#include "support/clang_program.h"
#include "support/files.h"
#include "support/process.h"

static const char *const triples[] = {"x86_64-linux-gnu", "i686-linux-gnu", "aarch64-linux-gnu", "arm-linux-gnueabihf",
                                      "riscv64-linux-gnu"};
enum { TRIPLES = sizeof triples / sizeof *triples, ASSEMBLY = 512, SLACK = 300 };

/* A length of one byte, of two, and of three; a table of jumps. */
static const char fixed[] = "void use(void *);\n"
                            "void leaf(void) {}\n"
                            "void small(void) { char room[1000]; use(room); }\n"
                            "static __attribute__((noinline)) void large(void) { char room[70000]; use(room); }\n"
                            "void caller(void) { large(); use(0); }\n"
                            "void leaf(void), a(void), b(void), c(void), d(void);\n"
                            "void jumps(int n) {\n"
                            "  char room[2000];\n"
                            "  use(room);\n"
                            "  switch (n) {\n"
                            "  case 0: a(); break;\n"
                            "  case 1: b(); break;\n"
                            "  case 2: c(); break;\n"
                            "  case 3: d(); break;\n"
                            "  case 4: leaf(); a(); break;\n"
                            "  case 5: use(room); b(); break;\n"
                            "  }\n"
                            "  use(room);\n"
                            "}\n"
                            "__asm__(\".text\\n.type written, %function\\nwritten:\\n.byte 0\\n\");\n";
static const char growing[] = "void use(void *);\n"
                              "void grows(int n) { char room[n]; use(room); }\n";

static void run(const char *folder, const char *const *argv) {
  Process clang = {.argv = argv, .folder = folder};
  if (!process_run_all(arena, &clang, 1, 1, 60)) fail_msg("%s", clang.output);
}

static CompiledObject compiled(const char *folder, const char *triple, const char *text) {
  const char *object = arena_format(arena, "%s/%s.o", folder, triple);
  file_write(arena, arena_format(arena, "%s/source.c", folder), text, strlen(text));
  run(folder, (const char *[]){clang_program(), arena_format(arena, "--target=%s", triple), "-O3", "-fPIC",
                               "-ffunction-sections", stack_sizes_arg, "-c", "source.c", "-o", object, NULL});
  return (CompiledObject){.path = object};
}

static const Function *function_in(const CallGraph *graph, const char *name) {
  for (int i = 0; i < graph->n_functions; i++)
    if (!strcmp(graph->functions[i].name, name)) return &graph->functions[i];
  fail_msg("no function is named %s", name);
  return NULL;
}

static void expect_frame(const CallGraph *graph, const char *name, int64_t bytes) {
  assert_in_range(function_in(graph, name)->frame, bytes, bytes + SLACK);
}

static void expect_frames(const CompiledObject *object) {
  CallGraph graph;
  assert_true(call_graph_read(&graph, arena, object, 1));
  expect_frame(&graph, "leaf", 0);
  expect_frame(&graph, "small", 1000);
  expect_frame(&graph, "large", 70000);
  expect_frame(&graph, "caller", 0);
  expect_frame(&graph, "jumps", 2000);
  expect_frame(&graph, "written", ASSEMBLY);
}

static void frames_are_read_before_and_after_they_are_hidden(void **state) {
  (void)state;
  char *folder = temporary_directory(arena);
  for (int i = 0; i < TRIPLES; i++) {
    CompiledObject object = compiled(folder, triples[i], fixed);
    expect_frames(&object);
    stack_sizes_hide(arena, object.path);
    expect_frames(&object);
  }
  temporary_remove(folder);
}

static void a_frame_that_grows_is_not_known(void **state) {
  (void)state;
  char *folder = temporary_directory(arena);
  for (int i = 0; i < TRIPLES; i++) {
    CompiledObject object = compiled(folder, triples[i], growing);
    CallGraph graph;
    assert_false(call_graph_read(&graph, arena, &object, 1));
  }
  temporary_remove(folder);
}

static int64_t frame_of(const CompiledObject *object, const char *name) {
  CallGraph graph;
  assert_true(call_graph_read(&graph, arena, object, 1));
  return function_in(&graph, name)->frame;
}

/* A stack pointer that is moved to where a vector or a line begins, and pushed arguments; where arguments are not
 * pushed, a vector. */
static void what_clang_does_not_count_is_added(void **state) {
  (void)state;
  char *folder = temporary_directory(arena);
  for (int i = 0; i < TRIPLES; i++) {
    CompiledObject object = compiled(folder, triples[i], fixed);
    int64_t plain = frame_of(&object, "leaf");
    object.vector_bytes = 32;
    object.pushed_arguments = 3;
    bool pushes = strstr(triples[i], "86") != NULL;
    assert_int_equal(frame_of(&object, "leaf") - plain, pushes ? 64 + 3 * 8 : 32);
    object.vector_bytes = 128;
    assert_int_equal(frame_of(&object, "leaf") - plain, pushes ? 128 + 3 * 8 : 128);
  }
  temporary_remove(folder);
}

/* SVE's registers on the stack, whose size clang does not say: what is taken counts, what is given back does not. */
static void registers_of_the_cpus_size_are_added(void **state) {
  (void)state;
  static const char vectors[] = "__asm__(\".arch armv8-a+sve\\n.text\\n.type takes, %function\\ntakes:\\n\"\n"
                                "        \"addvl sp, sp, #-3\\naddvl sp, sp, #-2\\naddvl sp, sp, #5\\nret\\n\"\n"
                                "        \".size takes, . - takes\\n\");\n";
  enum { VECTOR_BYTES = 64 };
  char *folder = temporary_directory(arena);
  CompiledObject object = compiled(folder, "aarch64-linux-gnu", vectors);
  int64_t plain = frame_of(&object, "takes");
  object.vector_bytes = VECTOR_BYTES;
  assert_int_equal(frame_of(&object, "takes") - plain, 5 * VECTOR_BYTES + VECTOR_BYTES);
  temporary_remove(folder);
}

/* A function that another object has is called; of libc's functions, what the largest takes: of i686 the table of
 * addresses counts as an unknown one. */
static void calls_lead_to_other_objects(void **state) {
  (void)state;
  static const char calls[] = "void far(void), memcpy(void), printf(void);\n"
                              "void caller(void) { far(); memcpy(); far(); }\n"
                              "void prints(void) { memcpy(); printf(); memcpy(); }\n"
                              "void (*const table[])(void) = {far};\n";
  static const char called[] = "void use(void *);\n"
                               "void far(void) { char room[1000]; use(room); }\n";
  for (int i = 0; i < TRIPLES; i++) {
    char *folder = temporary_directory(arena), *other = temporary_directory(arena);
    const CompiledObject objects[] = {compiled(folder, triples[i], calls), compiled(other, triples[i], called)};
    CallGraph graph;
    assert_true(call_graph_read(&graph, arena, objects, 2));
    const Function *caller = function_in(&graph, "caller"), *far = function_in(&graph, "far");
    assert_int_equal(caller->n_callees, 2);
    assert_ptr_equal(caller->callees[0], far);
    if (!strstr(triples[i], "i686")) assert_int_equal(caller->library, 512);
    assert_int_equal(function_in(&graph, "prints")->library, 8 << 10);
    assert_true(far->is_listed && far->is_global && !far->is_taken);
    temporary_remove(folder);
    temporary_remove(other);
  }
}

/* Sections of what the linker makes of the object. */
static int linked_sections(const char *folder, const CompiledObject *object, const char *how) {
  run(folder, (const char *[]){clang_program(), "--target=x86_64-linux-gnu", "-fuse-ld=lld", "-nostdlib", how,
                               object->path, "-o", "linked", NULL});
  Elf elf = elf_open(arena_format(arena, "%s/linked", folder));
  int found = 0;
  for (uint64_t i = 0; i < elf_section_count(&elf); i++)
    found += strstr(elf_section_name(&elf, elf_section(&elf, i)), "stack_sizes") != NULL;
  elf_close(&elf);
  return found;
}

static void what_is_hidden_is_not_linked(void **state) {
  (void)state;
  static const char *const ways[] = {"-shared", "-r"};
  char *folder = temporary_directory(arena);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    CompiledObject object = compiled(folder, triples[0], fixed);
    assert_true(linked_sections(folder, &object, ways[i]) > 0);
    stack_sizes_hide(arena, object.path);
    assert_int_equal(linked_sections(folder, &object, ways[i]), 0);
  }
  temporary_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frames_are_read_before_and_after_they_are_hidden),
      cmocka_unit_test(what_clang_does_not_count_is_added),
      cmocka_unit_test(registers_of_the_cpus_size_are_added),
      cmocka_unit_test(calls_lead_to_other_objects),
      cmocka_unit_test(a_frame_that_grows_is_not_known),
      cmocka_unit_test(what_is_hidden_is_not_linked),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
