/* SPDX-License-Identifier: MIT */
/* A template as libclang parses it: its knobs, types, hooks and kernel, with their ranges in the text. */
#ifndef RNNCC_TEMPLATE_AST_H
#define RNNCC_TEMPLATE_AST_H

#include <stdbool.h>

#include "template/libclang.h"

/* Half-open byte range of the template's text. */
typedef struct Range {
  unsigned begin, end;
} Range;

typedef enum DeclarationKind {
  DECLARATION_KNOB,
  DECLARATION_TYPE_KNOB,
  DECLARATION_HOOK,
  DECLARATION_OTHER
} DeclarationKind;

/* What the comment of a knob or a type has, and that of a hook. */
#define LEGAL_MARK "legal:"
#define HOOK_MARK "hook:"

/* A file-scope name of the template. */
typedef struct Declaration {
  DeclarationKind kind;
  const char *name;
  Range whole;      /* the declaration with its doc comment and its semicolon */
  Range value;      /* enumerator: its initialiser; type knob: the type; function: the body without braces */
  long long number; /* knob: its value as written */
  bool is_enumerator, is_function;
} Declaration;

typedef struct TemplateAst {
  CXTranslationUnit unit;
  CXFile file;
  const char *path, *text;
  size_t length;
  int n_declarations, capacity;
  Declaration *declarations;
  CXCursor kernel; /* the function named as the file */
  int n_includes;
  const char **includes; /* as written, without quotes */
  Range *include_lines;
} TemplateAst;

/* Parses `text` of the template `path` with the plain vocabulary of `lanes` floats; bug() if it does not compile, which
 * tells the line of `written`, of which the text was made, if the mistake is there, too. The unit and its cursors are
 * valid until the next text is parsed. */
TemplateAst *template_ast_parse(Arena *arena, const char *path, const char *name, const char *written, const char *text,
                                int lanes);

const Declaration *template_declaration(const TemplateAst *ast, const char *name); /* NULL if there is none */
Range cursor_range(CXCursor cursor);
/* With the comment before it and the semicolon behind it. */
Range declaration_range(const TemplateAst *ast, CXCursor cursor);
unsigned template_offset(CXSourceLocation location); /* in the template's text, in bytes */
CXSourceRange template_text_range(const TemplateAst *ast);

#endif
