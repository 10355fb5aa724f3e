/* SPDX-License-Identifier: MIT */
#include "tune/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/clock.h"

Tasks tasks_new(int count, double budget_seconds) {
  double now = seconds_now();
  return (Tasks){.count = count,
                 .start = now,
                 .budget_end = now + budget_seconds,
                 .on_terminal = isatty(STDERR_FILENO) && !getenv("NO_COLOR")};
}

bool tasks_begin(Tasks *tasks) {
  double now = seconds_now(), left = tasks->budget_end - now;
  if (left <= 0 && tasks->number > 0) return false;
  tasks->task_end = now + left / (tasks->count - tasks->number);
  tasks->number++;
  return true;
}

double task_seconds_left(const Tasks *tasks) { return tasks->task_end - seconds_now(); }

void task_tell(Tasks *tasks, double current, double best, const char *unit, int done, int planned) {
  fprintf(stderr, "%s[Task %d/%d] Current/Best: %.1f/%.1f %s | Progress: (%d/%d) | %.1f s%s",
          tasks->on_terminal ? "\r" : "", tasks->number, tasks->count, current, best, unit, done, planned,
          seconds_now() - tasks->start, tasks->on_terminal ? "\033[K" : "\n");
  tasks->within_line = tasks->on_terminal;
}

void task_end(Tasks *tasks) {
  if (tasks->within_line) fputc('\n', stderr);
  tasks->within_line = false;
}
