/* SPDX-License-Identifier: MIT */
/*
 * Threads beyond the CPUs or beyond the quota only wait for each other. One spinning thread uses up a quota of half a
 * CPU in 50 ms, and the whole process then stands still for the rest of the period. So a quota is rounded down.
 */
#include "cpu_limit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "topology.h"

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
  if (!system_file_read(path, text, sizeof text)) return 0;
  long long quota = system_number_at(&at);
  return quota_cpus(quota, system_number_at(&at));
}

/* Version 1: one number a file, and a quota of -1 for none. */
static int quota_v1(const char *directory) {
  char path[PATH_MAX + 32], quota[32], period[32];
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
  if (!system_file_read(path, quota, sizeof quota)) return 0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
  if (!system_file_read(path, period, sizeof period)) return 0;
  const char *quota_at = quota, *period_at = period;
  return quota_cpus(system_number_at(&quota_at), system_number_at(&period_at));
}

static int smaller_limit(int a, int b) { return !a || (b && b < a) ? b : a; }

/* The smallest quota of `group` and its parent groups, up to the mount. A container sees its own group at the mount,
 * although `group` may be a path that does not exist inside it. A directory that does not exist sets no limit. */
static int quota_upwards(const char *mount, const char *group, bool is_v2) {
  char directory[PATH_MAX];
  size_t top = strlen(mount);
  if (snprintf(directory, sizeof directory, "%s%s", mount, group) >= (int)sizeof directory) return 0;
  int limit = 0;
  while (true) {
    limit = smaller_limit(limit, is_v2 ? quota_v2(directory) : quota_v1(directory));
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
    return quota_upwards(mount, group, true);
  }
  if (!lists_controller(controllers, "cpu")) return 0;
  snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controllers);
  int limit = quota_upwards(mount, group, false);
  snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
  return smaller_limit(limit, quota_upwards(mount, group, false));
}

int cpu_limit_cgroup(const char *root) {
  char path[PATH_MAX], text[8192], *rest = text;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!system_file_read(path, text, sizeof text)) return 0;
  int limit = 0;
  for (char *line; (line = strsep(&rest, "\n"));) limit = smaller_limit(limit, limit_of_line(root, line));
  return limit;
}

int cpu_limit_threads(void) {
  CpuMask mask;
  int cores = cpu_mask_read(&mask) > 1 ? topology_cores("", &mask) : 1;
  return smaller_limit(cores, cpu_limit_cgroup(""));
}

int cpu_limit_cpus(void) {
  CpuMask mask;
  int limit = smaller_limit(cpu_mask_read(&mask), cpu_limit_cgroup(""));
  return limit ? limit : 1;
}
