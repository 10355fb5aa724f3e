/* SPDX-License-Identifier: MIT */
/* perf_event_open(2), in user space only, which needs the least rights. A counter that others use meanwhile is scaled.
 */
#include "counters.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers of another libc may not have it. */
#if __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>

static const struct Event {
  const char *name;
  uint32_t type;
  uint64_t config;
} events[COUNTERS] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"branch misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"L1 data cache read misses", PERF_TYPE_HW_CACHE,
     PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
    {"last-level cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"nanoseconds on CPUs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"context switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

static void open_counter(Counter *counter, const struct Event *event) {
  struct perf_event_attr attributes = {.type = event->type,
                                       .size = sizeof attributes,
                                       .config = event->config,
                                       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                                       .disabled = 1,
                                       .inherit = 1,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
  counter->name = event->name;
  counter->file = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  counter->error = counter->file < 0 ? errno : 0;
}

Counters counters_open(void) {
  Counters counters;
  for (int i = 0; i < COUNTERS; i++) open_counter(&counters.list[i], &events[i]);
  return counters;
}

static void control(const Counters *counters, unsigned long request) {
  for (int i = 0; i < COUNTERS; i++)
    if (counters->list[i].file >= 0) ioctl(counters->list[i].file, request, 0);
}

void counters_start(Counters *counters) {
  control(counters, PERF_EVENT_IOC_RESET);
  control(counters, PERF_EVENT_IOC_ENABLE);
}

/* A counter that never ran has counted nothing: it is refused. */
static void read_counter(Counter *counter) {
  struct {
    uint64_t count, enabled, running;
  } found = {0};
  if (counter->file < 0) return;
  if (read(counter->file, &found, sizeof found) == sizeof found && found.running) {
    counter->count = (uint64_t)((double)found.count * ((double)found.enabled / (double)found.running));
    return;
  }
  close(counter->file);
  counter->file = -1;
  counter->error = EBUSY;
}

void counters_stop(Counters *counters) {
  control(counters, PERF_EVENT_IOC_DISABLE);
  for (int i = 0; i < COUNTERS; i++) read_counter(&counters->list[i]);
}

void counters_close(Counters *counters) {
  for (int i = 0; i < COUNTERS; i++)
    if (counters->list[i].file >= 0) close(counters->list[i].file);
}
#else

Counters counters_open(void) {
  Counters counters;
  for (int i = 0; i < COUNTERS; i++) counters.list[i] = (Counter){"counter", -1, ENOENT, 0};
  return counters;
}
void counters_start(Counters *counters) { (void)counters; }
void counters_stop(Counters *counters) { (void)counters; }
void counters_close(Counters *counters) { (void)counters; }
#endif
