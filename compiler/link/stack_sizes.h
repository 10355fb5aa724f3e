/* SPDX-License-Identifier: MIT */
/*
 * What clang says of frames, in the object itself: sections named .stack_sizes have each function's address, and the
 * bytes of its frame. They refer to the function's section by sh_link, but to that of its jump table where it has one.
 * (-fstack-usage would say them, too, in a file, but makes clang follow source lines, a fifth of its time.) Linkers
 * would put these sections into a module.
 */
#ifndef RNNCC_STACK_SIZES_H
#define RNNCC_STACK_SIZES_H

#include "link/elf_file.h"
#include "support/arena.h"

/* By which clang says them; with -ffunction-sections each function has a section of its own. */
extern const char stack_sizes_arg[];

/* Of no function that clang compiled, or of one whose frame has no fixed size. */
enum { NO_FRAME = -1 };

/* [sections of the object]: bytes of the frame of the function in it, or NO_FRAME. */
int64_t *stack_sizes_read(Arena *arena, const Elf *elf);

/* Makes linkers leave them out. They can be read all the same. Ends with EXIT_ENVIRONMENT if the object cannot be
 * changed. */
void stack_sizes_hide(Arena *arena, const char *object);

#endif
