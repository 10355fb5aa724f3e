/* SPDX-License-Identifier: MIT */
#include "template/template_ast.h"

#include <string.h>

#include "support/data_directory.h"
#include "support/diagnostics.h"
#include "support/list.h"
#include "support/text.h"
#include "template/session.h"

/* What stands before every template in libclang's unit: the headers that many templates include, and whose names
 * no other template has. These lines are the unit's preamble, which libclang keeps, so that it reads the headers once
 * for all templates. */
static const char headers[] = "#include \"kernel.h\"\n#include \"knobs.h\"\n#include \"simd/math.h\"\n"
                              "#include \"simd/simd.h\"\n#include \"simd/int8.h\"\n#include \"bands.h\"\n"
                              "#include \"chain.h\"\n#include \"panel.h\"\n#include \"panel_narrow.h\"\n"
                              "_Static_assert(1, \"ends the preamble\");\n";
enum { TEXT_BEGIN = sizeof headers - 1 };

unsigned template_offset(CXSourceLocation location) {
  unsigned offset;
  clang.getExpansionLocation(location, NULL, NULL, NULL, &offset);
  return offset - TEXT_BEGIN;
}

CXSourceRange template_text_range(const TemplateAst *ast) {
  CXSourceLocation begin = clang.getLocationForOffset(ast->unit, ast->file, TEXT_BEGIN);
  return clang.getRange(begin, clang.getLocationForOffset(ast->unit, ast->file, TEXT_BEGIN + (unsigned)ast->length));
}

Range cursor_range(CXCursor cursor) {
  CXSourceRange extent = clang.getCursorExtent(cursor);
  return (Range){template_offset(clang.getRangeStart(extent)), template_offset(clang.getRangeEnd(extent))};
}

const Declaration *template_declaration(const TemplateAst *ast, const char *name) {
  for (int i = 0; i < ast->n_declarations; i++)
    if (!strcmp(ast->declarations[i].name, name)) return &ast->declarations[i];
  return NULL;
}

/* ---- declarations ---- */

static Declaration *add_declaration(Arena *arena, TemplateAst *ast, DeclarationKind kind, CXCursor cursor) {
  Declaration *added = LIST_ADD(arena, ast->declarations, ast->n_declarations, ast->capacity);
  added->kind = kind;
  added->name = copy_cx_string(arena, clang.getCursorSpelling(cursor));
  return added;
}

Range declaration_range(const TemplateAst *ast, CXCursor cursor) {
  Range range = cursor_range(cursor);
  CXSourceRange comment = clang.Cursor_getCommentRange(cursor);
  if (!clang.Range_isNull(comment)) range.begin = template_offset(clang.getRangeStart(comment));
  while (range.end < ast->length && (ast->text[range.end] == ' ' || ast->text[range.end] == '\n')) range.end++;
  if (range.end < ast->length && ast->text[range.end] == ';') range.end++;
  return range;
}

/* To libclang a typedef ends before its attributes. */
static Range with_attributes(const TemplateAst *ast, Range type) {
  while (type.end < ast->length && ast->text[type.end - 1] != ';') type.end++;
  return type;
}

typedef struct Collector {
  Arena *arena;
  TemplateAst *ast;
  bool may_be_chosen; /* so says the comment */
  Range whole;
  const char *kernel_name;
} Collector;

static enum CXChildVisitResult first_child(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  *(CXCursor *)data = cursor;
  return CXChildVisit_Break;
}

static enum CXChildVisitResult collect_enumerator(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Collector *collector = data;
  if (clang.getCursorKind(cursor) != CXCursor_EnumConstantDecl) return CXChildVisit_Continue;
  DeclarationKind kind = collector->may_be_chosen ? DECLARATION_KNOB : DECLARATION_OTHER;
  Declaration *knob = add_declaration(collector->arena, collector->ast, kind, cursor);
  if (kind == DECLARATION_KNOB) knob->whole = collector->whole;
  knob->is_enumerator = true;
  knob->number = clang.getEnumConstantDeclValue(cursor);
  CXCursor value = clang.getNullCursor();
  clang.visitChildren(cursor, first_child, &value);
  if (!clang.Cursor_isNull(value))
    knob->value = cursor_range(value);
  else if (kind == DECLARATION_KNOB)
    bug("%s: knob %s has no value", collector->ast->path, knob->name);
  return CXChildVisit_Continue;
}

static void collect_typedef(Collector *collector, CXCursor cursor) {
  DeclarationKind kind = collector->may_be_chosen ? DECLARATION_TYPE_KNOB : DECLARATION_OTHER;
  Declaration *type = add_declaration(collector->arena, collector->ast, kind, cursor);
  type->whole = with_attributes(collector->ast, collector->whole);
  Range range = cursor_range(cursor);
  type->value = (Range){range.begin + (unsigned)strlen("typedef "), range.end - (unsigned)strlen(type->name)};
}

