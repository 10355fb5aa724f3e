/* SPDX-License-Identifier: MIT */
/*
 * The values of knobs, types and hooks are written in (choices.c); the parse then sees the constants, so that
 * conditions over knobs can be evaluated, and finds the names to rename. Where knobs are left to run time, there is a
 * parse before, by which they become parameters of the kernel (run_time_knobs.c).
 */
#include "template/specialise.h"

#include <stdlib.h>
#include <string.h>

#include "machine/targets.h"
#include "support/data_directory.h"
#include "support/diagnostics.h"
#include "support/text.h"
#include "template/choices.h"
#include "template/edits.h"
#include "template/names.h"
#include "template/parts.h"
#include "template/run_time_knobs.h"
#include "template/session.h"
#include "template/template_ast.h"

/* ---- first step: values, types and hook bodies ---- */

/* `1..14`, `0 1 3`, or both: `0 4..8`. */
static bool legal_number(const char *legal, long long value) {
  for (const char *at = legal; *at;) {
    char *end;
    long long low = strtoll(at, &end, 10), high = low;
    if (end == at) return false;
    if (end[0] == '.' && end[1] == '.') high = strtoll(end + 2, &end, 10);
    if (low <= value && value <= high) return true;
    at = end + strspn(end, " ,\t");
  }
  return false;
}

static bool legal_word(const char *legal, const char *word) {
  size_t length = strlen(word);
  for (const char *at = legal; (at = strstr(at, word)); at += length) {
    bool starts = at == legal || at[-1] == ' ', ends = at[length] == 0 || at[length] == ' ';
    if (starts && ends) return true;
  }
  return false;
}

/* A template as written. */
typedef struct KeptTemplate {
  struct KeptTemplate *next;
  const char *path, *text;
  Choices choices;
} KeptTemplate;

static const Choice *expect(const KeptTemplate *template, DeclarationKind kind, const char *what, const char *name) {
  const Choices *choices = &template->choices;
  for (int i = 0; i < choices->count; i++)
    if (choices->list[i].kind == kind && !strcmp(choices->list[i].name, name)) return &choices->list[i];
  bug("%s has no %s `%s`", template->path, what, name);
}

static char *write_choices(Arena *arena, const KeptTemplate *template, const KernelSpec *spec) {
  Edits edits = {.arena = arena};
  for (int i = 0; i < spec->n_run_time; i++) expect(template, DECLARATION_KNOB, "knob", spec->run_time[i]);
  for (int i = 0; i < spec->n_knobs; i++) {
    const Choice *knob = expect(template, DECLARATION_KNOB, "knob", spec->knobs[i].name);
    long long value = spec->knobs[i].value;
    if (!legal_number(knob->legal, value))
      bug("%s: knob %s = %lld, legal:%s", template->path, knob->name, value, knob->legal);
    add_edit(&edits, knob->value, arena_format(arena, "%lld", value));
  }
  for (int i = 0; i < spec->n_types; i++) {
    const Choice *type = expect(template, DECLARATION_TYPE_KNOB, "type", spec->types[i].name);
    if (!legal_word(type->legal, spec->types[i].type))
      bug("%s: type %s = %s, legal:%s", template->path, type->name, spec->types[i].type, type->legal);
    add_edit(&edits, type->value, arena_format(arena, "%s ", spec->types[i].type));
  }
  for (int i = 0; i < spec->n_hooks; i++) {
    const Choice *hook = expect(template, DECLARATION_HOOK, "hook", spec->hooks[i].function);
    add_edit(&edits, hook->value, arena_format(arena, "\n  %s\n", spec->hooks[i].body));
  }
  return apply_edits(&edits, template->text, strlen(template->text));
}

/* ---- second step: dead branches ---- */

typedef struct Pruner {
  const TemplateAst *ast;
  Edits *edits;
  unsigned depth; /* braces dropped around the statement at hand */
} Pruner;

typedef struct Block {
  CXCursor first, last;
  bool declares;
} Block;

typedef struct Children {
  int count;
  CXCursor list[4];
} Children;

