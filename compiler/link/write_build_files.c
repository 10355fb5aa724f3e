/* SPDX-License-Identifier: MIT */
/*
 * How the folder of --emit=c is built without rnncc, by make or CMake, with clang or gcc: as a shared object, or as a
 * static library, whose objects differ in the prefix of their globals.
 */
#include "link/toolchain.h"
#include "support/files.h"

static void add_arguments(Text *text, const char *before, const char *const *arguments, const char *after) {
  text_add(text, "%s", before);
  for (; *arguments; arguments++) text_add(text, " %s", *arguments);
  text_add(text, "%s", after);
}

/* The flags of the shared object; a later -U takes back what makes it one. */
static Build shared(const Build *build) { return (Build){.target = build->target, .edge = build->edge}; }

static const char make_clang[] = "\nifneq (,$(findstring clang,$(shell $(CC) --version)))\n";

static const char make_shared[] = "module.so:%s runtime.o\n"
                                  "\t$(CC) $(LINK_FLAGS) $(CLANG_LINK_FLAGS) $^ -o $@\n";

static const char make_static[] = "lib%s.a:%s runtime.static.o\n"
                                  "\trm -f $@ && $(AR) rcs $@ $^\n\n"
                                  "%%.static.o: STATIC_FLAGS = -URNNCC_BUILDING_MODULE -DRNNCC_PREFIX=%s_\n";

static const char make_unit[] = "%s.o %s.static.o: %s.c weights.bin\n"
                                "\t$(CC) $(%s) $(CLANG_FLAGS) $(STATIC_FLAGS) -I. -c $< -o $@\n";

static const char make_runtime[] = "runtime.o runtime.static.o: runtime.c\n"
                                   "\t$(CC) $(RUNTIME_FLAGS) $(CLANG_FLAGS) $(STATIC_FLAGS) -I. -c $< -o $@\n";

/* "KERNEL_FLAGS", "KERNEL_FLAGS_x86_64_v3" */
static const char *flags_name(Arena *arena, const Unit *unit) {
  return unit->name ? arena_format(arena, "KERNEL_FLAGS_%s", unit->name) : "KERNEL_FLAGS";
}

static const char *const *unit_args(Arena *arena, const Build *build, const Unit *unit) {
  return source_args(arena, build, unit->program->graph->config->target);
}

static const char *stem_of(Arena *arena, const Unit *unit) { return file_with_suffix(arena, unit->file, ""); }

/* " network.o", for each unit. */
static const char *objects_of(Arena *arena, const Units *units, const char *suffix) {
  Text text = text_new(arena);
  for (int i = 0; i < units->count; i++) text_add(&text, " %s%s", stem_of(arena, units->list[i]), suffix);
  return text.data;
}

static Text makefile(Arena *arena, const Units *units, const Build *build) {
  const Build module = shared(build);
  Text text = text_new(arena);
  text_add(&text,
           SCRIPT_BEGINS
           "--emit=c, whose next run replaces this file.\n"
           "# With no rnncc at hand, by clang or gcc: make, make CC=gcc; the static library: make lib%s.a\n"
           "CC = " RNNCC_CLANG_NAME "\n",
           build->name);
  for (int i = 0; i < units->count; i++) {
    const Unit *unit = units->list[i];
    add_arguments(&text, arena_format(arena, "%s =", flags_name(arena, unit)), unit_args(arena, &module, unit), "\n");
  }
  add_arguments(&text, "RUNTIME_FLAGS =", source_args(arena, &module, NULL), "\n");
  add_arguments(&text, "LINK_FLAGS =", link_args(arena, &module), "\n");
  text_add(&text, "%s", make_clang);
  add_arguments(&text, "CLANG_FLAGS =", clang_flags(arena, &module), "\n");
  add_arguments(&text, "CLANG_LINK_FLAGS =", clang_link_flags(arena, &module), "\nendif\n\n");
  if (!build->edge) text_add(&text, make_shared, objects_of(arena, units, ".o"));
  text_add(&text, make_static, build->name, objects_of(arena, units, ".static.o"), build->name);
  for (int i = 0; i < units->count; i++) {
    const char *stem = stem_of(arena, units->list[i]);
    text_add(&text, make_unit, stem, stem, stem, flags_name(arena, units->list[i]));
  }
  text_add(&text, "%s", make_runtime);
  return text;
}

