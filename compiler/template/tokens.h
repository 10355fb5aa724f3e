/* SPDX-License-Identifier: MIT */
/*
 * The tokens and declarations of a C file: enough to compare texts without comments and spacing, and to find what a
 * function uses. Nothing is preprocessed: a macro's definition is a declaration of its name, other directives are
 * skipped.
 */
#ifndef RNNCC_TOKENS_H
#define RNNCC_TOKENS_H

#include "support/arena.h"
#include <stdbool.h>

typedef enum TokenKind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_QUOTED, TOKEN_SIGN } TokenKind;

typedef struct Token {
  TokenKind kind;
  bool first; /* of its line; a backslash at the end continues the line */
  const char *text;
  size_t length;
} Token;

/* The next token; moves *at past it. A NAME_MARK (specialise.h) may begin a name. */
Token next_token(const char **at);

/* A function, type, variable or macro at file scope. */
typedef struct SourceDeclaration {
  int n_tokens, n_names;
  const Token *tokens;
  const char **names; /* declared names: itself, its tag, its enumerators */
} SourceDeclaration;

typedef struct SourceFile {
  int n_declarations, n_includes;
  SourceDeclaration *declarations;
  const char **includes; /* as written between quotes: "simd/simd.h" */
} SourceFile;

/* The text must outlive the result. */
SourceFile read_declarations(Arena *arena, const char *text);

#endif
