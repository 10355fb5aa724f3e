/* SPDX-License-Identifier: MIT */
/* A module as a package for Python's pip: --emit=wheel. */
#ifndef RNNCC_WHEEL_H
#define RNNCC_WHEEL_H

#include "support/files.h"

typedef struct Wheel {
  const char *name;    /* the package's, an identifier of C */
  const char *version; /* the model's; NULL: it has none */
  const char *triple;  /* of the target */
  const char *build;   /* the one-line record of how it was built */
} Wheel;

/* Is the name a word of Python's own, as `class`? Then no package can be called so. */
bool is_python_word(const char *name);

/* Writes the wheel in `folder`, which is made if need be, under the name that it must have; returns its path. It has
 * the module, and of the Python package rnncc what loads it. */
const char *wheel_write(Arena *arena, const Wheel *wheel, const char *module, const char *folder);

#endif
