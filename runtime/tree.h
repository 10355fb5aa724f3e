/* SPDX-License-Identifier: MIT */
/*
 * The tree in which the workers of a large team meet and wake each other. Of TREE_FAN workers with consecutive ranks
 * the first is the parent of the others; of TREE_FAN such first ones, again the first is the parent of the others, and
 * so on. So parents have lower ranks than their children, the caller is the root, and a subtree is a run of ranks.
 *
 * In a flat team each worker reads the cache lines of all others, n * (n - 1) transfers for a barrier; in a tree each
 * line is read once. But there a barrier takes four transfers one after the other instead of one, so teams are flat
 * below TREE_FROM workers.
 */
#ifndef RNNCC_TREE_H
#define RNNCC_TREE_H

#include <stdbool.h>

#ifndef TREE_FROM /* tests have small trees */
enum { TREE_FROM = 17, TREE_FAN = 8 };
#endif

static inline bool is_tree(int size) { return size >= TREE_FROM; }

/* The parent of a worker other than the caller. */
static inline int tree_parent(int rank) {
  int step = TREE_FAN;
  while (rank % step == 0) step *= TREE_FAN;
  return rank - rank % step;
}

/* The distance from this worker's first child to the second, 0 if it has none. */
static inline int tree_first_step(int rank, int size) {
  if (rank % TREE_FAN != 0 || rank + 1 >= size) return 0;
  int step = 1;
  while (rank % (step * TREE_FAN * TREE_FAN) == 0 && rank + step * TREE_FAN < size) step *= TREE_FAN;
  return step;
}

/* The distance between siblings, of which this child is one. */
static inline int tree_step(int child) {
  int step = 1;
  while (child % (step * TREE_FAN) == 0) step *= TREE_FAN;
  return step;
}

/* The worker's child after `child`, or its first if `child` is 0; 0 after the last. Children with more workers below
 * them come first: they have more to wake. */
static inline int tree_child_after(int rank, int size, int child) {
  int step = child ? tree_step(child) : tree_first_step(rank, size);
  if (child && child + step < size && child + step < rank + step * TREE_FAN) return child + step;
  if (child) step /= TREE_FAN;
  return step ? rank + step : 0;
}

#endif
