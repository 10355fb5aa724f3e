/* SPDX-License-Identifier: MIT */
/*
 * The tasks of a tuning share its budget: the time that is left is divided among the tasks that are left. Each reports
 * its trials in one line, which is updated in place on a terminal:
 *
 *     [Task 3/20] Current/Best: 151.2/163.4 GFLOPS | Progress: (12/40) | 8.1 s
 */
#ifndef RNNCC_TASKS_H
#define RNNCC_TASKS_H

#include <stdbool.h>

typedef struct Tasks {
  int number, count;                  /* number of the running task, from 1; of all tasks */
  double start, budget_end, task_end; /* seconds_now() */
  bool on_terminal, within_line;
} Tasks;

Tasks tasks_new(int count, double budget_seconds);
/* False if the budget is spent; the first task begins even then. */
bool tasks_begin(Tasks *tasks);
/* Of the task's share of the budget; below 0 if it has used more. */
double task_seconds_left(const Tasks *tasks);
/* unit: of current and best. done: trials, of `planned`. */
void task_tell(Tasks *tasks, double current, double best, const char *unit, int done, int planned);
/* Ends the progress line, so that later output starts on a new line. */
void task_end(Tasks *tasks);

#endif
