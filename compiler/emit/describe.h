/* SPDX-License-Identifier: MIT */
/* A Program as JSON, for the pages of `rnncc inspect --html` and `rnnrun profile --html`: its steps, the values that
 * they read and write, and where those are in memory. */
#ifndef RNNCC_DESCRIBE_H
#define RNNCC_DESCRIBE_H

#include "program/program.h"

/* One object without line ends. `<`, `>` and `&` are escaped, so it may stand in a script element. */
void describe_program(Text *out, const Program *program);

#endif
