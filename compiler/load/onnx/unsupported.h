/* SPDX-License-Identifier: MIT */
/* What a model has that is not supported: collected over all nodes and reported at once, a line for each kind. */
#ifndef RNNCC_UNSUPPORTED_H
#define RNNCC_UNSUPPORTED_H

#include "support/diagnostics.h"
#include "support/text.h"

typedef struct UnsupportedThing {
  const char *what; /* "the operator NonZero" */
  int count;
  Text places; /* names of the first nodes */
} UnsupportedThing;

enum { MAX_UNSUPPORTED = 256 };

typedef struct Unsupported {
  Arena *arena;
  int count;
  UnsupportedThing things[MAX_UNSUPPORTED]; /* later ones are not reported */
} Unsupported;

void unsupported_add(Unsupported *unsupported, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An error for each thing. */
void unsupported_tell(const Unsupported *unsupported, const char *file);

#endif
