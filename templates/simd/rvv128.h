/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for RVV 1.0 on CPUs whose vectors have 128 bits. */
#ifndef SIMD_RVV128_H
#define SIMD_RVV128_H

#define RVV_BITS 128
#include "simd/rvv.h"

#endif
