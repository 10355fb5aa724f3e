/* SPDX-License-Identifier: MIT */
/* The version of kernels, which a schedule record is bound to. */
#ifndef RNNCC_FINGERPRINT_H
#define RNNCC_FINGERPRINT_H

#include "machine/targets.h"
#include "template/specialise.h"

/* Hex digits, equal for equal kernels on the target. They depend on
 *   - the tokens of each specialised kernel: values of knobs, the branches and helpers that are left, hooks;
 *   - the tokens of the functions, types and macros that it uses of templates' headers and the target's vocabulary.
 * They do not depend on comments and spacing; other declarations of these files, and their order; numbers in the bodies
 * of hooks, which are the layer's (the bounds of a Clip, the slope of a LeakyRelu); the runtime's headers; the C
 * compiler. */
const char *kernels_fingerprint(Arena *arena, const Target *target, KernelSpec *const *specs, int count);

#endif
