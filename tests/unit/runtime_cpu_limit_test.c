/* SPDX-License-Identifier: MIT */
/* The number of threads: by affinity masks of this process, and by cgroup files in a folder of the test. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/system_files.h"
#include "cpu_limit.h"

static void no_cgroup_files_set_no_limit(void **state) {
  (void)state;
  assert_int_equal(cpu_limit_cgroup(root), 0);
  put("/proc/self/cgroup", "0::/\n");
  assert_int_equal(cpu_limit_cgroup(root), 0);
}

static void a_quota_is_rounded_down_but_not_to_zero(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int cpus;
  } cases[] = {
      {"max 100000\n", 0},    {"50000 100000\n", 1},
      {"100000 100000\n", 1}, {"199999 100000\n", 1},
      {"250000 100000\n", 2}, {"800000 100000\n", 8},
      {"1000 100000\n", 1},   {"-1 100000\n", 0},
      {"0 100000\n", 0},      {"100000 0\n", 0},
      {"nonsense", 0},        {"", 0},
      {"100000", 0},          {"99999999999999999999 100000\n", 0},
  };
  put("/proc/self/cgroup", "0::/\n");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put("/sys/fs/cgroup/cpu.max", cases[i].text);
    assert_int_equal(cpu_limit_cgroup(root), cases[i].cpus);
  }
}

static void the_least_quota_on_the_way_up_counts(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 4);
  put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 3);
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 2);
  put("/sys/fs/cgroup/a/b/cpu.max", "100000 100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 1);
}

static void a_path_unknown_inside_a_container_falls_back_to_the_mount(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 2);
}

static void version_1_quotas_count(void **state) {
  (void)state;
  put("/proc/self/cgroup", "5:memory:/m\n3:cpu,cpuacct:/job\n2:cpuset:/\n");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 0);
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "350000\n");
  assert_int_equal(cpu_limit_cgroup(root), 3);
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 1);
}

static void only_the_cpu_controller_counts(void **state) {
  (void)state;
  put("/proc/self/cgroup", "3:cpuacct:/job\n2:cpuset:/job\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  assert_int_equal(cpu_limit_cgroup(root), 0);
}

static void damaged_cgroup_files_set_no_limit(void **state) {
  (void)state;
  put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  static const char *const damaged[] = {"\n", ":", "0", "0:", "::::::", "0::", "\n\n0:\n", "3:cpu\n"};
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    put("/proc/self/cgroup", damaged[i]);
    assert_in_range(cpu_limit_cgroup(root), 0, 1);
  }
}

static void the_affinity_mask_limits_threads(void **state) {
  (void)state;
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  assert_in_range(cpu_limit_cpus(), 1, CPU_COUNT(&all));
  assert_in_range(cpu_limit_threads(), 1, cpu_limit_cpus());
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(cpu_limit_threads(), 1);
  assert_int_equal(cpu_limit_cpus(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)
  const struct CMUnitTest tests[] = {
      TEST(no_cgroup_files_set_no_limit),
      TEST(a_quota_is_rounded_down_but_not_to_zero),
      TEST(the_least_quota_on_the_way_up_counts),
      TEST(a_path_unknown_inside_a_container_falls_back_to_the_mount),
      TEST(version_1_quotas_count),
      TEST(only_the_cpu_controller_counts),
      TEST(damaged_cgroup_files_set_no_limit),
      TEST(the_affinity_mask_limits_threads),
  };
  return cmocka_run_group_tests_name("runtime_cpu_limit", tests, NULL, NULL);
}
