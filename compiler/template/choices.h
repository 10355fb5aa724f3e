/* SPDX-License-Identifier: MIT */
/*
 * What may be chosen of a template: its knobs, types and hooks, with the place of each one's value. Read from tokens
 * and comments alone, so that libclang parses a kernel once, with the choices written in.
 */
#ifndef RNNCC_TEMPLATE_CHOICES_H
#define RNNCC_TEMPLATE_CHOICES_H

#include "template/template_ast.h"

typedef struct Choice {
  DeclarationKind kind; /* never DECLARATION_OTHER */
  const char *name;
  const char *legal; /* of a knob or type: the text after "legal:" in its comment; of a hook NULL */
  Range value;       /* as in Declaration */
} Choice;

typedef struct Choices {
  int count, capacity;
  Choice *list;
} Choices;

/* `text` must outlive the result. */
Choices template_choices(Arena *arena, const char *text);

#endif
