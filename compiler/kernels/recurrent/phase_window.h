/* SPDX-License-Identifier: MIT */
/*
 * One layer's matrix products, cut out of the MM-DAG and unrolled over a few steps, for phases.h; and their fusion
 * within a phase (DeepCPU, section 5.2): products that read the same input become one along N, and a product of all
 * steps becomes one along M.
 *
 * Each layer is a stage: results of other layers are complete before its first phase, and MatMuls and Gemms that feed
 * it are products of its window. Two grains: by input, where gates with the same input and dependencies are one
 * product, as kernels run them; and by gate, of one direction, as the paper counts (its fewer than 20 schedules of an
 * LSTM are 16: each gate's W x is computed ahead or with its step).
 */
#ifndef RNNCC_PHASE_WINDOW_H
#define RNNCC_PHASE_WINDOW_H

#include "kernels/recurrent/mm_dag.h"
#include "kernels/recurrent/phases.h"

typedef enum Grain { GRAIN_INPUT, GRAIN_GATE } Grain;

enum { WINDOW_STEPS = 2, MAX_FEEDERS = 2, MAX_GROUPS = 9 };

/* The matrix products of a product of the window. */
typedef struct MmGroup {
  MmOperand operand;
  int direction;
  int input;              /* groups of one number share their input in a step */
  int n_mms;              /* gates, or 1 */
  int mms[4];             /* indices in MmDag.mms */
  int64_t columns, depth; /* N of all of them, K */
} MmGroup;

typedef struct LayerWindow {
  PhaseWindow window;
  MmGroup groups[MAX_GROUPS];
  PhaseProduct products[MAX_GROUPS];
} LayerWindow;

LayerWindow *layer_window(Arena *arena, const MmDag *dag, int layer, Grain grain);

/* One product after fusion. */
typedef struct FusedMm {
  PhaseSet groups; /* bits of one step */
  int steps;       /* of the window: 1, or all of them */
  int input;
  MmOperand operand;
  int64_t columns, depth; /* N, K; M is the batch, times all steps if `steps` says so */
} FusedMm;

/* Fuses the products of a phase; returns their number in `fused`, which has room for MAX_PHASE_BITS. */
int fuse_phase(const LayerWindow *layer, PhaseSet phase, FusedMm *fused);

/* A schedule of a layer. Kernels compute products that feed a layer ahead of it, and treat all gates and directions
 * alike: they run a survivor if its products with W are all ahead of the steps, or all in the first phase of their
 * step. */
typedef struct LayerSchedule {
  PhasedSchedule phases;
  PruneRule pruned; /* PRUNE_NONE: it survives */
  bool runs;        /* kernels run it: a survivor, by */
  InputProduct input;
} LayerSchedule;

typedef struct LayerSchedules {
  int count, capacity;
  const LayerSchedule **list;
} LayerSchedules;

/* All survivors, in the order in which phases.h visits them. */
LayerSchedules surviving_schedules(Arena *arena, const LayerWindow *layer);
/* Adds the first `limit` schedules that each rule prunes. */
void add_pruned_schedules(Arena *arena, const LayerWindow *layer, uint64_t limit, LayerSchedules *schedules);

#endif
