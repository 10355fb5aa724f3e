/* SPDX-License-Identifier: MIT */
#include "template/libclang.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "support/clang_program.h"
#include "support/diagnostics.h"

Libclang clang;

/* ---- loading ---- */

static _Noreturn void cannot_load(const char *why) {
  fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT,
           "cannot load libclang, which reads the templates of kernels: %s; install it (Debian: apt-get install "
           "libclang1-" CLANG_TEXT(RNNCC_LLVM) " " CLANG_PACKAGES ")",
           why);
}

/* Where the loader finds it; else where it was when rnncc was built: of an LLVM in a folder of its own. */
static void *open_library(void) {
  void *library = dlopen(RNNCC_LIBCLANG, RTLD_LAZY);
  if (library) return library;
  Arena *arena = arena_new();
  const char *first = arena_string(arena, dlerror());
  library = dlopen(RNNCC_LLVM_LIBRARIES "/" RNNCC_LIBCLANG, RTLD_LAZY);
  if (!library) cannot_load(arena_format(arena, "%s; %s", first, dlerror()));
  arena_free(arena);
  return library;
}

static void *function_of(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (!function) cannot_load(dlerror());
  return function;
}

static void load(void) {
  if (clang.getClangVersion) return;
  void *library = open_library();
#define FUNCTION(name) clang.name = (__typeof__(clang.name))function_of(library, "clang_" #name);
#include "template/libclang.def"
}

/* ---- the index ---- */

/* libclang parses on a thread of its own, and aborts where the system has none to give. On the thread that asks a crash
 * of libclang would be one of rnncc's, too; but it is given nothing that the user wrote. */
static void keep_to_this_thread(void) { setenv("LIBCLANG_NOTHREADS", "1", 1); }

/* libclang before 17 keeps what units share in files, which stay there where rnncc is stopped. Of a unit, its own
 * declarations are visited, not those of the headers that it was precompiled with. */
CXIndex libclang_index(void) {
  load();
  keep_to_this_thread();
#if CINDEX_VERSION_MINOR >= 64
  return clang.createIndexWithOptions(
      &(CXIndexOptions){.Size = sizeof(CXIndexOptions), .ExcludeDeclarationsFromPCH = 1, .StorePreamblesInMemory = 1});
#else
  return clang.createIndex(1, 0);
#endif
}

/* ---- strings and diagnostics ---- */

const char *copy_cx_string(Arena *arena, CXString string) {
  const char *text = clang.getCString(string);
  char *copy = arena_string(arena, text ? text : "");
  clang.disposeString(string);
  return copy;
}

const char *libclang_version(Arena *arena) {
  load();
  return copy_cx_string(arena, clang.getClangVersion());
}

void libclang_check_files(Arena *arena, CXDiagnostic diagnostic) {
  const char *text = copy_cx_string(arena, clang.getDiagnosticSpelling(diagnostic));
  if (strstr(text, "modified since"))
    fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "a file of rnncc's own changed while it was read: %s", text);
}
