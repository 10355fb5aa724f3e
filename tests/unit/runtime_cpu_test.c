/* SPDX-License-Identifier: MIT */
/* The runtime's own CPU detection compared with the compiler's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "module.h"

static void features_agree_with_the_compilers(void **state) {
  (void)state;
  uint32_t expected = 0;
#if defined __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
    expected |= CPU_SSE42;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    expected |= CPU_AVX2;
  if (expected & CPU_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    expected |= CPU_AVX512;
#elif defined __aarch64__
  expected = CPU_NEON;
#endif
  assert_int_equal(cpu_features(), expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(features_agree_with_the_compilers)};
  return cmocka_run_group_tests_name("runtime_cpu", tests, NULL, NULL);
}