static enum CXChildVisitResult find_body(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  if (clang.getCursorKind(cursor) == CXCursor_CompoundStmt) *(CXCursor *)data = cursor;
  return CXChildVisit_Continue;
}

static void collect_function(Collector *collector, CXCursor cursor, const char *comment) {
  TemplateAst *ast = collector->ast;
  DeclarationKind kind = strstr(comment, HOOK_MARK) ? DECLARATION_HOOK : DECLARATION_OTHER;
  Declaration *function = add_declaration(collector->arena, ast, kind, cursor);
  function->whole = collector->whole;
  CXCursor body = clang.getNullCursor();
  clang.visitChildren(cursor, find_body, &body);
  Range braces = cursor_range(body);
  function->is_function = true;
  function->value = (Range){braces.begin + 1, braces.end - 1};
  if (!strcmp(function->name, collector->kernel_name)) ast->kernel = cursor;
}

static enum CXChildVisitResult collect(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Collector *collector = data;
  if (!clang.Location_isFromMainFile(clang.getCursorLocation(cursor))) return CXChildVisit_Continue;
  const char *comment = copy_cx_string(collector->arena, clang.Cursor_getRawCommentText(cursor));
  collector->may_be_chosen = strstr(comment, LEGAL_MARK);
  collector->whole = declaration_range(collector->ast, cursor);
  switch (clang.getCursorKind(cursor)) {
  case CXCursor_EnumDecl:
    if (!clang.Cursor_isAnonymous(cursor)) add_declaration(collector->arena, collector->ast, DECLARATION_OTHER, cursor);
    clang.visitChildren(cursor, collect_enumerator, collector);
    break;
  case CXCursor_TypedefDecl:
    collect_typedef(collector, cursor);
    break;
  case CXCursor_FunctionDecl:
    collect_function(collector, cursor, comment);
    break;
  case CXCursor_StructDecl:
    if (clang.Cursor_isAnonymous(cursor)) break;
    add_declaration(collector->arena, collector->ast, DECLARATION_OTHER, cursor);
    break;
  case CXCursor_VarDecl:
    add_declaration(collector->arena, collector->ast, DECLARATION_OTHER, cursor);
    break;
  default:
    break;
  }
  return CXChildVisit_Continue;
}

/* ---- includes ---- */

static void collect_includes(Arena *arena, TemplateAst *ast) {
  int capacity = 0;
  for (const char *line = ast->text; (line = strstr(line, "#include ")); line++) capacity++;
  ast->includes = ARENA_ARRAY(arena, const char *, capacity);
  ast->include_lines = ARENA_ARRAY(arena, Range, capacity);
  for (const char *line = ast->text; (line = strstr(line, "#include ")); line++) {
    const char *name = line + strlen("#include ");
    size_t length = strcspn(name, "\n");
    ast->includes[ast->n_includes] = arena_format(arena, "%.*s", (int)length, name);
    unsigned begin = (unsigned)(line - ast->text);
    ast->include_lines[ast->n_includes++] =
        (Range){begin, begin + (unsigned)strlen("#include ") + (unsigned)length + 1};
  }
}

/* ---- parsing ---- */

/* The lines of the headers that stand before the template. */
static unsigned header_lines(const TemplateAst *ast) {
  unsigned first;
  clang.getFileLocation(clang.getLocationForOffset(ast->unit, ast->file, TEXT_BEGIN), NULL, &first, NULL, NULL);
  return first - 1;
}

/* "PATH:LINE:COLUMN": libclang's own text would name the file that its unit began with, and count the headers. */
static const char *place_of(Arena *arena, const TemplateAst *ast, CXDiagnostic diagnostic) {
  CXFile file;
  unsigned line, column, offset, above = header_lines(ast);
  clang.getFileLocation(clang.getDiagnosticLocation(diagnostic), &file, &line, &column, &offset);
  if (!file) return ast->path;
  if (!clang.File_isEqual(file, ast->file))
    return arena_format(arena, "%s:%u:%u", copy_cx_string(arena, clang.getFileName(file)), line, column);
  if (line <= above) return arena_format(arena, "line %u of the headers before %s", line, ast->path);
  return arena_format(arena, "%s:%u:%u", ast->path, line - above, column);
}

/* A header that is missing is one of an install that is not whole, one that changes of an install that goes on; all
 * else is a mistake in the template. */
static const char *mistake_of(Arena *arena, const TemplateAst *ast, CXDiagnostic diagnostic) {
  const char *place = place_of(arena, ast, diagnostic),
             *what = copy_cx_string(arena, clang.getDiagnosticSpelling(diagnostic));
  if (strstr(what, "file not found"))
    fatal_at(
        LOCATION_FILE(place), EXIT_ENVIRONMENT,
        "%s, which is rnncc's own, or clang's; install that again, whole, or set RNNCC_DATA to the folder that has "
        "rnncc's templates and runtime",
        what);
  libclang_check_files(arena, diagnostic);
  return arena_format(arena, "%s: %s", place, what);
}

