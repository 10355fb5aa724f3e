/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for RVV 1.0 on CPUs whose vectors have 256 bits. */
#ifndef SIMD_RVV256_H
#define SIMD_RVV256_H

#define RVV_BITS 256
#include "simd/rvv.h"

#endif
