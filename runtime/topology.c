/* SPDX-License-Identifier: MIT */
/*
 * Two threads on one core share its multipliers: the second makes a matrix product no faster, and waits in barriers at
 * the first one's cost. So a thread for each core is enough.
 *
 * Files are read with open and read, not with stdio, which allocates and links locale code.
 */
#include "topology.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES = 4096 }; /* sysfs gives a page at most */

bool system_file_read(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

/* Not strtoll: headers of glibc from 2.38 on make it a symbol that no earlier glibc has. */
long long system_number_at(const char **at) {
  const char *c = *at + strspn(*at, " \n");
  bool negative = *c == '-';
  const char *first = c += negative;
  long long value = 0;
  for (; *c >= '0' && *c <= '9'; c++) value = value > LLONG_MAX / 100 ? value : 10 * value + (*c - '0');
  if (c == first) return 0;
  *at = c;
  return negative ? -value : value;
}

int cpu_mask_read(CpuMask *mask) {
  *mask = (CpuMask){0};
  if (sched_getaffinity(0, sizeof *mask, &mask->set)) return 0;
  return CPU_COUNT_S(sizeof *mask, &mask->set);
}

static bool in_mask(const CpuMask *mask, int cpu) { return CPU_ISSET_S(cpu, sizeof *mask, &mask->set); }

/* ---- lists of numbers, such as "0-3,64-67" ---- */

typedef struct Range {
  int first, last;
} Range;

/* The next range; moves *list behind it. False at the end, and at what is no range of CPUs. */
static bool next_range(const char **list, Range *range) {
  const char *at = *list;
  long long first = system_number_at(&at), last = first;
  if (at == *list) return false;
  if (*at == '-') {
    at++;
    last = system_number_at(&at);
  }
  *list = at + (*at == ',');
  if (first < 0 || last >= MAX_CPUS) return false;
  *range = (Range){(int)first, (int)last};
  return true;
}

static bool list_has(const char *list, int number) {
  Range range;
  while (next_range(&list, &range))
    if (number >= range.first && number <= range.last) return true;
  return false;
}

/* How many of the list's CPUs are in the mask and come before `cpu`. */
static int count_before(const char *list, const CpuMask *mask, int cpu) {
  Range range;
  int count = 0;
  while (next_range(&list, &range))
    for (int other = range.first; other <= range.last && other < cpu; other++) count += in_mask(mask, other);
  return count;
}

/* ---- what sysfs says of a CPU ---- */

/* A list below /sys/devices/system; "" if there is none. */
static void read_list(const char *root, const char *folder, int number, const char *name, char list[LIST_BYTES]) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/sys/devices/system/%s%d/%s", root, folder, number, name);
  if (!system_file_read(path, list, LIST_BYTES)) *list = 0;
}

/* Whether all cores have one CPU each. */
static bool no_siblings(const char *root) {
  char path[PATH_MAX], text[8];
  snprintf(path, sizeof path, "%s/sys/devices/system/cpu/smt/active", root);
  return system_file_read(path, text, sizeof text) && *text == '0';
}

static int siblings_before(const char *root, const CpuMask *mask, int cpu) {
  char list[LIST_BYTES];
  read_list(root, "cpu/cpu", cpu, "topology/thread_siblings_list", list);
  return count_before(list, mask, cpu);
}

int topology_cores(const char *root, const CpuMask *mask) {
  if (no_siblings(root)) return CPU_COUNT_S(sizeof *mask, &mask->set);
  int cores = 0;
  for (int cpu = 0; cpu < MAX_CPUS; cpu++) cores += in_mask(mask, cpu) && siblings_before(root, mask, cpu) == 0;
  return cores;
}

static CpuPlace place_of(const char *root, const CpuMask *mask, int cpu) {
  char list[LIST_BYTES];
  const char *rest = list;
  Range sharers = {-1, -1};
  read_list(root, "cpu/cpu", cpu, "cache/index3/shared_cpu_list", list);
  next_range(&rest, &sharers);
  return (CpuPlace){.cpu = cpu, .sibling = siblings_before(root, mask, cpu), .cache = sharers.first};
}

static void find_nodes(const char *root, CpuPlace *places, int count) {
  char path[PATH_MAX], nodes[LIST_BYTES], cpus[LIST_BYTES];
  snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
  if (!system_file_read(path, nodes, sizeof nodes)) return;
  Range range;
  for (const char *rest = nodes; next_range(&rest, &range);)
    for (int node = range.first; node <= range.last; node++) {
      read_list(root, "node/node", node, "cpulist", cpus);
      for (int i = 0; i < count; i++)
        if (list_has(cpus, places[i].cpu)) places[i].node = node;
    }
}

/* ---- the order ---- */

static int by_place(const void *left, const void *right) {
  const CpuPlace *a = left, *b = right;
  if (a->sibling != b->sibling) return a->sibling - b->sibling;
  if (a->node != b->node) return a->node - b->node;
  if (a->cache != b->cache) return a->cache - b->cache;
  return a->cpu - b->cpu;
}

int topology_order(const char *root, const CpuMask *mask, CpuPlace *places) {
  int count = 0;
  for (int cpu = 0; cpu < MAX_CPUS; cpu++)
    if (in_mask(mask, cpu)) places[count++] = place_of(root, mask, cpu);
  find_nodes(root, places, count);
  qsort(places, count, sizeof *places, by_place);
  return count;
}
