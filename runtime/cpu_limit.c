/* SPDX-License-Identifier: MIT */
/*
 * Threads beyond the CPUs or beyond the quota only wait for each other. One spinning thread uses up a quota of half a
 * CPU in 50 ms, and the whole process then stands still for the rest of the period. So a quota is rounded down.
 *
 * Files are read with open and read, not with stdio, which allocates and links locale code.
 */
#include "cpu_limit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CPUS = 8192 }; /* the maximum that Linux can be built for today */

typedef union Mask {
  cpu_set_t set;
  unsigned char bytes[MAX_CPUS / 8];
} Mask;

static int mask_read(Mask *mask) {
  if (sched_getaffinity(0, sizeof *mask, &mask->set)) return 0;
  return CPU_COUNT_S(sizeof *mask, &mask->set);
}

bool cpu_limit_nth(int n, cpu_set_t *one) {
  Mask mask = {0};
  int count = mask_read(&mask);
  if (!count) return false;
  CPU_ZERO(one);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET_S(cpu, sizeof mask, &mask.set) && seen++ == n % count) CPU_SET(cpu, one);
  return CPU_COUNT(one) == 1;
}

/* The start of the file, as a string; false if there is none. */
static bool file_read(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

/* The decimal number that *at begins with, after spaces, and *at moved behind it; 0, and *at as it is, if there is
 * none. Too many digits are read as some large number. Not strtoll: headers of glibc from 2.38 on make it a symbol that
 * no earlier glibc has. */
static long long number_at(const char **at) {
  const char *c = *at + strspn(*at, " \n");
  bool negative = *c == '-';
  const char *first = c += negative;
  long long value = 0;
  for (; *c >= '0' && *c <= '9'; c++) value = value > LLONG_MAX / 100 ? value : 10 * value + (*c - '0');
  if (c == first) return 0;
  *at = c;
  return negative ? -value : value;
}

/* Converts quota and period, in microseconds, to whole CPUs, at least 1; 0 for no limit. */
static int quota_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0 || quota / period > INT_MAX) return 0;
  return quota < period ? 1 : (int)(quota / period);
}

/* Version 2: cpu.max holds "max 100000" or "50000 100000". */
static int quota_v2(const char *directory) {
  char path[PATH_MAX + 32], text[64];
  const char *at = text;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (!file_read(path, text, sizeof text)) return 0;
  long long quota = number_at(&at);
  return quota_cpus(quota, number_at(&at));
}

/* Version 1: one number a file, and a quota of -1 for none. */
static int quota_v1(const char *directory) {
  char path[PATH_MAX + 32], quota[32], period[32];
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
  if (!file_read(path, quota, sizeof quota)) return 0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
  if (!file_read(path, period, sizeof period)) return 0;
  const char *quota_at = quota, *period_at = period;
  return quota_cpus(number_at(&quota_at), number_at(&period_at));
}

static int smaller_limit(int a, int b) { return !a || (b && b < a) ? b : a; }

/* The smallest quota of `group` and its parent groups, up to the mount. A container sees its own group at the mount,
 * although `group` may be a path that does not exist inside it. A directory that does not exist sets no limit. */
static int quota_upwards(const char *mount, const char *group, int (*quota)(const char *directory)) {
  char directory[PATH_MAX];
  size_t top = strlen(mount);
  if (snprintf(directory, sizeof directory, "%s%s", mount, group) >= (int)sizeof directory) return 0;
  int limit = 0;
  while (true) {
    limit = smaller_limit(limit, quota(directory));
    char *slash = strrchr(directory + top, '/');
    if (!slash) return limit;
    *slash = 0;
  }
}

/* Is `name` one of the comma-separated controllers? */
static bool lists_controller(const char *controllers, const char *name) {
  size_t length = strlen(name);
  for (const char *at = controllers; (at = strstr(at, name)); at += length)
    if ((at == controllers || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
  return false;
}

/* One line of /proc/self/cgroup: "hierarchy:controllers:/path", with hierarchy 0 and no controllers for version 2. */
static int limit_of_line(const char *root, char *line) {
  char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL, mount[PATH_MAX];
  if (!group) return 0;
  *controllers++ = 0;
  *group++ = 0;
  if (!*controllers) {
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
    return quota_upwards(mount, group, quota_v2);
  }
  if (!lists_controller(controllers, "cpu")) return 0;
  snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controllers);
  int limit = quota_upwards(mount, group, quota_v1);
  snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
  return smaller_limit(limit, quota_upwards(mount, group, quota_v1));
}

int cpu_limit_cgroup(const char *root) {
  char path[PATH_MAX], text[8192], *rest = text;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!file_read(path, text, sizeof text)) return 0;
  int limit = 0;
  for (char *line; (line = strsep(&rest, "\n"));) limit = smaller_limit(limit, limit_of_line(root, line));
  return limit;
}

int cpu_limit_threads(void) {
  Mask mask = {0};
  int cpus = mask_read(&mask), limit = smaller_limit(cpus, cpu_limit_cgroup(""));
  return limit ? limit : 1;
}
