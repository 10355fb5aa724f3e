/* SPDX-License-Identifier: MIT */
#include "tune/measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/family.h"
#include "kernels/recurrent/cell.h"
#include "rnncc_loader.h"
#include "support/clock.h"
#include "support/interrupt.h"

enum { MAX_TURNS = 4096, MESSAGE_BYTES = 512 };

static const double MAX_SWITCHES = 50; /* involuntary ones a second: an idle machine has a few */

/* Runs of a module in one turn. The first runs of a turn find cold caches and sleeping workers, and do not count. */
enum { TURN_RUNS = 24, UNCOUNTED_RUNS = 8 };

/* The child's answer: times, or a message. */
typedef struct Report {
  bool good, disturbed;
  double median_us[2];
  char message[MESSAGE_BYTES];
} Report;

/* ---- inputs ---- */

static bool is_lengths(const Graph *graph, const Value *value, int64_t *steps) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    bool reads = node->op->family == &family_recurrent && node->n_inputs > INPUT_LENGTHS;
    if (!reads || node->inputs[INPUT_LENGTHS] != value) continue;
    *steps = dim_optimum(node->inputs[INPUT_X]->shape[node_int(node, ATTR_layout) ? 1 : 0]);
    return true;
  }
  return false;
}

static void fill(const Graph *graph, const Value *value, void *data, int64_t count) {
  int64_t steps = 0;
  bool lengths = is_lengths(graph, value, &steps);
  uint32_t noise = 1;
  for (int64_t i = 0; i < count; i++) {
    noise = noise * 1664525 + 1013904223;
    if (value->dtype == RNNCC_F32) ((float *)data)[i] = (float)(noise >> 8) / (float)(1 << 23) - 1;
    if (value->dtype == RNNCC_I32 && lengths) ((int32_t *)data)[i] = (int32_t)steps;
    if (value->dtype == RNNCC_I64 && lengths) ((int64_t *)data)[i] = steps;
  }
}

static rnncc_tensor input_tensor(const Graph *graph, const Value *value) {
  int64_t count = (int64_t)value_optimum(value);
  size_t bytes = (size_t)count * dtype_size(value->dtype);
  rnncc_tensor tensor = {.struct_size = sizeof tensor,
                         .data = calloc(1, bytes),
                         .bytes = bytes,
                         .dtype = value->dtype,
                         .rank = value->rank};
  for (int axis = 0; axis < value->rank; axis++) tensor.shape[axis] = dim_optimum(value->shape[axis]);
  if (tensor.data) fill(graph, value, tensor.data, count);
  return tensor;
}

static rnncc_tensor output_tensor(const rnncc_tensor_info *info) {
  size_t bytes = dtype_size(info->dtype);
  for (int axis = 0; axis < info->rank; axis++) bytes *= (size_t)info->max_shape[axis];
  return (rnncc_tensor){
      .struct_size = sizeof(rnncc_tensor), .data = malloc(bytes), .bytes = bytes, .dtype = info->dtype};
}

/* ---- the child: nothing is given back, it ends soon ---- */

typedef struct Runner {
  const rnncc_api *api;
  rnncc_context *context;
  rnncc_tensor *inputs, *outputs;
  int turns;
  double medians[MAX_TURNS]; /* microseconds, of the turns */
} Runner;

static double now_us(void) { return 1e6 * seconds_now(); }

