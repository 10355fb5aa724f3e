/* SPDX-License-Identifier: MIT */
#include "template/tokens.h"

#include <ctype.h>
#include <string.h>

#include "template/specialise.h"

/* ---- tokens ---- */

/* The position after a comment; `at` if there is none. */
static const char *after_comment(const char *at) {
  if (at[0] != '/' || (at[1] != '*' && at[1] != '/')) return at;
  if (at[1] == '/') return at + strcspn(at, "\n");
  const char *end = strstr(at + 2, "*/");
  return end ? end + 2 : at + strlen(at);
}

/* The position after blanks and comments; *line_ended: they contain the end of a line. */
static const char *after_spacing(const char *at, bool *line_ended) {
  *line_ended = false;
  for (;;) {
    const char *next = after_comment(at);
    if (at[0] == '\\' && at[1] == '\n') {
      next = at + 2;
    } else if (isspace((unsigned char)*at)) {
      *line_ended |= *at == '\n';
      next = at + 1;
    }
    if (next == at) return at;
    at = next;
  }
}

static bool name_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Any C number, and some that are none: `0x1.8p-3f`. */
static size_t number_length(const char *at) {
  size_t length = 1;
  while (name_char(at[length]) || at[length] == '.' ||
         (at[length] && strchr("+-", at[length]) && strchr("eEpP", at[length - 1])))
    length++;
  return length;
}

static size_t quoted_length(const char *at) {
  size_t length = 1;
  while (at[length] && at[length] != at[0] && at[length] != '\n')
    length += at[length] == '\\' && at[length + 1] ? 2 : 1;
  return at[length] == at[0] ? length + 1 : length;
}

/* Signs of several characters, longer ones first. */
static size_t sign_length(const char *at) {
  static const char *const signs[] = {"...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                      "&&",  "||",  "*=",  "/=", "%=", "+=", "-=", "&=", "^=", "|=", "##"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (!strncmp(at, signs[i], strlen(signs[i]))) return strlen(signs[i]);
  return 1;
}

static Token token_at(const char *at) {
  Token token = {.text = at};
  if (*at == 0) return token;
  if (*at == NAME_MARK || isalpha((unsigned char)*at) || *at == '_') {
    token.kind = TOKEN_NAME;
    for (token.length = 1; name_char(at[token.length]);) token.length++;
  } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
    token.kind = TOKEN_NUMBER;
    token.length = number_length(at);
  } else if (*at == '"' || *at == '\'') {
    token.kind = TOKEN_QUOTED;
    token.length = quoted_length(at);
  } else {
    token.kind = TOKEN_SIGN;
    token.length = sign_length(at);
  }
  return token;
}

Token next_token(const char **at) {
  bool line_ended;
  Token token = token_at(after_spacing(*at, &line_ended));
  token.first = line_ended;
  *at = token.text + token.length;
  return token;
}

static bool token_is(Token token, const char *text) {
  return strlen(text) == token.length && !strncmp(token.text, text, token.length);
}

/* ---- declarations ---- */

typedef struct Reader {
  Arena *arena;
  int count;
  Token *tokens; /* TOKEN_END stands behind the last */
  SourceFile file;
} Reader;

static bool is(const Reader *r, int i, const char *text) { return i < r->count && token_is(r->tokens[i], text); }
static bool is_name(const Reader *r, int i) { return i < r->count && r->tokens[i].kind == TOKEN_NAME; }
static bool opens(const Reader *r, int i) { return is(r, i, "(") || is(r, i, "[") || is(r, i, "{"); }
static bool closes(const Reader *r, int i) { return is(r, i, ")") || is(r, i, "]") || is(r, i, "}"); }

/* The position after the bracket that closes the one at `i`. */
static int after_group(const Reader *r, int i) {
  int depth = 0;
  for (; i < r->count; i++) {
    depth += opens(r, i) - closes(r, i);
    if (depth == 0) return i + 1;
  }
  return r->count;
}

static int after_line(const Reader *r, int i) {
  for (i++; i < r->count && !r->tokens[i].first;) i++;
  return i;
}

/* A macro that stands for declarations: `TRIG_FUNCTION(vsin, trig_sin)`. */
static bool is_macro_call(const Reader *r, int i) {
  return is_name(r, i) && is(r, i + 1, "(") && !is(r, i, "__attribute__");
}

static int after_declaration(const Reader *r, int i) {
  if (is_macro_call(r, i)) return after_group(r, i + 1);
  while (i < r->count) {
    bool body = is(r, i, "{") && i > 0 && is(r, i - 1, ")");
    if (is(r, i, ";")) return i + 1;
    i = opens(r, i) ? after_group(r, i) : i + 1;
    if (body) return i;
  }
  return r->count;
}

