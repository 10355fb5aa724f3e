/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AArch64's SVE on CPUs whose vectors have 256 bits. */
#ifndef SIMD_SVE256_H
#define SIMD_SVE256_H

#define SVE_BITS 256
#include "simd/sve.h"

#endif