/* NULL: there is none. */
static const char *first_mistake(Arena *arena, const TemplateAst *ast) {
  for (unsigned i = 0; i < clang.getNumDiagnostics(ast->unit); i++) {
    CXDiagnostic diagnostic = clang.getDiagnostic(ast->unit, i);
    if (clang.getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error) return mistake_of(arena, ast, diagnostic);
    clang.disposeDiagnostic(diagnostic);
  }
  return NULL;
}

/* What templates include is parsed once and kept in memory, if libclang can: else it parses all for each template. Of
 * functions there, only the declarations: what they do is not asked. */
#if CINDEX_VERSION_MINOR >= 64
enum {
  PARSE_OPTIONS = CXTranslationUnit_PrecompiledPreamble | CXTranslationUnit_CreatePreambleOnFirstParse |
                  CXTranslationUnit_SkipFunctionBodies | CXTranslationUnit_LimitSkipFunctionBodiesToPreamble
};
#else
enum { PARSE_OPTIONS = CXTranslationUnit_None };
#endif

static CXIndex shared_index(TemplateSession *session) {
  if (!session->index) session->index = libclang_index();
  return session->index;
}

/* libclang's unit for `lanes`: the template that was parsed last, behind the headers. */
typedef struct KeptUnit {
  struct KeptUnit *next;
  int lanes;
  const char *path; /* of the first template: libclang keeps the preamble of a file that exists */
  CXTranslationUnit unit;
} KeptUnit;

/* Warnings are for the tests that compile each template (-w: nor what is looked at for them). Kernels include no header
 * of libc, which need not be searched for, nor looked at again for each template. */
static enum CXErrorCode parse_first(TemplateSession *session, KeptUnit *unit, struct CXUnsavedFile *file) {
  Arena *arena = session->arena;
  const char *data = data_directory(arena);
  const char *arguments[] = {"-x",
                             "c",
                             "-std=gnu11",
                             "-w",
                             "-ffreestanding",
                             "-nostdlibinc",
                             "-fparse-all-comments",
                             "-DSIMD_PLAIN=1",
                             arena_format(arena, "-DSIMD_PLAIN_LANES=%d", unit->lanes),
                             arena_format(arena, "-I%s/templates", data),
                             arena_format(arena, "-I%s/runtime", data)};
  CXIndex index = shared_index(session);
  return clang.parseTranslationUnit2(index, unit->path, arguments, (int)(sizeof arguments / sizeof *arguments), file, 1,
                                     PARSE_OPTIONS, &unit->unit);
}

static KeptUnit *add_unit(TemplateSession *session, const char *path, int lanes) {
  KeptUnit *unit = ARENA_NEW(session->arena, KeptUnit);
  *unit = (KeptUnit){session->units, lanes, arena_string(session->arena, path), NULL};
  return session->units = unit;
}

static const KeptUnit *parse(const char *template_path, const char *text, int lanes) {
  TemplateSession *session = template_session();
  KeptUnit *unit = session->units;
  while (unit && unit->lanes != lanes) unit = unit->next;
  bool first = !unit;
  if (first) unit = add_unit(session, template_path, lanes);
  Arena *for_call = arena_new(); /* libclang copies the text */
  const char *whole = arena_format(for_call, "%s%s", headers, text);
  struct CXUnsavedFile file = {.Filename = unit->path, .Contents = whole, .Length = strlen(whole)};
  int status = first ? (int)parse_first(session, unit, &file)
                     : clang.reparseTranslationUnit(unit->unit, 1, &file, CXReparse_None);
  arena_free(for_call);
  if (status != 0) bug("libclang cannot parse %s: error %d", template_path, status);
  return unit;
}

static TemplateAst *ast_of(Arena *arena, const char *path, const char *text, int lanes) {
  TemplateAst *ast = ARENA_NEW(arena, TemplateAst);
  ast->path = path;
  ast->text = text;
  ast->length = strlen(text);
  const KeptUnit *unit = parse(path, text, lanes);
  ast->unit = unit->unit;
  ast->file = clang.getFile(ast->unit, unit->path);
  return ast;
}

TemplateAst *template_ast_parse(Arena *arena, const char *path, const char *name, const char *written, const char *text,
                                int lanes) {
  TemplateAst *ast = ast_of(arena, path, text, lanes);
  const char *mistake = first_mistake(arena, ast);
  if (mistake) {
    const char *as_written = first_mistake(arena, ast_of(arena, path, written, lanes));
    bug("template %s does not compile: %s", path, as_written ? as_written : mistake);
  }
  ast->kernel = clang.getNullCursor();
  Collector collector = {.arena = arena, .ast = ast, .kernel_name = name};
  clang.visitChildren(clang.getTranslationUnitCursor(ast->unit), collect, &collector);
  if (clang.Cursor_isNull(ast->kernel)) bug("%s: no function `%s`", path, name);
  collect_includes(arena, ast);
  return ast;
}
