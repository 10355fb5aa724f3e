/* SPDX-License-Identifier: MIT */
/*
 * The kernels' own vectors, in loops that do nothing else, on as many threads as modules are planned for. Every speed
 * is measured once in each round, and the best of all rounds counts: what disturbs a machine is seldom there all the
 * time.
 */
#include "machine/calibrate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "machine/machine_file.h"
#include "machine/machines_print.h"
#include "machine/microarchitecture.h"
#include "speed.h"
#include "support/clock.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/interrupt.h"
#include "support/numbers.h"

enum { MAX_TARGETS = 16 };

typedef struct Calibration {
  int count;
  const Target *targets[MAX_TARGETS];
  Machine machines[MAX_TARGETS];
} Calibration;

/* Zero, except for values that are not measured. */
static Machine unmeasured(const Target *target) {
  Machine machine = machine_of(target, true, 0);
  return (Machine){.cores = machine.cores,
                   .l1_bytes = machine.l1_bytes,
                   .l2_bytes = machine.l2_bytes,
                   .l3_bytes = machine.l3_bytes,
                   .barrier_ns = machine.barrier_ns,
                   .fma_latency = machine.fma_latency,
                   .loads_per_cycle = machine.loads_per_cycle};
}

static Calibration targets_here(void) {
  Calibration c = {0};
  for (int i = 0; target_at(i) && c.count < MAX_TARGETS; i++) {
    if (!target_runs_here(target_at(i))) continue;
    c.targets[c.count] = target_at(i);
    c.machines[c.count++] = unmeasured(target_at(i));
  }
  return c;
}

/* ---- measuring ---- */

/* A working set that lives in L3: half of a core's share, but more than an L2 keeps during sweeps in one direction. */
static int64_t bytes_in_l3(const Machine *m) {
  return clamp_int(m->l2_bytes * 3 / 2, m->l3_bytes / (2 * m->cores), 4 * m->l2_bytes);
}

/* For all cores together eight times the L3, which may keep a part; bounded, because the L3 may be small or missing. */
static int64_t bytes_in_memory(const Machine *m) { return clamp_int(16 << 20, 8 * m->l3_bytes / m->cores, 256 << 20); }

static void keep_better(double *best, double rate) {
  if (rate > *best) *best = rate;
}

static void measure_target(const Target *target, Machine *m) {
  const char *isa = target->isa;
  keep_better(&m->ghz, speed_clock(isa, m->cores));
  keep_better(&m->gflops, speed_multiply_add(isa, m->cores));
  keep_better(&m->int8_gflops, speed_dot_products(isa, m->cores));
  keep_better(&m->l1_gbps, speed_read(isa, m->cores, (size_t)m->l1_bytes / 2, false));
  keep_better(&m->l2_gbps, speed_read(isa, m->cores, (size_t)m->l2_bytes / 2, false));
  keep_better(&m->l3_gbps, speed_read(isa, m->cores, (size_t)bytes_in_l3(m), false));
  keep_better(&m->dram_gbps, speed_read(isa, m->cores, (size_t)bytes_in_memory(m), false));
}

Meeting better_meeting(Meeting a, Meeting b) {
  static const double whole = 0.95; /* part of a core's multiply-adds that shows it to be a thread's own */
  if (!(a.ns > 0) || (b.ns > 0 && a.gflops < whole * b.gflops)) return b;
  if (!(b.ns > 0) || b.gflops < whole * a.gflops) return a;
  return (Meeting){min_double(a.ns, b.ns), a.gflops > b.gflops ? a.gflops : b.gflops};
}

/* No two threads can meet on one core. */
static Meeting measure_meeting(const Calibration *c) {
  if (c->machines[0].cores < 2) return (Meeting){0};
  double gflops = speed_multiply_add(c->targets[0]->isa, 2);
  return (Meeting){speed_meeting(), gflops};
}

/* Where others use the CPUs, no two threads may ever run at once: then a barrier takes what it usually does. */
static bool have_met(double meeting_ns) {
  bool good = machine_may_have("barrier_ns", meeting_ns);
  if (meeting_ns > 0 && !good)
    warn_at(LOCATION_FILE(NULL), "calibrate: no two threads ran at once: a barrier of %.0f us is not used",
            meeting_ns / 1000);
  return good;
}

static void measure_all(Calibration *c, double seconds) {
  double end = seconds_now() + seconds;
  Meeting best = {0};
  do {
    for (int i = 0; i < c->count; i++) {
      measure_target(c->targets[i], &c->machines[i]);
      interrupt_check();
    }
    best = better_meeting(best, measure_meeting(c));
  } while (seconds_now() < end);
  bool met = have_met(best.ns);
  for (int i = 0; i < c->count; i++) {
    if (met) c->machines[i].barrier_ns = best.ns;
    if (!(c->machines[i].dram_gbps > 0))
      fatal_at(LOCATION_FILE(NULL), EXIT_LIMIT, "calibrate: %d threads and %lld bytes for each are not to be had",
               c->machines[i].cores, (long long)bytes_in_memory(&c->machines[i]));
  }
}

/* ---- the file ---- */

/* The folders of the user's own file may not be there yet. */
static void make_folders(Arena *arena, const char *path) {
  char *folder = arena_string(arena, path);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
      fatal_at(LOCATION_FILE(folder), EXIT_ENVIRONMENT, "cannot make the folder: %s", strerror(errno));
    *slash = '/';
  }
}

static const char *default_output(Arena *arena) {
  const char *path = machine_file_default(arena);
  if (!path)
    fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "there is neither XDG_CACHE_HOME nor HOME: -o says where to write");
  make_folders(arena, path);
  return path;
}

void calibrate(Arena *arena, const char *output, double seconds) {
  Calibration c = targets_here();
  const char *path = output ? output : default_output(arena);
  file_try_output(arena, path);
  measure_all(&c, seconds);
  MachineFile file = {machine_cpu_name(arena), c.count, c.targets, c.machines};
  machines_print(&file);
  machine_file_write(arena, path, &file);
  printf("written to %s\n", path);
}
