/* SPDX-License-Identifier: MIT */
/*
 * The tasks of a tuning share its budget: what is left of it is divided among those that are left. Each tells of its
 * trials in one line, in place on a terminal:
 *
 *     [Task 3/20] Current/Best: 151.2/163.4 GFLOPS | Progress: (12/40) | 8.1 s
 */
#ifndef RNNCC_TASKS_H
#define RNNCC_TASKS_H

#include <stdbool.h>

typedef struct Tasks {
  int number, count;                  /* of the running one, from 1; of all */
  double start, budget_end, task_end; /* seconds_now() */
  bool on_terminal, within_line;
} Tasks;

Tasks tasks_new(int count, double budget_seconds);
/* False if the budget is spent; the first begins all the same. */
bool tasks_begin(Tasks *tasks);
/* Of its share of the budget; below 0 where it has had more. */
double task_seconds_left(const Tasks *tasks);
/* unit: of current and best. done: trials, of `planned`. */
void task_tell(Tasks *tasks, double current, double best, const char *unit, int done, int planned);
/* Ends the progress line, so that later output starts on a new line. */
void task_end(Tasks *tasks);

#endif
