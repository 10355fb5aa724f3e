/* SPDX-License-Identifier: MIT */
/*
 * Each distinct convolution of a model is taken out of it and measured by itself (NeoCPU section 3.3.1): the schedules
 * that should be best are built, several at once, measured one by one, and checked against the reference kernel. Each
 * trial is recorded at once, and the winner at the end of a task.
 */
#include "tune/tuners.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu_limit.h"
#include "kernels/conv/recorded.h"
#include "link/toolchain.h"
#include "support/interrupt.h"
#include "tune/build_trials.h"
#include "tune/runner.h"
#include "tune/trial_check.h"
#include "tune/workloads.h"

enum { USUAL_TRIALS = 8, MIN_RUNS = 5, MAX_RUNS = 100 };

/* A measurement ends after SECONDS, when the median's relative error is below PRECISION, or when its fastest run is
 * slower than HOPELESS times the best so far. */
static const double SECONDS = 0.25, PRECISION = 0.005, HOPELESS = 1.15;

/* A module that takes longer hangs. */
static const double LIMIT_SECONDS = 30;

/* Of the predicted schedule's time: a smaller gain is noise. */
static const double CLEAR_WIN = 0.985;

struct ConvolutionTuner {
  Tuning *tuning;
  const char *runtime; /* object file of the trials' runtime */
  Workloads workloads;
  int compared;                   /* tasks whose predicted schedule and winner both have a time */
  double log_gain;                /* sum of log(predicted / winner) over them */
  double predicted_us, winner_us; /* of all layers */
};

/* One task: the trials of one workload. */
typedef struct Contest {
  ConvolutionTuner *tuner;
  const Workload *workload;
  Arena *arena;
  Trials trials;
  TrialCase trial_case;
  Expected expected;
  RunnerBytes inputs[MAX_TRIAL_INPUTS];
  int planned;
} Contest;

/* ---- one trial ---- */

static bool rounds(const Contest *contest, const Trial *trial) {
  return trial->candidate->algorithm == &convolution_winograd || !contest->trial_case.exact_input;
}

/* Bytes to evict: between two runs of this layer, other layers of a network would have left none of its weights in a
 * cache. */
static int64_t evicted_bytes(const Machine *machine) {
  enum { MAX_BYTES = 1 << 28 };
  int64_t bytes = machine->l3_bytes + machine->l3_bytes / 2 + machine->cores * machine->l2_bytes;
  return bytes < MAX_BYTES ? bytes : MAX_BYTES;
}

static Measurement measure(Arena *arena, const Contest *contest, const Trial *trial, bool check, double give_up_us) {
  const Tuning *tuning = contest->tuner->tuning;
  MeasureRequest request = {.module = trial->module,
                            .node = TRIAL_NODE,
                            .threads = tuning->graph->config->machine->cores,
                            .least_runs = MIN_RUNS,
                            .runs = MAX_RUNS,
                            .seconds = SECONDS,
                            .precision = PRECISION,
                            .give_up_us = give_up_us,
                            .limit_seconds = LIMIT_SECONDS,
                            .evict_bytes = evicted_bytes(tuning->graph->config->machine),
                            .n_inputs = contest->trial_case.n_inputs,
                            .inputs = contest->inputs,
                            .outputs = check};
  return measure_module(arena, tuning->options->runner, &request);
}

static TrialState judge(const Contest *contest, const Trial *trial, const Measurement *measured) {
  if (measured->status == MEASURE_CRASHED) return TRIAL_CRASHED;
  if (measured->status == MEASURE_HUNG) return TRIAL_HUNG;
  const RunnerBytes *y = measured->outputs;
  bool right = measured->n_outputs == 1 &&
               trial_is_right(&contest->expected, y->data, (int64_t)(y->size / sizeof(float)), rounds(contest, trial));
  return right ? TRIAL_OK : TRIAL_WRONG;
}

static const char *kernels_of(const void *layer, const ConvCandidate *candidate) {
  const Contest *contest = layer;
  Graph *graph = contest->tuner->tuning->graph;
  const Workload *w = contest->workload;
  return convolution_kernels(graph, w->node, convolution_schedule(graph, w->node, w->layout, candidate));
}

/* status: NULL for the winner. */
static void record(const Contest *contest, const Trial *trial, const char *status, double median_us) {
  ScheduleRecord line = {.key = contest->workload->key,
                         .kernels = kernels_of(contest, trial->candidate),
                         .schedule = trial->schedule,
                         .status = status,
                         .median_us = median_us};
  records_append(contest->arena, contest->tuner->tuning->output, &line);
}

static double gflops(const Contest *contest, double microseconds) {
  return microseconds > 0 ? 2e-3 * contest->workload->macs / microseconds : 0;
}