/* ---- names ---- */

static void add_name(const Reader *r, SourceDeclaration *declaration, int i) {
  Token token = r->tokens[i];
  declaration->names[declaration->n_names++] = arena_format(r->arena, "%.*s", (int)token.length, token.text);
}

static void add_names_within(const Reader *r, SourceDeclaration *declaration, int begin, int end) {
  for (int i = begin; i < end; i++)
    if (is_name(r, i)) add_name(r, declaration, i);
}

/* Adds a tag and enumerators; returns the position after the braces. */
static int add_tag(const Reader *r, SourceDeclaration *declaration, int i) {
  bool enumerates = is(r, i, "enum");
  int brace = is_name(r, i + 1) ? i + 2 : i + 1;
  if (!is(r, brace, "{")) return i + 1;
  int end = after_group(r, brace);
  if (brace == i + 2) add_name(r, declaration, i + 1);
  for (int k = brace; enumerates && k < end; k++)
    if ((is(r, k, "{") || is(r, k, ",")) && is_name(r, k + 1)) add_name(r, declaration, k + 1);
  return end;
}

static bool is_tag(const Reader *r, int i) { return is(r, i, "struct") || is(r, i, "union") || is(r, i, "enum"); }

static bool ends_name(const Reader *r, int i) {
  return is(r, i, "(") || is(r, i, "[") || is(r, i, "=") || is(r, i, ",") || is(r, i, ";");
}

/* The declared name is before the first bracket, `=`, `,` or `;` after the type, or in `(*name)`. */
static void find_names(const Reader *r, SourceDeclaration *declaration, int begin, int end) {
  int last = -1;
  for (int i = begin; i < end;) {
    bool points = is(r, i, "(") && is(r, i + 1, "*") && is_name(r, i + 2);
    if (points || (last >= 0 && ends_name(r, i))) add_name(r, declaration, points ? i + 2 : last);
    if (is(r, i, "(") || is(r, i, "=")) return;
    if (is(r, i, "__attribute__")) {
      i = after_group(r, i + 1);
    } else if (is_tag(r, i)) {
      i = add_tag(r, declaration, i);
    } else {
      last = is_name(r, i) ? i : -1;
      i = opens(r, i) ? after_group(r, i) : i + 1;
    }
  }
}

/* ---- the file ---- */

static SourceDeclaration *add_declaration(Reader *r, int begin, int end) {
  SourceDeclaration *added = &r->file.declarations[r->file.n_declarations++];
  added->n_tokens = end - begin;
  added->tokens = r->tokens + begin;
  added->names = ARENA_ARRAY(r->arena, const char *, end - begin);
  return added;
}

static void read_directive(Reader *r, int begin, int end) {
  if (is(r, begin + 1, "define")) add_name(r, add_declaration(r, begin, end), begin + 2);
  if (!is(r, begin + 1, "include") || r->tokens[begin + 2].kind != TOKEN_QUOTED) return;
  Token name = r->tokens[begin + 2];
  r->file.includes[r->file.n_includes++] = arena_format(r->arena, "%.*s", (int)name.length - 2, name.text + 1);
}

static void read_declaration(Reader *r, int begin, int end) {
  SourceDeclaration *added = add_declaration(r, begin, end);
  if (is_macro_call(r, begin))
    add_names_within(r, added, begin + 2, end);
  else
    find_names(r, added, begin, end);
}

static void read_tokens(Reader *r, const char *text) {
  for (const char *at = text; next_token(&at).kind != TOKEN_END;) r->count++;
  r->tokens = ARENA_ARRAY(r->arena, Token, r->count + 1);
  for (int i = 0; i <= r->count; i++) r->tokens[i] = next_token(&text);
  r->tokens[0].first = true;
}

SourceFile read_declarations(Arena *arena, const char *text) {
  Reader r = {.arena = arena};
  read_tokens(&r, text);
  r.file.declarations = ARENA_ARRAY(arena, SourceDeclaration, r.count);
  r.file.includes = ARENA_ARRAY(arena, const char *, r.count);
  for (int i = 0; i < r.count;) {
    bool directive = is(&r, i, "#") && r.tokens[i].first;
    int end = directive ? after_line(&r, i) : after_declaration(&r, i);
    (directive ? read_directive : read_declaration)(&r, i, end);
    i = end;
  }
  return r.file;
}
