/* SPDX-License-Identifier: MIT */
/* What clang and lld have written, before it takes the place of the output. */
#ifndef RNNCC_CHECK_MODULE_H
#define RNNCC_CHECK_MODULE_H

#include "machine/targets.h"

/* Ends with EXIT_ENVIRONMENT if the file is not what a module is: a whole shared object for the target's machine that
 * exports `symbol` alone, with no constructor, no executable stack, and no code that is changed when it is loaded. */
void check_module(const char *path, const Target *target, const char *symbol);

#endif
