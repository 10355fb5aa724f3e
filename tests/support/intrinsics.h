/* SPDX-License-Identifier: MIT */
/* The compiler's header that a vocabulary of templates/simd/ includes, chosen by the target. cached_clang precompiles
 * it. Not riscv_vector.h, whose functions a pragma declares, which no precompiled header keeps. */
#if defined __SSE4_2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif
