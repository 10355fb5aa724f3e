/* SPDX-License-Identifier: MIT */
/* Cores, NUMA nodes and caches, by files of sysfs in a folder of the test: other machines than this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/system_files.h"
#include "topology.h"

enum { CPUS = 8 };

static CpuMask mask_of(int first, int last) {
  CpuMask mask = {0};
  for (int cpu = first; cpu <= last; cpu++) CPU_SET_S(cpu, sizeof mask, &mask.set);
  return mask;
}

static void put_for(const char *format, int number, const char *text) {
  char path[128];
  snprintf(path, sizeof path, format, number);
  put(path, text);
}

static void put_siblings(int cpu, const char *list) {
  put_for("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu, list);
}

static void put_cache(int cpu, const char *list) {
  put_for("/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", cpu, list);
}

static void put_node(int node, const char *list) { put_for("/sys/devices/system/node/node%d/cpulist", node, list); }

/* The CPUs first..last, cores, and the order of their CPUs. */
static void check(int first, int last, int cores, const int *order) {
  CpuMask mask = mask_of(first, last);
  CpuPlace places[CPUS];
  assert_int_equal(topology_cores(root, &mask), cores);
  assert_int_equal(topology_order(root, &mask, places), last - first + 1);
  for (int i = 0; i <= last - first; i++) assert_int_equal(places[i].cpu, order[i]);
}

static const int as_numbered[CPUS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void without_sysfs_all_cpus_are_alike(void **state) {
  (void)state;
  check(0, 7, 8, as_numbered);
  check(3, 4, 2, (int[]){3, 4});
}

/* Two CPUs a core, numbered by core or by sibling. */
static void second_cpus_of_cores_come_last_and_do_not_count(void **state) {
  (void)state;
  static const char *const far[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
  static const char *const near[] = {"0-1\n", "2-3\n", "4-5\n", "6-7\n"};
  put("/sys/devices/system/cpu/smt/active", "1\n");
  for (int cpu = 0; cpu < CPUS; cpu++) put_siblings(cpu, far[cpu % 4]);
  check(0, 7, 4, as_numbered);
  check(4, 7, 4, (int[]){4, 5, 6, 7}); /* the first ones are not in the mask */
  check(2, 6, 4, (int[]){2, 3, 4, 5, 6});
  for (int cpu = 0; cpu < CPUS; cpu++) put_siblings(cpu, near[cpu / 2]);
  check(0, 7, 4, (int[]){0, 2, 4, 6, 1, 3, 5, 7});
  check(1, 2, 2, (int[]){1, 2});
  check(2, 3, 1, (int[]){2, 3});
}

static void switched_off_siblings_are_not_looked_for(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/smt/active", "0\n");
  for (int cpu = 0; cpu < CPUS; cpu++) put_siblings(cpu, "0-7\n");
  CpuMask mask = mask_of(0, 7);
  assert_int_equal(topology_cores(root, &mask), 8);
}

/* CPUs dealt out to two sockets in turns; then two L3 caches in each socket. */
static void cpus_of_a_node_and_of_a_cache_follow_each_other(void **state) {
  (void)state;
  CpuPlace places[CPUS];
  CpuMask mask = mask_of(0, 7);
  put("/sys/devices/system/node/online", "0,2\n");
  put_node(0, "0,2,4,6\n");
  put_node(2, "1,3,5,7\n");
  check(0, 7, 8, (int[]){0, 2, 4, 6, 1, 3, 5, 7});
  for (int cpu = 0; cpu < CPUS; cpu++) put_cache(cpu, cpu % 4 < 2 ? "0-1,4-5\n" : "2-3,6-7\n");
  check(0, 7, 8, (int[]){0, 4, 2, 6, 1, 5, 3, 7});
  topology_order(root, &mask, places);
  for (int i = 0; i < CPUS; i++) {
    assert_int_equal(places[i].node, i < 4 ? 0 : 2);
    assert_int_equal(places[i].cache, i / 2 % 2 ? 2 : 0);
  }
}

static void damaged_files_do_no_harm(void **state) {
  (void)state;
  static const char *const damaged[] = {"\n", "-", "0-", "-1", "5-2", "x", "0,,1", "0-99999999999", "8192", ",", "0 1"};
  CpuMask mask = mask_of(0, 7);
  CpuPlace places[CPUS];
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    put("/sys/devices/system/node/online", damaged[i]);
    put_node(0, damaged[i]);
    for (int cpu = 0; cpu < CPUS; cpu++) {
      put_siblings(cpu, damaged[i]);
      put_cache(cpu, damaged[i]);
    }
    assert_in_range(topology_cores(root, &mask), 1, 8);
    assert_int_equal(topology_order(root, &mask, places), 8);
    CpuMask seen = {0};
    for (int k = 0; k < CPUS; k++) CPU_SET_S(places[k].cpu, sizeof seen, &seen.set);
    assert_true(CPU_EQUAL_S(sizeof mask, &seen.set, &mask.set));
  }
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)
  const struct CMUnitTest tests[] = {
      TEST(without_sysfs_all_cpus_are_alike),
      TEST(second_cpus_of_cores_come_last_and_do_not_count),
      TEST(switched_off_siblings_are_not_looked_for),
      TEST(cpus_of_a_node_and_of_a_cache_follow_each_other),
      TEST(damaged_files_do_no_harm),
  };
  return cmocka_run_group_tests_name("runtime_topology", tests, NULL, NULL);
}