static enum CXChildVisitResult list_children(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Children *children = data;
  if (children->count < 4) children->list[children->count++] = cursor;
  return CXChildVisit_Continue;
}

static enum CXChildVisitResult list_statements(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  Block *block = data;
  if (clang.Cursor_isNull(block->first)) block->first = cursor;
  block->last = cursor;
  block->declares |= clang.getCursorKind(cursor) == CXCursor_DeclStmt;
  return CXChildVisit_Continue;
}

/* Does an instruction set's header have it? The number of lanes does not count: templates are read with the target's.
 */
static bool is_of_vectors(CXCursor constant) {
  CXFile file;
  clang.getFileLocation(clang.getCursorLocation(constant), &file, NULL, NULL, NULL);
  CXString path = clang.getFileName(file), name = clang.getCursorSpelling(constant);
  const char *folder = clang.getCString(path) ? strstr(clang.getCString(path), "/simd/") : NULL;
  bool found = folder && strcmp(clang.getCString(name), "LANES");
  clang.disposeString(path);
  clang.disposeString(name);
  return found;
}

/* Is there a constant of an instruction set, or one made of such? */
static enum CXChildVisitResult find_vector_constant(CXCursor cursor, CXCursor parent, CXClientData data) {
  (void)parent;
  bool *found = data;
  if (clang.getCursorKind(cursor) != CXCursor_DeclRefExpr) return CXChildVisit_Recurse;
  CXCursor constant = clang.getCursorReferenced(cursor);
  if (clang.getCursorKind(constant) != CXCursor_EnumConstantDecl) return CXChildVisit_Continue;
  if (is_of_vectors(constant))
    *found = true;
  else
    clang.visitChildren(constant, find_vector_constant, data);
  return *found ? CXChildVisit_Break : CXChildVisit_Continue;
}

/* Templates are read with one instruction set for all targets: what it says of registers is not known. */
static bool depends_on_vectors(CXCursor condition) {
  bool found = false;
  if (find_vector_constant(condition, condition, &found) == CXChildVisit_Recurse)
    clang.visitChildren(condition, find_vector_constant, &found);
  return found;
}

/* False if the condition is not known at compile time. */
static bool evaluate(CXCursor condition, bool *value) {
  CXEvalResult result = clang.Cursor_Evaluate(condition);
  if (!result) return false;
  bool known = clang.EvalResult_getKind(result) == CXEval_Int && !depends_on_vectors(condition);
  if (known) *value = clang.EvalResult_getAsLongLong(result) != 0;
  clang.EvalResult_dispose(result);
  return known;
}

/* The statement's range, with the semicolon that libclang omits after an expression. */
static Range statement_range(const TemplateAst *ast, CXCursor cursor) {
  Range range = cursor_range(cursor);
  if (ast->text[range.end - 1] == '}' || ast->text[range.end - 1] == ';') return range;
  while (ast->text[range.end] != ';' && range.end < ast->length) range.end++;
  range.end++;
  return range;
}

/* A block without its braces, unless it has declarations. */
static Range unwrapped(const TemplateAst *ast, CXCursor live) {
  Range range = statement_range(ast, live);
  if (clang.getCursorKind(live) != CXCursor_CompoundStmt) return range;
  Block block = {.first = clang.getNullCursor()};
  clang.visitChildren(live, list_statements, &block);
  if (block.declares || clang.Cursor_isNull(block.first)) return range;
  return (Range){cursor_range(block.first).begin, statement_range(ast, block.last).end};
}

/* Removes one level of indentation from a block without braces. */
static void dedent(const Pruner *pruner, Range range) {
  const char *text = pruner->ast->text;
  unsigned skip = 2 * pruner->depth;
  for (unsigned at = range.begin; at + skip + 3 < range.end; at++)
    if (text[at] == '\n' && !strncmp(text + at + 1 + skip, "  ", 2))
      add_edit(pruner->edits, (Range){at + 1 + skip, at + 3 + skip}, "");
}

static enum CXChildVisitResult prune(CXCursor cursor, CXCursor parent, CXClientData data);

