/* SPDX-License-Identifier: MIT */
#include "template/libclang.h"

#include <stdlib.h>
#include <string.h>

#include "support/diagnostics.h"
#include "template/template_ast.h"

/* libclang parses on a thread of its own, and aborts where the system has none to give. On the thread that asks a crash
 * of libclang would be one of rnncc's, too; but it is given nothing that the user wrote. */
static void keep_to_this_thread(void) { setenv("LIBCLANG_NOTHREADS", "1", 1); }

/* libclang before 17 keeps what units share in files, which stay there where rnncc is stopped. Of a unit, its own
 * declarations are visited, not those of the headers that it was precompiled with. */
CXIndex libclang_index(void) {
  keep_to_this_thread();
#if CINDEX_VERSION_MINOR >= 64
  return clang_createIndexWithOptions(
      &(CXIndexOptions){.Size = sizeof(CXIndexOptions), .ExcludeDeclarationsFromPCH = 1, .StorePreamblesInMemory = 1});
#else
  return clang_createIndex(1, 0);
#endif
}

const char *libclang_version(Arena *arena) { return copy_cx_string(arena, clang_getClangVersion()); }

void libclang_check_files(Arena *arena, CXDiagnostic diagnostic) {
  const char *text = copy_cx_string(arena, clang_getDiagnosticSpelling(diagnostic));
  if (strstr(text, "modified since"))
    fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "a file of rnncc's own changed while it was read: %s", text);
}
