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

static const char make_shared[] = "module.so: network.o runtime.o\n"
                                  "\t$(CC) $(LINK_FLAGS) $(CLANG_LINK_FLAGS) $^ -o $@\n";

static const char make_static[] = "lib%s.a: network.static.o runtime.static.o\n"
                                  "\trm -f $@ && $(AR) rcs $@ $^\n\n"
                                  "%%.static.o: STATIC_FLAGS = -URNNCC_BUILDING_MODULE -DRNNCC_PREFIX=%s_\n"
                                  "network.o network.static.o: network.c weights.bin\n"
                                  "\t$(CC) $(KERNEL_FLAGS) $(CLANG_FLAGS) $(STATIC_FLAGS) -I. -c $< -o $@\n"
                                  "runtime.o runtime.static.o: runtime.c\n"
                                  "\t$(CC) $(RUNTIME_FLAGS) $(CLANG_FLAGS) $(STATIC_FLAGS) -I. -c $< -o $@\n";

static Text makefile(Arena *arena, const Build *build) {
  const Build module = shared(build);
  Text text = text_new(arena);
  text_add(&text,
           "# Builds with no rnncc at hand, by clang or gcc: make, make CC=gcc; the static library: make lib%s.a\n"
           "CC = clang-19\n",
           build->name);
  add_arguments(&text, "KERNEL_FLAGS =", source_args(arena, &module, SOURCE_KERNELS), "\n");
  add_arguments(&text, "RUNTIME_FLAGS =", source_args(arena, &module, SOURCE_RUNTIME), "\n");
  add_arguments(&text, "LINK_FLAGS =", link_args(arena, &module), "\n");
  text_add(&text, "%s", make_clang);
  add_arguments(&text, "CLANG_FLAGS =", clang_flags(arena, &module), "\n");
  add_arguments(&text, "CLANG_LINK_FLAGS =", clang_link_flags(arena, &module), "\nendif\n\n");
  if (!build->edge) text_add(&text, "%s", make_shared);
  text_add(&text, make_static, build->name, build->name);
  return text;
}

static const char cmake_sources[] =
    "list(APPEND KERNEL_FLAGS -Wa,-I${CMAKE_CURRENT_SOURCE_DIR}) # where the assembler finds the weights\n"
    "set_source_files_properties(network.c PROPERTIES COMPILE_OPTIONS \"${KERNEL_FLAGS}\" OBJECT_DEPENDS\n"
    "  ${CMAKE_CURRENT_SOURCE_DIR}/weights.bin)\n"
    "set_source_files_properties(runtime.c PROPERTIES COMPILE_OPTIONS \"${RUNTIME_FLAGS}\")\n\n";

static const char cmake_shared[] = "add_library(module SHARED network.c runtime.c)\n"
                                   "target_include_directories(module PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})\n"
                                   "set_target_properties(module PROPERTIES PREFIX \"\" NO_SONAME ON)\n"
                                   "target_link_options(module PRIVATE ${LINK_FLAGS})\n\n";

static const char cmake_static[] =
    "add_library(%s_static STATIC network.c runtime.c)\n"
    "set_target_properties(%s_static PROPERTIES OUTPUT_NAME %s)\n"
    "target_compile_options(%s_static PRIVATE -URNNCC_BUILDING_MODULE -DRNNCC_PREFIX=%s_)\n"
    "target_include_directories(%s_static PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n";

static Text cmake_lists(Arena *arena, const Build *build) {
  const Build module = shared(build);
  const char *name = build->name;
  Text text = text_new(arena);
  text_add(&text,
           "# Builds the module and the static library with no rnncc at hand:\n"
           "# cmake -B build -DCMAKE_C_COMPILER=clang-19 && cmake --build build\n"
           "cmake_minimum_required(VERSION 3.16)\nproject(%s C)\n\n",
           name);
  add_arguments(&text, "set(KERNEL_FLAGS", source_args(arena, &module, SOURCE_KERNELS), ")\n");
  add_arguments(&text, "set(RUNTIME_FLAGS", source_args(arena, &module, SOURCE_RUNTIME), ")\n");
  add_arguments(&text, "set(LINK_FLAGS", link_args(arena, &module), ")\n");
  text_add(&text, "if(CMAKE_C_COMPILER_ID MATCHES Clang)\n");
  add_arguments(&text, "  add_compile_options(", clang_flags(arena, &module), ")\n");
  add_arguments(&text, "  list(APPEND LINK_FLAGS", clang_link_flags(arena, &module), ")\nendif()\n\n");
  text_add(&text, "%s", cmake_sources);
  if (!build->edge) text_add(&text, "%s", cmake_shared);
  text_add(&text, cmake_static, name, name, name, name, name, name);
  return text;
}

void write_build_files(Arena *arena, const Build *build, const char *folder) {
  Text make = makefile(arena, build), cmake = cmake_lists(arena, build);
  file_write(arena, arena_format(arena, "%s/Makefile", folder), make.data, make.length);
  file_write(arena, arena_format(arena, "%s/CMakeLists.txt", folder), cmake.data, cmake.length);
}