static void keep_branch(Pruner *pruner, Range whole, CXCursor live, CXCursor parent, bool in_block) {
  Range kept = in_block ? unwrapped(pruner->ast, live) : statement_range(pruner->ast, live);
  bool bare = kept.begin != cursor_range(live).begin;
  add_edit(pruner->edits, (Range){whole.begin, kept.begin}, "");
  if (kept.end < whole.end) add_edit(pruner->edits, (Range){kept.end, whole.end}, "");
  if (bare) dedent(pruner, kept);
  pruner->depth += bare;
  if (clang.getCursorKind(live) == CXCursor_IfStmt)
    prune(live, parent, pruner);
  else
    clang.visitChildren(live, prune, pruner);
  pruner->depth -= bare;
}

static enum CXChildVisitResult prune(CXCursor cursor, CXCursor parent, CXClientData data) {
  Pruner *pruner = data;
  bool top = clang.getCursorKind(parent) == CXCursor_TranslationUnit;
  if (top && !clang.Location_isFromMainFile(clang.getCursorLocation(cursor))) return CXChildVisit_Continue;
  bool value;
  if (clang.getCursorKind(cursor) != CXCursor_IfStmt) return CXChildVisit_Recurse;
  Children parts = {0};
  clang.visitChildren(cursor, list_children, &parts);
  if (parts.count < 2 || !evaluate(parts.list[0], &value)) return CXChildVisit_Recurse;
  Range whole = statement_range(pruner->ast, cursor);
  int live = value ? 1 : 2;
  bool in_block = clang.getCursorKind(parent) == CXCursor_CompoundStmt;
  if (live < parts.count)
    keep_branch(pruner, whole, parts.list[live], parent, in_block);
  else
    add_edit(pruner->edits, whole, in_block ? "" : "{}");
  return CXChildVisit_Continue;
}

/* ---- second step: names ---- */

/* Removes unused functions and other declarations, until none is left. */
static void drop_unused(Edits *edits, const TemplateAst *ast, const Names *names, const char *kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int d = 0; d < ast->n_declarations; d++) {
      const Declaration *declaration = &ast->declarations[d];
      bool candidate = declaration->kind == DECLARATION_OTHER || declaration->kind == DECLARATION_HOOK;
      if (!candidate || !strcmp(declaration->name, kernel) || in_edits(edits, declaration->whole.begin)) continue;
      if (declaration->whole.end == 0) continue; /* an enumerator, removed with its enum */
      bool used = false;
      for (int i = 0; i < names->count && !used; i++) {
        const Name *name = &names->list[i];
        used = !strcmp(name->declaration->name, declaration->name) && !range_inside(name->range, declaration->whole) &&
               !in_edits(edits, name->range.begin);
      }
      if (used) continue;
      add_edit(edits, declaration->whole, "");
      changed = true;
    }
  }
}

static void drop_choices(Edits *edits, const TemplateAst *ast) {
  for (int i = 0; i < ast->n_declarations; i++) {
    const Declaration *declaration = &ast->declarations[i];
    bool choice = declaration->kind == DECLARATION_KNOB || declaration->kind == DECLARATION_TYPE_KNOB;
    if (choice) add_edit(edits, declaration->whole, "");
  }
  for (int i = 0; i < ast->n_includes; i++) add_edit(edits, ast->include_lines[i], "");
}

static const char *new_name(Arena *arena, const TemplateAst *ast, const Declaration *declaration, const char *prefix) {
  switch (declaration->kind) {
  case DECLARATION_KNOB:
    return arena_format(arena, declaration->number < 0 ? "(%lld)" : "%lld", declaration->number);
  case DECLARATION_TYPE_KNOB: {
    Range type = declaration->value;
    while (type.end > type.begin && ast->text[type.end - 1] == ' ') type.end--;
    return arena_format(arena, "%.*s", (int)(type.end - type.begin), ast->text + type.begin);
  }
  default:
    return arena_format(arena, "%s_%s", prefix, declaration->name);
  }
}

/* ---- tidying the text ---- */

