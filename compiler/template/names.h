/* SPDX-License-Identifier: MIT */
/* Where a template uses its file-scope names. */
#ifndef RNNCC_TEMPLATE_NAMES_H
#define RNNCC_TEMPLATE_NAMES_H

#include <stdbool.h>

#include "template/template_ast.h"

typedef struct Name {
  const Declaration *declaration;
  Range range;
} Name;

typedef struct Names {
  int count;
  Name *list;
} Names;

/* Every token that names a file-scope declaration of the template, in the order of the text. */
Names template_names(Arena *arena, const TemplateAst *ast);

static inline bool range_inside(Range inner, Range outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

#endif
