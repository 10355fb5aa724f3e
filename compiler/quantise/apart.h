/* SPDX-License-Identifier: MIT */
/* Work in a process of its own: what it builds and runs may crash, and what it changes of the graph is lost with it. */
#ifndef RNNCC_QUANTISE_APART_H
#define RNNCC_QUANTISE_APART_H

#include <stddef.h>

#include "support/arena.h"

/* Zeroed memory that such a process writes and this one reads. */
void *shared_memory(size_t bytes);

/* Runs `body` there. If it fails, ends this process, too, with its message and exit code; `model` is for that. */
void run_apart(Arena *arena, const char *model, const char *folder, void (*body)(void *), void *argument);

#endif
