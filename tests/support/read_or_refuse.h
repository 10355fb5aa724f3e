/* SPDX-License-Identifier: MIT */
/* Runs a step of the compiler on bytes again and again in one process, also where it stops the compiler. */
#ifndef RNNCC_READ_OR_REFUSE_H
#define RNNCC_READ_OR_REFUSE_H

#include <stdbool.h>

#include "support/arena.h"
#include "support/files.h"

/* False if `read` stopped. Its memory is freed. */
bool read_or_refuse(void (*read)(Arena *, FileBytes), FileBytes bytes);

#endif