static void tell(const Contest *contest, const Trial *trial) {
  const Trial *best = trials_best(&contest->trials);
  task_tell(&contest->tuner->tuning->tasks, gflops(contest, trial->median_us),
            gflops(contest, best ? best->median_us : 0), "GFLOPS", contest->trials.tried, contest->planned);
}

static void tell_failure(const Contest *contest, const Trial *trial, const char *message) {
  task_end(&contest->tuner->tuning->tasks);
  warn_at(LOCATION_FILE(contest->tuner->tuning->options->model), "%s: %s: %s", trial->schedule,
          trial_status(trial->state), message ? message : "not what the reference kernel computes");
}

/* If the runner itself fails, it would fail for the next candidate, too. */
static void check_runner(const Tuning *tuning, const Measurement *measured) {
  int cores = tuning->graph->config->machine->cores;
  if (measured->status == MEASURE_FAILED)
    fatal_at(LOCATION_FILE(tuning->options->model), EXIT_ENVIRONMENT, "cannot measure: %s", measured->message);
  if (measured->status == MEASURE_OK && measured->cores < cores)
    fatal_at(LOCATION_FILE(tuning->options->model), EXIT_INVALID,
             "plans are made for %d threads, but what measures them has %d CPUs: --threads=%d", cores, measured->cores,
             measured->cores);
}

static void try(Contest *contest, Trial *trial) {
  Tuning *tuning = contest->tuner->tuning;
  const Trial *best = trials_best(&contest->trials);
  Arena *arena = arena_new(); /* outputs may be large, and trials many */
  Measurement measured = measure(arena, contest, trial, true, best ? HOPELESS * best->median_us : 0);
  check_runner(tuning, &measured);
  trial->state = judge(contest, trial, &measured);
  trial->median_us = trial->state == TRIAL_OK ? measured.median_us : 0;
  tuning->measurements++;
  tuning->disturbed += measured.disturbed;
  record(contest, trial, trial_status(trial->state), trial->median_us);
  if (trial->state != TRIAL_OK) tell_failure(contest, trial, measured.message);
  arena_free(arena);
}

/* ---- the rounds ---- */

static void build(const Contest *contest, Trial **trials, int count) {
  build_trials(contest->tuner->tuning, contest->tuner->runtime, &contest->trial_case, trials, count);
}

/* As many as there are CPUs: building them takes as long as building one. */
static int round_size(const Contest *contest) {
  int size = 2 * cpu_limit_threads(), left = contest->planned - contest->trials.tried;
  return size < left ? size : left;
}

static void remove_modules(Contest *contest, const Trial *but, const Trial *and_but) {
  for (int i = 0; i < contest->trials.count; i++) {
    Trial *trial = &contest->trials.list[i];
    if (!trial->module || trial == but || trial == and_but) continue;
    unlink(trial->module);
    trial->module = NULL;
  }
}

static void run_rounds(Contest *contest) {
  bool all = contest->tuner->tuning->options->exhaustive;
  Trial **round = ARENA_ARRAY(contest->arena, Trial *, contest->trials.count);
  while (contest->trials.tried < 2 || task_seconds_left(&contest->tuner->tuning->tasks) > 0) {
    interrupt_check();
    int count = trials_next(contest->arena, &contest->trials, round_size(contest), all, round);
    if (count == 0) return;
    build(contest, round, count);
    for (int i = 0; i < count; i++) {
      contest->trials.tried++;
      if (round[i]->module)
        try(contest, round[i]);
      else
        round[i]->state = TRIAL_LOST;
      tell(contest, round[i]);
    }
    remove_modules(contest, contest->trials.list, trials_best(&contest->trials)); /* the finalists, so far */
  }
}

/* ---- the winner ---- */

/* Measures both once more, in turns, because conditions may have changed between the first trial and the last. The
 * least median counts. */
static void measure_again(Contest *contest, Trial *a, Trial *b) {
  enum { TURNS = 2 };
  Trial *both[2] = {a, b}, *unbuilt[2];
  int n_unbuilt = 0;
  for (int i = 0; i < 2; i++)
    if (!both[i]->module) unbuilt[n_unbuilt++] = both[i];
  build(contest, unbuilt, n_unbuilt);
  for (int turn = 0; a->module && b->module && turn < 2 * TURNS; turn++) {
    Measurement measured = measure(contest->arena, contest, both[turn % 2], false, 0);
    if (measured.status == MEASURE_OK) both[turn % 2]->median_us = fmin(both[turn % 2]->median_us, measured.median_us);
  }
}

/* The predicted schedule, unless another one is clearly faster. NULL if no schedule works. */
static Trial *winner(Contest *contest) {
  Trial *first = &contest->trials.list[0], *best = trials_best(&contest->trials);
  if (!best || best == first || first->state != TRIAL_OK) return best;
  if (best->median_us < CLEAR_WIN * first->median_us) measure_again(contest, first, best);
  return best->median_us < CLEAR_WIN * first->median_us ? best : first;
}

