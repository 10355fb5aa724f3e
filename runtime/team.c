/* SPDX-License-Identifier: MIT */
/*
 * Barriers. In a flat team each worker advances its own counter and awaits all others'. In a tree a worker advances
 * `entered` once it and all below it have arrived, and `released` once it knows that all have: the caller knows it from
 * its children, the others from their parents' `released`.
 *
 * Both counters of a parent, and the one of a worker without children, are equal to `passed` between regions: each
 * barrier and each end of a region advances them once. At the end of a region nobody awaits `released`.
 *
 * tests/protocol/pool.pml has the same steps.
 */
#include "epoch.h"
#include "fiber.h"
#include "tree.h"

/* Flat, or a leaf: nobody has to be awaited before it can be told that this worker has arrived. */
static bool arrives_alone(const Team *team) {
  return !is_tree(team->size) || tree_first_step(team->rank, team->size) == 0;
}

static void await_entered(Team *team, int rank) {
  team->waited += epoch_await(&team->epochs[rank].entered, team->passed, team->patience);
}

static void tell_entered(const Team *team) { epoch_advance(&team->epochs[team->rank].entered, team->passed); }

static void tell_released(const Team *team) { epoch_advance(&team->epochs[team->rank].released, team->passed); }

/* A parent's arrival. */
static void gather(Team *team) {
  for (int child = 0; (child = tree_child_after(team->rank, team->size, child));) await_entered(team, child);
  tell_entered(team);
}

static void await_all(Team *team) {
  for (int rank = 0; rank < team->size; rank++)
    if (rank != team->rank) await_entered(team, rank);
}

static void meet_in_tree(Team *team) {
  bool parent = !arrives_alone(team);
  if (parent) gather(team);
  if (team->rank) {
    Epoch *released = &team->epochs[tree_parent(team->rank)].released;
    team->waited += epoch_await(released, team->passed, team->patience);
  }
  if (parent) tell_released(team);
}

void team_enter(Team *team) {
  if (team->fiber) return; /* whoever resumes it does so when all have come as far */
  team->passed++;
  if (arrives_alone(team)) tell_entered(team);
}

void team_await(Team *team) {
  if (team->fiber)
    fiber_yield(team->fiber);
  else if (is_tree(team->size))
    meet_in_tree(team);
  else
    await_all(team);
}

void team_leave(Team *team) {
  team_enter(team);
  if (arrives_alone(team)) return;
  gather(team);
  tell_released(team);
}

void team_await_end(Team *team) {
  if (!is_tree(team->size)) await_all(team);
}
