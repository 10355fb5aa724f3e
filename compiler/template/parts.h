/* SPDX-License-Identifier: MIT */
/*
 * Parts of templates: what several templates share and that depends on their knobs. The line
 *     #include "parts/<name>.h"
 * of a template stands for the text of templates/parts/<name>.h, which therefore has no include guard: two kernels of a
 * unit each have their own.
 */
#ifndef RNNCC_TEMPLATE_PARTS_H
#define RNNCC_TEMPLATE_PARTS_H

#include "support/arena.h"

/* The text of templates/<name>.c, its parts in place. */
const char *template_text(Arena *arena, const char *path);

#endif
