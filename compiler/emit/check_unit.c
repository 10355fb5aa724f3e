/* SPDX-License-Identifier: MIT */
#include "emit/unit.h"
#include "machine/targets.h"
#include "template/libclang.h"

enum { MAX_ARGUMENTS = 64 };

static const Node *node_at(const Unit *unit, size_t offset) {
  const Node *node = NULL;
  for (int i = 0; i < unit->n_marks && unit->marks[i].offset <= offset; i++) node = unit->marks[i].node;
  return node;
}

static Location diagnostic_place(const Unit *unit, CXDiagnostic diagnostic) {
  unsigned offset;
  CXSourceLocation at = clang.getDiagnosticLocation(diagnostic);
  clang.getSpellingLocation(at, NULL, NULL, NULL, &offset);
  const Node *node = clang.Location_isFromMainFile(at) ? node_at(unit, offset) : NULL;
  return node ? node->where : LOCATION_FILE("generated unit");
}

static bool tell(Arena *arena, const Unit *unit, CXDiagnostic diagnostic) {
  enum CXDiagnosticSeverity severity = clang.getDiagnosticSeverity(diagnostic);
  const char *text = copy_cx_string(arena, clang.formatDiagnostic(diagnostic, CXDiagnostic_DisplaySourceLocation));
  if (severity >= CXDiagnostic_Warning) warn_at(diagnostic_place(unit, diagnostic), "in generated code: %s", text);
  return severity >= CXDiagnostic_Error;
}

/* libclang is rnncc's own, and older perhaps than the clang of $RNNCC_CLANG. */
static bool knows_options(const Target *target) { return target->oldest_clang <= RNNCC_LLVM; }

void check_unit(Arena *arena, const Unit *unit, const char *folder, const char *const *clang_args) {
  if (!knows_options(unit->program->graph->config->target)) return;
  const char *arguments[MAX_ARGUMENTS];
  int count = 0;
  for (; clang_args[count]; count++) {
    if (count == MAX_ARGUMENTS - 2) bug("more than %d arguments for clang", MAX_ARGUMENTS);
    arguments[count] = clang_args[count];
  }
  arguments[count++] = arena_format(arena, "-I%s", folder);
  arguments[count++] = "-DSIMD_PLAIN=1";
  CXIndex index = libclang_index();
  CXTranslationUnit parsed = NULL;
  const char *path = arena_format(arena, "%s/%s", folder, unit->file);
  enum CXErrorCode status =
      clang.parseTranslationUnit2(index, path, arguments, count, NULL, 0, CXTranslationUnit_None, &parsed);
  if (status != CXError_Success) bug("libclang cannot parse the generated unit: error %d", (int)status);
  bool errors = false;
  for (unsigned i = 0; i < clang.getNumDiagnostics(parsed); i++) {
    CXDiagnostic diagnostic = clang.getDiagnostic(parsed, i);
    libclang_check_files(arena, diagnostic);
    errors |= tell(arena, unit, diagnostic);
    clang.disposeDiagnostic(diagnostic);
  }
  clang.disposeTranslationUnit(parsed);
  clang.disposeIndex(index);
  if (errors) bug("generated code does not compile");
}