static void add_to_summary(Contest *contest, const Trial *won) {
  ConvolutionTuner *tuner = contest->tuner;
  const Trial *first = &contest->trials.list[0];
  if (first->state != TRIAL_OK || contest->workload->other_blocks) return;
  tuner->compared++;
  tuner->log_gain += log(first->median_us / won->median_us);
  tuner->predicted_us += first->median_us * contest->workload->occurrences;
  tuner->winner_us += won->median_us * contest->workload->occurrences;
}

static bool none_was_built(const Trials *trials) {
  for (int i = 0; i < trials->count; i++)
    if (trials->list[i].state != TRIAL_OPEN && trials->list[i].state != TRIAL_LOST) return false;
  return true;
}

static void finish(Contest *contest) {
  const char *workload = contest->workload->key.workload;
  const Trial *won = winner(contest);
  task_end(&contest->tuner->tuning->tasks);
  if (!won) {
    contest->tuner->tuning->unbuilt += none_was_built(&contest->trials);
    warn_at(LOCATION_FILE(contest->tuner->tuning->options->model), "%s: no schedule was measured that works", workload);
    return;
  }
  record(contest, won, NULL, won->median_us);
  add_to_summary(contest, won);
  printf("%-56s %9.1f us %7.1f GFLOPS  %s%s\n", workload, won->median_us, gflops(contest, won->median_us),
         won->schedule, won == contest->trials.list ? "  (as predicted)" : "");
}

/* ---- tasks ---- */

static void begin(Contest *contest) {
  const TuneOptions *options = contest->tuner->tuning->options;
  Tuning *tuning = contest->tuner->tuning;
  const Workload *workload = contest->workload;
  contest->trials =
      trials_new(contest->arena, &workload->candidates, tuning->earlier, &workload->key, kernels_of, contest);
  int most = options->exhaustive ? contest->trials.count : options->trials ? options->trials : USUAL_TRIALS;
  if (workload->most_trials && most > workload->most_trials && !options->exhaustive) most = workload->most_trials;
  contest->planned = most < contest->trials.count ? most : contest->trials.count;
  if (contest->planned < contest->trials.tried) contest->planned = contest->trials.tried;
  contest->trial_case = trial_case(contest->arena, tuning->graph, workload->node, workload->layout);
  for (int i = 0; i < contest->trial_case.n_inputs; i++) {
    const Tensor *input = contest->trial_case.inputs[i];
    contest->inputs[i] = (RunnerBytes){input->data, (size_t)tensor_count(input) * sizeof(float)};
  }
  const char *wrong = trial_expected(&contest->trial_case, &contest->expected);
  if (wrong) bug("%s: the reference kernel says: %s", workload->key.workload, wrong);
}

static void tune_workload(ConvolutionTuner *tuner, const Workload *workload) {
  Contest contest = {.tuner = tuner, .workload = workload, .arena = arena_new()};
  begin(&contest);
  run_rounds(&contest);
  finish(&contest);
  remove_modules(&contest, NULL, NULL);
  arena_free(contest.arena);
}

static void tell_summary(const ConvolutionTuner *tuner) {
  if (tuner->compared == 0) return;
  printf("%d %s: %.3f times as fast as predicted schedules (geometric mean); a run's %.0f us become %.0f\n",
         tuner->compared, tuner->compared == 1 ? "convolution" : "convolutions", exp(tuner->log_gain / tuner->compared),
         tuner->predicted_us, tuner->winner_us);
}

static bool is_done(const Tuning *tuning, const Workload *workload) {
  return convolution_record(tuning->graph, workload->node, workload->layout, tuning->earlier) != NULL;
}

ConvolutionTuner *convolution_tuner(Tuning *tuning, int *tasks, int *done) {
  const TuneOptions *options = tuning->options;
  ConvolutionTuner *t = ARENA_NEW(tuning->graph->arena, ConvolutionTuner);
  *t = (ConvolutionTuner){.tuning = tuning};
  t->workloads = find_workloads(tuning->graph, options->shard, options->shards);
  int kept = 0;
  for (int i = 0; i < t->workloads.count; i++)
    if (!is_done(tuning, &t->workloads.list[i])) t->workloads.list[kept++] = t->workloads.list[i];
  *done += t->workloads.count - kept;
  *tasks += t->workloads.count = kept;
  return t;
}

void tune_convolutions(ConvolutionTuner *t) {
  Tuning *tuning = t->tuning;
  Build build = {.target = tuning->graph->config->target,
                 .seconds = tuning->options->tool_seconds,
                 .sandbox = tuning->options->sandbox};
  Arena *arena = tuning->graph->arena;
  t->runtime = build_runtime(arena, &build, runtime_text(arena, false, true, NULL), tuning->folder);
  for (int i = 0; i < t->workloads.count && tasks_begin(&tuning->tasks); i++) tune_workload(t, &t->workloads.list[i]);
  tell_summary(t);
}
