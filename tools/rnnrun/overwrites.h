/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_OVERWRITES_H
#define RNNRUN_OVERWRITES_H

#include "arguments.h"

/* Before anything is read. Fails if an output would replace the module, its weights or another output, or a page or
 * trace an input; a tensor may take the place of the input that it follows from. A device, a pipe or stdout may be
 * named twice: it is not replaced. */
void check_overwrites(const Arguments *arguments);

#endif
