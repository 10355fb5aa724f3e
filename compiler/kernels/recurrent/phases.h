/* SPDX-License-Identifier: MIT */
/*
 * Phased schedules (DeepCPU, section 5.1): a sequence of phases, each a set of independent matrix products whose
 * dependencies are in earlier phases. A phase with a time-dependent product is a time-dependent phase. All valid
 * schedules of a window of a few steps are considered; the paper's rules prune them:
 *
 *   order       (its rule 3) time-independent phases come before time-dependent ones
 *   dependency  (rule 2) of two consecutive phases of one type, the second depends on the first; else they are one
 *               phase
 *   symmetry    (rule 1) the time-dependent phases of one step have the same products as those of the next. Here also
 *               for time-independent phases: a product is in one phase for all steps, so that they fuse
 *
 * A schedule that breaks several rules counts for the first one. A window of two steps is enough: a step depends only
 * on the step before it, and by symmetry all steps are alike.
 */
#ifndef RNNCC_PHASES_H
#define RNNCC_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

/* Products of a window: bit step * products + product. */
typedef uint32_t PhaseSet;

enum { MAX_PHASE_BITS = 18 }; /* counting needs memory for each set of products */

typedef struct PhaseProduct {
  const char *name;
  bool time_dependent;
  PhaseSet same_step, step_before; /* the products it needs, as bits of one step */
} PhaseProduct;

typedef struct PhaseWindow {
  int products, steps; /* products * steps <= MAX_PHASE_BITS */
  const PhaseProduct *product;
} PhaseWindow;

typedef enum PruneRule { PRUNE_NONE, PRUNE_ORDER, PRUNE_DEPENDENCY, PRUNE_SYMMETRY } PruneRule;

typedef struct PhasedSchedule {
  int count;
  PhaseSet phases[MAX_PHASE_BITS];
} PhasedSchedule;

typedef struct PhaseCounts {
  uint64_t valid;     /* schedules that keep all dependencies */
  uint64_t ordered;   /* of those, the ones that keep the rule of order */
  uint64_t depending; /* of those, the ones that keep the rule of dependency */
  uint64_t symmetric; /* of those, the ones that keep the rule of symmetry: the survivors */
} PhaseCounts;

PhaseCounts phases_count(Arena *arena, const PhaseWindow *window);

/* The first rule that a valid schedule breaks. */
PruneRule phases_rule(const PhaseWindow *window, const PhasedSchedule *schedule);
const char *prune_rule_name(PruneRule rule);

typedef void PhaseVisit(void *context, const PhasedSchedule *schedule, PruneRule rule);
/* Every valid schedule. */
void phases_visit_all(const PhaseWindow *window, PhaseVisit *visit, void *context);
/* The survivors, without visiting what the first two rules prune. */
void phases_visit_survivors(const PhaseWindow *window, PhaseVisit *visit, void *context);

bool phase_is_time_dependent(const PhaseWindow *window, PhaseSet phase);
/* All of a step's bits. */
PhaseSet phase_step(const PhaseWindow *window, int step);
/* "W(0) W(1) | R(0) | R(1)" */
const char *phases_text(Arena *arena, const PhaseWindow *window, const PhasedSchedule *schedule);

#endif