static const char cmake_unit[] =
    "list(APPEND %s -Xassembler -I${CMAKE_CURRENT_SOURCE_DIR}) # where the assembler finds the weights\n"
    "set_source_files_properties(%s PROPERTIES COMPILE_OPTIONS \"${%s}\" OBJECT_DEPENDS\n"
    "  ${CMAKE_CURRENT_SOURCE_DIR}/weights.bin)\n";

static const char cmake_runtime[] =
    "set_source_files_properties(runtime.c PROPERTIES COMPILE_OPTIONS \"${RUNTIME_FLAGS}\")\n\n";

static const char cmake_shared[] = "add_library(module SHARED%s runtime.c)\n"
                                   "target_include_directories(module PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})\n"
                                   "set_target_properties(module PROPERTIES PREFIX \"\" NO_SONAME ON)\n"
                                   "target_link_options(module PRIVATE ${LINK_FLAGS})\n\n";

static const char cmake_static[] =
    "add_library(%s_static STATIC%s runtime.c)\n"
    "set_target_properties(%s_static PROPERTIES OUTPUT_NAME %s)\n"
    "target_compile_options(%s_static PRIVATE -URNNCC_BUILDING_MODULE -DRNNCC_PREFIX=%s_)\n"
    "target_include_directories(%s_static PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n";

static Text cmake_lists(Arena *arena, const Units *units, const Build *build) {
  const Build module = shared(build);
  const char *name = build->name, *sources = objects_of(arena, units, ".c");
  Text text = text_new(arena);
  text_add(&text,
           SCRIPT_BEGINS "--emit=c, whose next run replaces this file.\n"
                         "# The module and the static library with no rnncc at hand:\n"
                         "# cmake -B build -DCMAKE_C_COMPILER=" RNNCC_CLANG_NAME " && cmake --build build\n"
                         "cmake_minimum_required(VERSION 3.16)\nproject(%s C)\n\n",
           name);
  for (int i = 0; i < units->count; i++) {
    const Unit *unit = units->list[i];
    add_arguments(&text, arena_format(arena, "set(%s", flags_name(arena, unit)), unit_args(arena, &module, unit),
                  ")\n");
  }
  add_arguments(&text, "set(RUNTIME_FLAGS", source_args(arena, &module, NULL), ")\n");
  add_arguments(&text, "set(LINK_FLAGS", link_args(arena, &module), ")\n");
  text_add(&text, "if(CMAKE_C_COMPILER_ID MATCHES Clang)\n");
  add_arguments(&text, "  add_compile_options(", clang_flags(arena, &module), ")\n");
  add_arguments(&text, "  list(APPEND LINK_FLAGS", clang_link_flags(arena, &module), ")\nendif()\n\n");
  for (int i = 0; i < units->count; i++) {
    const char *flags = flags_name(arena, units->list[i]);
    text_add(&text, cmake_unit, flags, units->list[i]->file, flags);
  }
  text_add(&text, "%s", cmake_runtime);
  if (!build->edge) text_add(&text, cmake_shared, sources);
  text_add(&text, cmake_static, name, sources, name, name, name, name, name);
  return text;
}

void add_build_files(SourceFolder *folder, const Units *units, const Build *build) {
  Text make = makefile(folder->arena, units, build), cmake = cmake_lists(folder->arena, units, build);
  source_folder_add(folder, "Makefile", (FileBytes){(const uint8_t *)make.data, make.length}, SCRIPT_BEGINS);
  source_folder_add(folder, "CMakeLists.txt", (FileBytes){(const uint8_t *)cmake.data, cmake.length}, SCRIPT_BEGINS);
}