static _Noreturn void send_report(int pipe, const Report *report) {
  const char *bytes = (const char *)report;
  size_t left = sizeof *report;
  while (left > 0) {
    ssize_t written = write(pipe, bytes, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    bytes += written, left -= (size_t)written;
  }
  _exit(0);
}

static _Noreturn void give_up(int pipe, const char *what) {
  Report report = {.good = false};
  snprintf(report.message, sizeof report.message, "%s", what);
  send_report(pipe, &report);
}

static void prepare_tensors(Runner *runner, const Graph *graph, int pipe) {
  const rnncc_info *info = runner->api->info;
  runner->inputs = calloc((size_t)info->n_inputs + 1, sizeof *runner->inputs);
  runner->outputs = calloc((size_t)info->n_outputs + 1, sizeof *runner->outputs);
  if (!runner->inputs || !runner->outputs) give_up(pipe, "out of memory");
  for (int i = 0; i < info->n_inputs; i++) runner->inputs[i] = input_tensor(graph, graph->inputs[i]);
  for (int i = 0; i < info->n_outputs; i++) runner->outputs[i] = output_tensor(rnncc_output_at(info, i));
}

static void start_runner(Runner *runner, const char *module, const Graph *graph, int threads, int pipe) {
  rnncc_library library;
  char message[MESSAGE_BYTES];
  const char *why = "";
  rnncc_model *model;
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  if (rnncc_load(module, &library, message, sizeof message)) give_up(pipe, message);
  runner->api = library.api;
  if (runner->api->model_create(&options, &model, &why)) give_up(pipe, why);
  if (runner->api->context_create(model, NULL, 0, &runner->context, NULL)) give_up(pipe, "no context could be created");
  prepare_tensors(runner, graph, pipe);
}

static double run_once(Runner *r, int pipe) {
  const rnncc_info *info = r->api->info;
  double start = now_us();
  if (r->api->run(r->context, r->inputs, (size_t)info->n_inputs, r->outputs, (size_t)info->n_outputs))
    give_up(pipe, r->api->last_error(r->context));
  return now_us() - start;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A turn ends after some runs, or after its share of the time if runs are long. */
static void take_turn(Runner *runner, double most_us, int pipe) {
  double times[TURN_RUNS], end = now_us() + most_us;
  int count = 0;
  for (int i = 0; i < TURN_RUNS && (i == 0 || now_us() < end); i++) {
    times[count] = run_once(runner, pipe);
    count += i >= UNCOUNTED_RUNS || now_us() > end;
  }
  if (count == 0 || runner->turns == MAX_TURNS) return;
  qsort(times, (size_t)count, sizeof *times, by_value);
  runner->medians[runner->turns++] = times[count / 2];
}

/* The lower quartile of the turns' medians: disturbances only make a turn slower. */
static double quiet_median(Runner *runner) {
  qsort(runner->medians, (size_t)runner->turns, sizeof *runner->medians, by_value);
  return runner->turns ? runner->medians[runner->turns / 4] : 0;
}

static long switches_so_far(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static _Noreturn void run_child(const Graph *graph, const Duel *duel, int pipe) {
  enum { TURNS = 10 }; /* at least, of each */
  static Runner runners[2];
  int count = duel->modules[1] ? 2 : 1;
  for (int i = 0; i < count; i++) start_runner(&runners[i], duel->modules[i], graph, duel->threads, pipe);
  for (int i = 0; i < count; i++) run_once(&runners[i], pipe);
  double start = now_us(), turn = 1e6 * duel->seconds / (TURNS * count);
  long switches = switches_so_far();
  for (int turns = 0; turns < 2 || now_us() < start + 1e6 * duel->seconds; turns++)
    for (int i = 0; i < count; i++) take_turn(&runners[(i + turns) % count], turn, pipe);
  Report report = {.good = true};
  report.disturbed = (double)(switches_so_far() - switches) > MAX_SWITCHES * (now_us() - start) / 1e6;
  for (int i = 0; i < count; i++) report.median_us[i] = quiet_median(&runners[i]);
  send_report(pipe, &report);
}

/* ---- the parent ---- */

/* False if the child died or did not answer in time, or a signal came. */
static bool receive(int pipe, Report *report, double seconds) {
  double end = now_us() + 1e6 * seconds;
  size_t got = 0;
  while (got < sizeof *report) {
    struct pollfd wait = {.fd = pipe, .events = POLLIN};
    double left = end - now_us();
    if (left <= 0 || interrupt_pending()) return false;
    if (poll(&wait, 1, (int)(left / 1e3) + 1) <= 0) continue;
    ssize_t more = read(pipe, (char *)report + got, sizeof *report - got);
    if (more == 0 || (more < 0 && errno != EINTR)) return false;
    got += more > 0 ? (size_t)more : 0;
  }
  return true;
}

static void forget_signals(void) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
}

const char *measure_duel(Graph *graph, Duel *duel) {
  static const double patience = 60; /* seconds beyond the time to measure, for loading and for slow runs */
  int ends[2];
  fflush(NULL);
  if (pipe(ends) != 0) return arena_string(graph->arena, strerror(errno));
  pid_t child = fork();
  if (child < 0) {
    close(ends[0]), close(ends[1]);
    return arena_string(graph->arena, strerror(errno));
  }
  if (child == 0) {
    forget_signals();
    run_child(graph, duel, ends[1]);
  }
  close(ends[1]);
  Report report = {.good = false};
  bool heard = receive(ends[0], &report, duel->seconds + patience);
  close(ends[0]);
  if (!heard) kill(child, SIGKILL);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  interrupt_check();
  if (!heard) return "the module crashed or did not end";
  if (!report.good) return arena_string(graph->arena, report.message);
  duel->disturbed = report.disturbed;
  memcpy(duel->median_us, report.median_us, sizeof duel->median_us);
  return NULL;
}
