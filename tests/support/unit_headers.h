/* SPDX-License-Identifier: MIT */
/* What every unit includes, and of what most include that which WITH_... says. cached_clang precompiles it for a unit
 * that includes them all: a header that a unit lacks, it must not get from here. Not of RVV, as intrinsics.h says. */
#include <stddef.h>

#include "kernel.h"
#include "module.h"
#ifdef WITH_KNOBS
#include "knobs.h"
#endif
#ifndef __riscv_vector
#ifdef WITH_MATH
#include "simd/math.h"
#endif
#ifdef WITH_NARROW_PANELS
#include "panel_narrow.h"
#endif
#endif