/* Removes the licence comment and repeated blank lines. */
static char *tidy(Arena *arena, const char *text) {
  Text out = text_new(arena);
  if (!strncmp(text, "/* SPDX", 7)) text = strchr(text, '\n') + 1;
  int blank = 1;
  while (*text) {
    size_t length = strcspn(text, "\n");
    bool empty = strspn(text, " \t") >= length;
    if (!empty || !blank) text_add(&out, "%.*s\n", empty ? 0 : (int)length, text);
    blank = empty;
    text += length + (text[length] == '\n');
  }
  return out.data;
}

/* ---- the kernel ---- */

/* The element type of a C type; RNNCC_NONE: none. */
static DType element_of(CXType type) {
  int bits = 8 * (int)clang.Type_getSizeOf(type);
  switch (type.kind) {
  case CXType_Float:
    return RNNCC_F32;
  case CXType_Double:
    return RNNCC_F64;
  case CXType_Char_S:
  case CXType_SChar:
  case CXType_Short:
  case CXType_Int:
  case CXType_Long:
  case CXType_LongLong:
    return dtype_of_bits(DTYPE_SIGNED, bits);
  case CXType_UChar:
  case CXType_UShort:
  case CXType_UInt:
  case CXType_ULong:
  case CXType_ULongLong:
    return dtype_of_bits(DTYPE_UNSIGNED, bits);
  default:
    return RNNCC_NONE;
  }
}

static Parameter parameter_of(Arena *arena, CXCursor cursor) {
  CXType type = clang.getCanonicalType(clang.getCursorType(cursor)), target = clang.getPointeeType(type);
  Parameter parameter = {.name = copy_cx_string(arena, clang.getCursorSpelling(cursor))};
  parameter.kind = type.kind == CXType_Float ? PARAMETER_FLOAT : PARAMETER_INTEGER;
  if (type.kind == CXType_Double) parameter.kind = PARAMETER_DOUBLE;
  if (type.kind != CXType_Pointer) return parameter;
  parameter.kind = target.kind == CXType_Pointer ? PARAMETER_POINTERS : PARAMETER_POINTER;
  if (target.kind == CXType_Pointer) target = clang.getPointeeType(target);
  parameter.points_to_const = clang.isConstQualifiedType(target);
  parameter.element = element_of(target);
  return parameter;
}

static void read_signature(Arena *arena, const TemplateAst *ast, SpecialisedKernel *kernel) {
  int count = clang.Cursor_getNumArguments(ast->kernel);
  Parameter *parameters = ARENA_ARRAY(arena, Parameter, count);
  for (int i = 0; i < count; i++)
    parameters[i] = parameter_of(arena, clang.Cursor_getArgument(ast->kernel, (unsigned)i));
  kernel->n_parameters = count;
  kernel->parameters = parameters;
}

static void rename_and_prune(Arena *arena, const TemplateAst *ast, const char *name, const char *prefix,
                             SpecialisedKernel *kernel) {
  Edits edits = {.arena = arena};
  Pruner pruner = {ast, &edits, 0};
  clang.visitChildren(clang.getTranslationUnitCursor(ast->unit), prune, &pruner);
  drop_choices(&edits, ast);
  Names names = template_names(arena, ast);
  drop_unused(&edits, ast, &names, name);
  for (int i = 0; i < names.count; i++) {
    const Name *use = &names.list[i];
    if (!in_edits(&edits, use->range.begin))
      add_edit(&edits, use->range, new_name(arena, ast, use->declaration, prefix));
  }
  kernel->text = tidy(arena, apply_edits(&edits, ast->text, ast->length));
}

static const KeptTemplate *template_as_written(TemplateSession *session, const char *name) {
  Arena *arena = session->arena;
  const char *path = data_file(arena, arena_format(arena, "templates/%s.c", name));
  KeptTemplate *known = session->templates;
  while (known && strcmp(known->path, path) != 0) known = known->next;
  if (known) return known;
  known = ARENA_NEW(arena, KeptTemplate);
  const char *text = template_text(arena, path);
  *known = (KeptTemplate){session->templates, path, text, template_choices(arena, text)};
  return session->templates = known;
}

