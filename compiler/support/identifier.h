/* SPDX-License-Identifier: MIT */
/* Names as C has them: letters of ASCII, digits and underscores. */
#ifndef RNNCC_IDENTIFIER_H
#define RNNCC_IDENTIFIER_H

#include <stdbool.h>

#include "support/arena.h"

bool is_identifier(const char *name);

/* `name` with an underscore for each other byte; `model` stands before a digit, and for no name at all. */
const char *identifier_of(Arena *arena, const char *name);

#endif
