/* SPDX-License-Identifier: MIT */
/*
 * Knobs whose values only the run knows. They become parameters of the kernel, and constants that depend on them are
 * computed when it begins: both are fields of a struct `Sizes`, which every function that uses one of them is given.
 */
#ifndef RNNCC_RUN_TIME_KNOBS_H
#define RNNCC_RUN_TIME_KNOBS_H

#include "template/template_ast.h"

/* The template's text with the `n` knobs left to run time. kernel: the name of the kernel's function. bug() if a
 * declaration other than an enumerator or a function depends on one. */
const char *leave_to_run_time(Arena *arena, const TemplateAst *ast, const char *kernel, int n,
                              const char *const *knobs);

#endif
