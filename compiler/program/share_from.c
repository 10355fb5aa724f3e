/* SPDX-License-Identifier: MIT */
/*
 * From which amount of work on a run is shared among the workers. Workers meet at each barrier, which takes longer than
 * all that a small network computes. The work of a run goes with its dims, so the limit is a multiple of that at their
 * optima: the runtime multiplies what they have by.
 */
#include <math.h>

#include "ir/config.h"
#include "ir/dim.h"
#include "ir/op.h"
#include "machine/machine.h"
#include "passes.h"
#include "program/program.h"

/* Workers do not come to a barrier together. Networks with 5 to 70 of them, of which each computed some microseconds,
 * took 0.4 to 0.6 us longer for each on two workers of a Zen 4, whose barrier alone takes 0.1. */
static const double MEETINGS = 4;

/* Of one worker, in nanoseconds. */
typedef struct Spent {
  double work, meetings;
} Spent;

/* Searches take as long as their data says. */
static bool is_search(const Node *node) {
  return is_op(node, OP_NonMaxSuppression) || is_op(node, OP_TopK) || is_op(node, OP_Unique);
}

static double call_ns(const Item *item, const Machine *m) {
  return is_search(item->node) ? INFINITY : item->call->flops / m->gflops + item->call->bytes / m->l2_gbps;
}

static Spent block_cost(const Block *block, const Machine *m);

/* A loop whose turns nobody knows, and layers in chunks: as much work as can be. */
static Spent item_cost(const Item *item, const Machine *m) {
  switch (item->kind) {
  case ITEM_CALL:
    return (Spent){.work = call_ns(item, m)};
  case ITEM_BARRIER:
    return (Spent){.meetings = MEETINGS * m->barrier_ns};
  case ITEM_IF:
  case ITEM_SCOPE: {
    Spent cost = block_cost(item->block, m), other = item->other ? block_cost(item->other, m) : (Spent){0};
    return cost.work > other.work ? cost : other;
  }
  case ITEM_LOOP: {
    Spent cost = block_cost(item->block, m);
    double turns = item->dim ? (double)dim_optimum(item->dim) : INFINITY;
    return (Spent){cost.work * turns, cost.meetings * turns};
  }
  case ITEM_WAVEFRONT:
    return (Spent){.work = INFINITY};
  case ITEM_LOAD_DIM:
  case ITEM_SET_DIM:
  case ITEM_STORE_DIM:
  case ITEM_BREAK_UNLESS:
    break;
  }
  return (Spent){0};
}

static Spent block_cost(const Block *block, const Machine *m) {
  Spent sum = {0};
  for (int i = 0; i < block->count; i++) {
    Spent cost = item_cost(block->items[i], m);
    sum = (Spent){sum.work + cost.work, sum.meetings + cost.meetings};
  }
  return sum;
}

/* needs: place_barriers. keeps: all. Sets share_from. */
void find_share_from(Program *program) {
  const Machine *m = program->graph->config->machine;
  Spent cost = block_cost(program->schedule, m);
  double saved = cost.work * (1 - 1.0 / m->cores);
  program->share_from = m->cores > 1 && isfinite(cost.work) && saved > 0 ? cost.meetings / saved : 0;
}
