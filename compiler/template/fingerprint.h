/* SPDX-License-Identifier: MIT */
/* The version of a kernel, by what it is made of: what a measured time is bound to. */
#ifndef RNNCC_FINGERPRINT_H
#define RNNCC_FINGERPRINT_H

#include "machine/targets.h"
#include "template/specialise.h"

/* Hex digits, the same for the same kernels on the target. What counts:
 *   - the tokens of each specialised kernel: its knobs' values, the branches and helpers that are left, its hooks;
 *   - the tokens of those functions, types and macros of templates' headers that it uses, directly or not, with the
 *     target's vocabulary.
 * What does not: comments and spacing; what else stands in these files, and in which order headers have it; numbers in
 * the bodies of hooks, which are the layer's (the bounds of a Clip, the slope of a LeakyRelu); the runtime's headers;
 * the compiler that makes machine code of it. */
const char *kernels_fingerprint(Arena *arena, const Target *target, KernelSpec *const *specs, int count);

#endif
