/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AArch64's SVE on CPUs whose vectors have 128 bits. */
#ifndef SIMD_SVE128_H
#define SIMD_SVE128_H

#define SVE_BITS 128
#include "simd/sve.h"

#endif
