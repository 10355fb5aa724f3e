/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AArch64's SVE on CPUs whose vectors have 512 bits. */
#ifndef SIMD_SVE512_H
#define SIMD_SVE512_H

#define SVE_BITS 512
#include "simd/sve.h"

#endif
