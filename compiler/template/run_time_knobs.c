/* SPDX-License-Identifier: MIT */
#include "template/run_time_knobs.h"

#include <ctype.h>
#include <string.h>

#include "support/diagnostics.h"
#include "support/text.h"
#include "template/edits.h"
#include "template/names.h"

typedef struct Lift {
  Arena *arena;
  const TemplateAst *ast;
  const char *kernel;
  Names names;
  bool *varies; /* by declaration: the run knows its value */
  bool *takes;  /* by declaration: a function that needs `sizes` */
  Edits edits;
} Lift;

/* ---- what depends on the run ---- */

static int index_of(const Lift *lift, const Declaration *declaration) {
  return (int)(declaration - lift->ast->declarations);
}
static bool varies(const Lift *lift, const Name *name) { return lift->varies[index_of(lift, name->declaration)]; }
static bool takes(const Lift *lift, const Name *name) { return lift->takes[index_of(lift, name->declaration)]; }

/* Of an enumerator, its value; of a function, all of it. */
static bool depends(const Lift *lift, Range range) {
  for (int i = 0; i < lift->names.count; i++)
    if (range_inside(lift->names.list[i].range, range) &&
        (varies(lift, &lift->names.list[i]) || takes(lift, &lift->names.list[i])))
      return true;
  return false;
}

static void note(Lift *lift, int d, bool *changed) {
  const Declaration *declaration = &lift->ast->declarations[d];
  bool enumerator = declaration->is_enumerator;
  if (lift->varies[d] || lift->takes[d] || !depends(lift, enumerator ? declaration->value : declaration->whole)) return;
  if (!enumerator && !declaration->is_function)
    bug("%s: `%s` depends on a knob that is left to run time", lift->ast->path, declaration->name);
  *(enumerator ? &lift->varies[d] : &lift->takes[d]) = true;
  *changed = true;
}

static void find_dependants(Lift *lift, int n, const char *const *knobs) {
  for (int i = 0; i < n; i++) lift->varies[index_of(lift, template_declaration(lift->ast, knobs[i]))] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (int d = 0; d < lift->ast->n_declarations; d++) note(lift, d, &changed);
  }
}

/* ---- texts ---- */

/* `IN_W`: `in_w`. */
static const char *field_of(Arena *arena, const char *name) {
  char *field = arena_string(arena, name);
  for (char *at = field; *at; at++) *at = (char)tolower((unsigned char)*at);
  return field;
}

/* The text of a range, with `prefix` and a field in place of each name that varies. */
static const char *text_of(const Lift *lift, Range range, const char *prefix) {
  Edits edits = {.arena = lift->arena};
  for (int i = 0; i < lift->names.count; i++) {
    const Name *name = &lift->names.list[i];
    if (!range_inside(name->range, range) || !varies(lift, name)) continue;
    Range here = {name->range.begin - range.begin, name->range.end - range.begin};
    add_edit(&edits, here, arena_format(lift->arena, "%s%s", prefix, field_of(lift->arena, name->declaration->name)));
  }
  return apply_edits(&edits, lift->ast->text + range.begin, range.end - range.begin);
}

/* ---- enums ---- */

typedef struct Enumerators {
  const Lift *lift;
  Text kept;
  bool any_varies;
} Enumerators;

static enum CXChildVisitResult keep_constant(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Enumerators *all = data;
  if (clang.getCursorKind(cursor) != CXCursor_EnumConstantDecl) return CXChildVisit_Continue;
  const Lift *lift = all->lift;
  const Declaration *declaration =
      template_declaration(lift->ast, copy_cx_string(lift->arena, clang.getCursorSpelling(cursor)));
  if (lift->varies[index_of(lift, declaration)]) {
    all->any_varies = true;
    return CXChildVisit_Continue;
  }
  Range range = cursor_range(cursor);
  text_add(&all->kept, "%s%.*s", all->kept.length ? ", " : "", (int)(range.end - range.begin),
           lift->ast->text + range.begin);
  return CXChildVisit_Continue;
}

/* Enumerators that vary go; an enum that loses all of them, with its comment. */
static enum CXChildVisitResult shrink_enum(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Lift *lift = data;
  if (clang.getCursorKind(cursor) != CXCursor_EnumDecl ||
      !clang.Location_isFromMainFile(clang.getCursorLocation(cursor)))
    return CXChildVisit_Continue;
  Enumerators all = {.lift = lift, .kept = text_new(lift->arena)};
  clang.visitChildren(cursor, keep_constant, &all);
  if (!all.any_varies) return CXChildVisit_Continue;
  if (all.kept.length)
    add_edit(&lift->edits, cursor_range(cursor), arena_format(lift->arena, "enum { %s }", all.kept.data));
  else
    add_edit(&lift->edits, declaration_range(lift->ast, cursor), "");
  return CXChildVisit_Continue;
}

/* ---- functions ---- */

