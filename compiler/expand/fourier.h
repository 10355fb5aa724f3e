/* SPDX-License-Identifier: MIT */
/* What Fourier transforms of a known length and of any have in common: x is [..., points, parts]. */
#ifndef RNNCC_FOURIER_H
#define RNNCC_FOURIER_H

#include "expand/formula.h"
#include "shapes/signal.h"

/* The axis cropped, or padded with zeros, to `length`. */
Value *fourier_fitted(const Formula *f, Value *x, int axis, int64_t length);
/* [..., length, parts] -> [..., length, 2], or half of that, or of that. */
Value *fourier_by_kernel(const Formula *f, Value *x, int64_t length, bool inverse, bool onesided);
/* The parts exchanged: of a complex number, its imaginary part first. */
Value *fourier_exchanged(const Formula *f, Value *x);
/* [..., points, parts] -> [..., results, 2], of as many points as the run has. */
Value *fourier_of_any_length(const Formula *f, Value *x, const Dft *dft);

#endif