static SpecialisedKernel *make_kernel(TemplateSession *session, const KernelSpec *spec, int lanes) {
  static const char prefix[] = {NAME_MARK, 0};
  Arena *arena = session->arena;
  const KeptTemplate *written = template_as_written(session, spec->template_name);
  const char *chosen = write_choices(arena, written, spec);
  const TemplateAst *ast = template_ast_parse(arena, written->path, spec->template_name, written->text, chosen, lanes);
  if (spec->n_run_time > 0) {
    chosen = leave_to_run_time(arena, ast, spec->template_name, spec->n_run_time, spec->run_time);
    ast = template_ast_parse(arena, written->path, spec->template_name, written->text, chosen, lanes);
  }
  SpecialisedKernel *kernel = ARENA_NEW(arena, SpecialisedKernel);
  kernel->function = arena_format(arena, "%s_%s", prefix, spec->template_name);
  kernel->n_includes = ast->n_includes;
  kernel->includes = ast->includes;
  read_signature(arena, ast, kernel);
  rename_and_prune(arena, ast, spec->template_name, prefix, kernel);
  return kernel;
}

KernelSpec *kernel_spec_new(Arena *arena, const char *template_name) {
  KernelSpec *spec = ARENA_NEW(arena, KernelSpec);
  spec->arena = arena;
  spec->template_name = template_name;
  return spec;
}

const char *kernel_key(Arena *arena, const KernelSpec *spec) {
  Text key = text_new(arena);
  text_add(&key, "%s", spec->template_name);
  for (int i = 0; i < spec->n_knobs; i++)
    text_add(&key, " %s=%lld", spec->knobs[i].name, (long long)spec->knobs[i].value);
  for (int i = 0; i < spec->n_run_time; i++) text_add(&key, " %s=run", spec->run_time[i]);
  for (int i = 0; i < spec->n_types; i++) text_add(&key, " %s=%s", spec->types[i].name, spec->types[i].type);
  for (int i = 0; i < spec->n_hooks; i++) text_add(&key, " %s={%s}", spec->hooks[i].function, spec->hooks[i].body);
  return key.data;
}

typedef struct KeptKernel {
  struct KeptKernel *next;
  const char *key;
  int lanes;
  const SpecialisedKernel *kernel;
} KeptKernel;

const SpecialisedKernel *specialise_unnamed(const KernelSpec *spec, int lanes) {
  TemplateSession *session = template_session();
  const char *key = kernel_key(spec->arena, spec);
  KeptKernel *known = session->kernels;
  while (known && (known->lanes != lanes || strcmp(known->key, key) != 0)) known = known->next;
  if (known) return known->kernel;
  known = ARENA_NEW(session->arena, KeptKernel);
  *known = (KeptKernel){session->kernels, arena_string(session->arena, key), lanes, make_kernel(session, spec, lanes)};
  session->kernels = known;
  return known->kernel;
}

static const char *with_prefix(Arena *arena, const char *text, const char *prefix) {
  Text named = text_new(arena);
  for (const char *mark; (mark = strchr(text, NAME_MARK)); text = mark + 1) {
    text_bytes(&named, text, (size_t)(mark - text));
    text_add(&named, "%s", prefix);
  }
  text_add(&named, "%s", text);
  return named.data;
}

bool kernel_includes(const SpecialisedKernel *kernel, const char *header) {
  for (int i = 0; i < kernel->n_includes; i++)
    if (!strcmp(kernel->includes[i], header)) return true;
  return false;
}

SpecialisedKernel *specialise(Graph *graph, const KernelSpec *spec, const char *prefix) {
  const SpecialisedKernel *unnamed = specialise_unnamed(spec, graph->config->target->lanes);
  SpecialisedKernel *kernel = arena_copy(graph->arena, unnamed, sizeof *unnamed);
  kernel->function = with_prefix(graph->arena, unnamed->function, prefix);
  kernel->text = with_prefix(graph->arena, unnamed->text, prefix);
  return kernel;
}
