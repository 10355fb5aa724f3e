/* SPDX-License-Identifier: MIT */
/* CPUs are known by what they tell of themselves, and the table's numbers fit together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/microarchitecture.h"

static void an_x86_cpu_is_known_by_vendor_family_and_model(void **state) {
  (void)state;
  static const struct {
    const char *vendor;
    uint32_t signature;
    const char *name; /* NULL: none of the table */
  } rows[] = {
      {"AuthenticAMD", 0x830f10, "Zen 2"},
      {"AuthenticAMD", 0x870f10, "Zen 2"},
      {"AuthenticAMD", 0xa00f11, "Zen 3"},
      {"AuthenticAMD", 0xa20f12, "Zen 3"},
      {"AuthenticAMD", 0xa10f11, "Zen 4"},
      {"AuthenticAMD", 0xa60f12, "Zen 4"},
      {"AuthenticAMD", 0xaa0f02, "Zen 4"},
      {"AuthenticAMD", 0xb00f21, "Zen 5"},
      {"AuthenticAMD", 0x800f12, NULL},
      {"GenuineIntel", 0x306c3, "Haswell"},
      {"GenuineIntel", 0x306f2, "Haswell"},
      {"GenuineIntel", 0x406f1, "Broadwell"},
      {"GenuineIntel", 0x506e3, "Skylake"},
      {"GenuineIntel", 0x50654, "Skylake-SP"},
      {"GenuineIntel", 0x50657, "Skylake-SP"},
      {"GenuineIntel", 0x706e5, "Ice Lake"},
      {"GenuineIntel", 0x606a6, "Ice Lake-SP"},
      {"GenuineIntel", 0x806f8, "Sapphire Rapids"},
      {"GenuineIntel", 0xc06f2, "Sapphire Rapids"},
      {"GenuineIntel", 0xa06d1, "Granite Rapids"},
      {"GenuineIntel", 0x90672, "Alder Lake"},
      {"GenuineIntel", 0xb06e0, "Gracemont"},
      {"GenuineIntel", 0xa10f11, NULL},
      {"GenuineIntel", 0x206a7, NULL},
      {"", 0xa10f11, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const Microarchitecture *found = microarchitecture_of_x86(rows[i].vendor, rows[i].signature);
    if (rows[i].name)
      assert_string_equal(found ? found->name : "none", rows[i].name);
    else
      assert_null(found);
  }
}

static void an_arm_core_is_known_by_implementer_and_part(void **state) {
  (void)state;
  static const struct {
    uint64_t midr;
    const char *name;
  } rows[] = {
      {0x410fd034, "Cortex-A53"},  {0x412fd050, "Cortex-A55"},  {0x410fd083, "Cortex-A72"}, {0x413fd0c1, "Neoverse N1"},
      {0x411fd401, "Neoverse V1"}, {0x410fd490, "Neoverse N2"}, {0x611f0231, "Apple M1"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const Microarchitecture *found = microarchitecture_of_arm(rows[i].midr);
    assert_string_equal(found ? found->name : "none", rows[i].name);
  }
  assert_null(microarchitecture_of_arm(0x51 << 24 | 0xd08 << 4));
  assert_null(microarchitecture_of_arm(0));
}

/* No level is faster than the one before it, and all are within what any core does. */
static void every_row_is_a_possible_core(void **state) {
  (void)state;
  const Microarchitecture *m;
  for (int i = 0; (m = microarchitecture_at(i)); i++) {
    assert_true(0.5 < m->ghz && m->ghz < 6 && 0.5 < m->all_cores && m->all_cores <= 1);
    assert_true(3 <= m->fma_latency && m->fma_latency <= 8 && 0.5 <= m->loads && m->loads <= 4);
    assert_true(m->l1_bytes > m->l2_bytes && m->l2_bytes > m->l3_bytes && m->l3_bytes * m->ghz > m->dram_gbps);
    assert_true(m->l1_bytes <= 64 * m->loads && m->barrier_ns >= 50);
    for (int w = 0; w < VECTOR_WIDTHS; w++) assert_true(0 <= m->fma[w] && m->fma[w] <= 4);
    assert_true(m->fma[0] > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_x86_cpu_is_known_by_vendor_family_and_model),
      cmocka_unit_test(an_arm_core_is_known_by_implementer_and_part),
      cmocka_unit_test(every_row_is_a_possible_core),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
