/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_OVERWRITES_H
#define RNNRUN_OVERWRITES_H

#include "arguments.h"

/* Before anything is read. Fails if an output would replace a file that is read, or that of another output. A device or
 * a pipe may be named twice: it is not replaced. */
void check_overwrites(const Arguments *arguments);

#endif
