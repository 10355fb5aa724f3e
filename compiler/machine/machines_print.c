/* SPDX-License-Identifier: MIT */
#include "machine/machines_print.h"

#include <stdio.h>

#include "machine/microarchitecture.h"
#include "support/list.h"

void machines_print(const MachineFile *file) {
  const Machine *any = &file->machines[0];
  printf("%s; %d core%s, L1 %lld KB, L2 %lld KB, L3 %lld KB\n", file->cpu, any->cores, any->cores == 1 ? "" : "s",
         (long long)any->l1_bytes >> 10, (long long)any->l2_bytes >> 10, (long long)any->l3_bytes >> 10);
  printf("%-24s %6s %9s %9s %9s %9s %9s %9s %9s\n", "target", "GHz", "GFLOP/s", "int8", "L1 GB/s", "L2 GB/s", "L3 GB/s",
         "RAM GB/s", "meet ns");
  for (int i = 0; i < file->count; i++) {
    const Machine *m = &file->machines[i];
    printf("%-24s %6.2f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.0f\n", file->targets[i]->name, m->ghz, m->gflops,
           m->int8_gflops, m->l1_gbps, m->l2_gbps, m->l3_gbps, m->dram_gbps, m->barrier_ns);
  }
}

/* Where the speeds are from. measured: the user's file, or NULL. */
static void print_sources(const char *measured) {
  const Microarchitecture *m = microarchitecture_here();
  printf("cores and caches: this system's\n");
  if (measured)
    printf("speeds: measured, %s\n", measured);
  else if (!m)
    printf("speeds: usual ones of each target, as this CPU's microarchitecture is not known\n");
  else if (cpu_most_ghz() > 0)
    printf("clock: %.2f of the maximum that the system tells; other speeds: usual ones of %s\n", m->all_cores, m->name);
  else
    printf("speeds: usual ones of %s\n", m->name);
  if (!measured) printf("`rnncc targets --calibrate` measures the speeds\n");
}

/* A file that does not fit is told of once. */
void machine_here_print(Arena *arena) {
  const Target **targets = NULL;
  Machine *machines = NULL;
  int count = 0, target_capacity = 0, machine_capacity = 0;
  const char *measured = NULL;
  for (int i = 0; target_at(i); i++) {
    if (!target_runs_here(target_at(i))) continue;
    int n_machines = count;
    Machine *machine = LIST_ADD(arena, machines, n_machines, machine_capacity);
    if (count == 0 || measured)
      measured = machine_here(arena, target_at(i), machine);
    else
      *machine = machine_of(target_at(i), true, 0);
    *LIST_ADD(arena, targets, count, target_capacity) = target_at(i);
  }
  if (!count) return;
  machines_print(&(MachineFile){machine_cpu_name(arena), count, targets, machines});
  print_sources(measured);
}
