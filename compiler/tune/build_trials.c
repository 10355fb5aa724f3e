/* SPDX-License-Identifier: MIT */
#include "tune/build_trials.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_limit.h"
#include "support/process.h"

typedef struct Job {
  const Tuning *tuning;
  const char *runtime;
  const TrialCase *trial_case;
  const Trial *trial;
} Job;

/* Runs in the job's process. Its files are in the tuning's folder, and removed with it. */
static void build(void *argument) {
  const Job *job = argument;
  setenv("TMPDIR", job->tuning->folder, 1);
  job->tuning->build->graph(job->tuning->build->context, trial_graph(job->trial_case, job->trial->schedule),
                            job->runtime, job->trial->module);
}

void build_trials(const Tuning *tuning, const char *runtime, const TrialCase *trial_case, Trial **trials, int count) {
  Arena *arena = trial_case->arena;
  Job *jobs = ARENA_ARRAY(arena, Job, count);
  Process *processes = ARENA_ARRAY(arena, Process, count);
  for (int i = 0; i < count; i++) {
    trials[i]->module = arena_format(arena, "%s/%d_%d.so", tuning->folder, tuning->tasks.number, trials[i]->number);
    jobs[i] = (Job){tuning, runtime, trial_case, trials[i]};
    processes[i] = (Process){.body = build, .argument = &jobs[i], .folder = "."};
  }
  process_run_all(arena, processes, count, cpu_limit_threads(), 2 * tuning->options->tool_seconds);
  for (int i = 0; i < count; i++) {
    if (processes[i].outcome == PROCESS_OK) continue;
    warn_at(LOCATION_FILE(tuning->options->model), "%s could not be built: %.*s", trials[i]->schedule,
            (int)strcspn(processes[i].output, "\n"), processes[i].output);
    trials[i]->module = NULL;
  }
}
