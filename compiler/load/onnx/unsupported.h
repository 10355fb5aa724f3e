/* SPDX-License-Identifier: MIT */
/*
 * What a model has that is not supported: collected over all nodes and reported at once, a line for each kind. What is
 * refused because an input is not known may only follow from an earlier error: that is reported if there is no other.
 */
#ifndef RNNCC_UNSUPPORTED_H
#define RNNCC_UNSUPPORTED_H

#include "support/diagnostics.h"
#include "support/text.h"

typedef struct UnsupportedThing {
  const char *what; /* "the operator NonZero" */
  int count;
  Text places;  /* names of the first nodes */
  bool follows; /* may follow from an earlier error */
} UnsupportedThing;

enum { MAX_UNSUPPORTED = 256 };

typedef struct Unsupported {
  Arena *arena;
  bool follows; /* what is added now may follow from an earlier error: an input of the node at hand is not known */
  int count;
  UnsupportedThing things[MAX_UNSUPPORTED]; /* later ones are not reported */
} Unsupported;

void unsupported_add(Unsupported *unsupported, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An error for each thing that follows from no other error; of the second, for each that may. */
void unsupported_tell(const Unsupported *unsupported, const char *file);
void unsupported_tell_following(const Unsupported *unsupported, const char *file);

#endif