/* Behind the opening parenthesis that follows the name. */
static unsigned behind_parenthesis(const Lift *lift, const Name *name) {
  unsigned at = name->range.end;
  if (lift->ast->text[at] != '(')
    bug("%s: `%s`, which needs a knob that is left to run time, is not called", lift->ast->path,
        name->declaration->name);
  return at + 1;
}

static bool declares(const Lift *lift, const Name *name) {
  const Declaration *function = name->declaration;
  for (int i = 0; i < lift->names.count; i++) {
    const Name *first = &lift->names.list[i];
    if (first->declaration == function && range_inside(first->range, function->whole)) return first == name;
  }
  return false;
}

/* Uses of what varies, and the parameter and argument `sizes`. */
static void edit_names(Lift *lift) {
  for (int i = 0; i < lift->names.count; i++) {
    const Name *name = &lift->names.list[i];
    if (in_edits(&lift->edits, name->range.begin)) continue;
    if (varies(lift, name))
      add_edit(&lift->edits, name->range,
               arena_format(lift->arena, "sizes->%s", field_of(lift->arena, name->declaration->name)));
    if (!takes(lift, name) || !strcmp(name->declaration->name, lift->kernel)) continue;
    unsigned at = behind_parenthesis(lift, name);
    add_edit(&lift->edits, (Range){at, at}, declares(lift, name) ? "const Sizes *sizes, " : "sizes, ");
  }
}

/* ---- the kernel ---- */

/* Calls `add` for the knobs that vary, or for the constants that follow from them. */
static void each_varying(const Lift *lift, DeclarationKind kind, Text *out,
                         void (*add)(const Lift *, Text *, const Declaration *)) {
  for (int d = 0; d < lift->ast->n_declarations; d++)
    if (lift->varies[d] && lift->ast->declarations[d].kind == kind) add(lift, out, &lift->ast->declarations[d]);
}

static void add_field(const Lift *lift, Text *out, const Declaration *declaration) {
  text_add(out, "  int64_t %s;\n", field_of(lift->arena, declaration->name));
}
static void add_parameter(const Lift *lift, Text *out, const Declaration *declaration) {
  text_add(out, ", int64_t %s", field_of(lift->arena, declaration->name));
}
static void add_given(const Lift *lift, Text *out, const Declaration *declaration) {
  const char *field = field_of(lift->arena, declaration->name);
  text_add(out, "%s.%s = %s", out->length ? ", " : "", field, field);
}
static void add_computed(const Lift *lift, Text *out, const Declaration *declaration) {
  text_add(out, "  all.%s = %s;\n", field_of(lift->arena, declaration->name),
           text_of(lift, declaration->value, "all."));
}

static const char *varying(const Lift *lift, DeclarationKind kind,
                           void (*add)(const Lift *, Text *, const Declaration *)) {
  Text text = text_new(lift->arena);
  each_varying(lift, kind, &text, add);
  return text.length ? text.data : "";
}

static void edit_kernel(Lift *lift) {
  const Declaration *kernel = template_declaration(lift->ast, lift->kernel);
  const char *text = lift->ast->text;
  unsigned body = kernel->value.begin, end = body;
  while (text[end] != ')') end--;
  add_edit(&lift->edits, (Range){end, end}, varying(lift, DECLARATION_KNOB, add_parameter));
  add_edit(&lift->edits, (Range){body, body},
           arena_format(lift->arena, "\n  Sizes all = {%s};\n%s  const Sizes *sizes = &all;",
                        varying(lift, DECLARATION_KNOB, add_given), varying(lift, DECLARATION_OTHER, add_computed)));
}

/* Before the first function. */
static void declare_sizes(Lift *lift) {
  unsigned at = template_declaration(lift->ast, lift->kernel)->whole.begin;
  for (int d = 0; d < lift->ast->n_declarations; d++)
    if (lift->takes[d] && lift->ast->declarations[d].whole.begin < at) at = lift->ast->declarations[d].whole.begin;
  add_edit(&lift->edits, (Range){at, at},
           arena_format(lift->arena,
                        "/* What the run knows, and what follows from it. */\ntypedef struct Sizes {\n%s%s} Sizes;\n\n",
                        varying(lift, DECLARATION_KNOB, add_field), varying(lift, DECLARATION_OTHER, add_field)));
}

const char *leave_to_run_time(Arena *arena, const TemplateAst *ast, const char *kernel, int n,
                              const char *const *knobs) {
  Lift lift = {
      .arena = arena, .ast = ast, .kernel = kernel, .names = template_names(arena, ast), .edits = {.arena = arena}};
  lift.varies = ARENA_ARRAY(arena, bool, ast->n_declarations);
  lift.takes = ARENA_ARRAY(arena, bool, ast->n_declarations);
  find_dependants(&lift, n, knobs);
  clang.visitChildren(clang.getTranslationUnitCursor(ast->unit), shrink_enum, &lift);
  edit_names(&lift);
  edit_kernel(&lift);
  declare_sizes(&lift);
  return apply_edits(&lift.edits, ast->text, ast->length);
}
