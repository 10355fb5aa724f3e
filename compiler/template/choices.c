/* SPDX-License-Identifier: MIT */
#include "template/choices.h"

#include <string.h>

#include "support/list.h"
#include "template/tokens.h"

typedef struct Reader {
  Arena *arena;
  const char *text;
  Choices choices;
} Reader;

/* ---- comments ---- */

/* The comment that ends before the declaration; "" if there is none. */
static const char *comment_before(const Reader *r, const char *declaration) {
  const char *end = declaration;
  while (end > r->text && strchr(" \n", end[-1])) end--;
  if (end - r->text < 4 || strncmp(end - 2, "*/", 2) != 0) return "";
  const char *begin = end - 4;
  while (begin > r->text && strncmp(begin, "/*", 2) != 0) begin--;
  return arena_format(r->arena, "%.*s", (int)(end - begin), begin);
}

/* The text after "legal:" on its line of the comment; NULL if there is none. */
static const char *legal_of(const Reader *r, const char *comment) {
  const char *mark = strstr(comment, LEGAL_MARK);
  if (!mark) return NULL;
  mark += strlen(LEGAL_MARK);
  return arena_format(r->arena, "%.*s", (int)strcspn(mark, "\n*"), mark);
}

/* ---- declarations ---- */

static bool is(Token token, const char *text) {
  return token.length == strlen(text) && !strncmp(token.text, text, token.length);
}

static void add(Reader *r, DeclarationKind kind, const char *name, const char *legal, const char *begin,
                const char *end) {
  Range value = {(unsigned)(begin - r->text), (unsigned)(end - r->text)};
  *LIST_ADD(r->arena, r->choices.list, r->choices.count, r->choices.capacity) = (Choice){kind, name, legal, value};
}

static const char *end_of(Token token) { return token.text + token.length; }

/* `enum { NAME = value };`: its value is what follows the `=`, up to the comma or brace. */
static void add_knobs(Reader *r, const SourceDeclaration *declaration, const char *legal) {
  const Token *tokens = declaration->tokens;
  int depth = 0;
  for (int i = 1, begin = 0; i < declaration->n_tokens; i++) {
    depth += is(tokens[i], "(") - is(tokens[i], ")");
    if (is(tokens[i], "=")) begin = i + 1;
    if (!begin || depth || !(is(tokens[i], ",") || is(tokens[i], "}"))) continue;
    const char *name = arena_format(r->arena, "%.*s", (int)tokens[begin - 2].length, tokens[begin - 2].text);
    add(r, DECLARATION_KNOB, name, legal, tokens[begin].text, end_of(tokens[i - 1]));
    begin = 0;
  }
}

/* `typedef type NAME;`: all between. */
static void add_type(Reader *r, const SourceDeclaration *declaration, const char *legal) {
  const char *name = declaration->names[0];
  for (int i = 1; i < declaration->n_tokens; i++)
    if (is(declaration->tokens[i], name)) {
      const char *begin = end_of(declaration->tokens[0]) + strlen(" ");
      add(r, DECLARATION_TYPE_KNOB, name, legal, begin, declaration->tokens[i].text);
      return;
    }
}

/* What is between the braces of its body. */
static void add_hook(Reader *r, const SourceDeclaration *declaration) {
  for (int i = 1; i < declaration->n_tokens; i++)
    if (is(declaration->tokens[i], "{")) {
      const Token *last = &declaration->tokens[declaration->n_tokens - 1];
      add(r, DECLARATION_HOOK, declaration->names[0], NULL, end_of(declaration->tokens[i]), last->text);
      return;
    }
}

static void read_declaration(Reader *r, const SourceDeclaration *declaration) {
  const char *comment = comment_before(r, declaration->tokens[0].text), *legal = legal_of(r, comment);
  if (declaration->n_names == 0) return;
  if (legal && is(declaration->tokens[0], "enum")) add_knobs(r, declaration, legal);
  if (legal && is(declaration->tokens[0], "typedef")) add_type(r, declaration, legal);
  if (strstr(comment, HOOK_MARK)) add_hook(r, declaration);
}

Choices template_choices(Arena *arena, const char *text) {
  Reader r = {.arena = arena, .text = text};
  SourceFile file = read_declarations(arena, text);
  for (int i = 0; i < file.n_declarations; i++) read_declaration(&r, &file.declarations[i]);
  return r.choices;
}
