/* SPDX-License-Identifier: MIT */
/* The runtime's own CPU detection compared with the compiler's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "module.h"

static void features_agree_with_the_compilers(void **state) {
  (void)state;
  uint32_t expected = 0;
#if defined __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
    expected |= CPU_SSE42;
  unsigned eax, ebx, ecx, edx; /* __builtin_cpu_supports knows F16C and AVX-VNNI in newer compilers only */
  bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & bit_F16C;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c) expected |= CPU_AVX2;
  if (expected & CPU_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    expected |= CPU_AVX512;
  if (expected & CPU_AVX512 && __builtin_cpu_supports("avx512vnni")) expected |= CPU_AVX512VNNI;
  bool has_last =
      __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && eax && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx);
  if (expected & CPU_AVX2 && has_last && eax & bit_AVXVNNI) expected |= CPU_AVXVNNI;
  if (expected & CPU_AVX512 && __builtin_cpu_supports("avx512bf16")) expected |= CPU_AVX512BF16;
  bool has_tiles = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && edx & bit_AMXTILE && edx & bit_AMXINT8;
  if (expected & CPU_AVX512 && has_tiles && edx & bit_AMXBF16)
    expected |= CPU_AMX; /* all systems that run it save them */
#elif defined __aarch64__
  expected = CPU_NEON;
#endif
  assert_int_equal(cpu_features(), expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(features_agree_with_the_compilers)};
  return cmocka_run_group_tests_name("runtime_cpu", tests, NULL, NULL);
}
