/* SPDX-License-Identifier: MIT */
#include "template/names.h"

#include <string.h>

/* Does the token refer to the file-scope declaration of its name, not to a field or a local? Tokens of a parameter's
 * array bound have the parameter's cursor, which has another name. */
static bool means_file_scope(Arena *arena, CXCursor cursor, const char *token) {
  enum CXCursorKind kind = clang.getCursorKind(cursor);
  CXCursor target = clang.getCursorReferenced(cursor);
  if (strcmp(copy_cx_string(arena, clang.getCursorSpelling(target)), token) != 0) return true;
  if (kind == CXCursor_MemberRefExpr || kind == CXCursor_FieldDecl || kind == CXCursor_MemberRef) return false;
  if (clang.getCursorKind(target) == CXCursor_EnumConstantDecl) return true;
  return clang.getCursorKind(clang.getCursorSemanticParent(target)) == CXCursor_TranslationUnit;
}

Names template_names(Arena *arena, const TemplateAst *ast) {
  CXToken *tokens;
  unsigned count;
  clang.tokenize(ast->unit, template_text_range(ast), &tokens, &count);
  CXCursor *cursors = ARENA_ARRAY(arena, CXCursor, count);
  clang.annotateTokens(ast->unit, tokens, count, cursors);
  Names names = {.list = ARENA_ARRAY(arena, Name, count)};
  for (unsigned i = 0; i < count; i++) {
    if (clang.getTokenKind(tokens[i]) != CXToken_Identifier) continue;
    const char *text = copy_cx_string(arena, clang.getTokenSpelling(ast->unit, tokens[i]));
    const Declaration *declaration = template_declaration(ast, text);
    if (!declaration || !means_file_scope(arena, cursors[i], text)) continue;
    unsigned at = template_offset(clang.getTokenLocation(ast->unit, tokens[i]));
    names.list[names.count++] = (Name){declaration, {at, at + (unsigned)strlen(text)}};
  }
  clang.disposeTokens(ast->unit, tokens, count);
  return names;
}
