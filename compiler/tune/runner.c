/* SPDX-License-Identifier: MIT */
/*
 * A conversation over three pipes, none of which may block the others: while the module is sent, messages may arrive.
 * It ends with the runner's stdout. stderr may stay open for longer, as that of an ssh which leaves a master connection
 * behind does.
 */
#include "tune/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/files.h"
#include "support/interrupt.h"
#include "support/process.h"
#include "support/text.h"
#include "json/json.h"

enum { MAX_MODULE = 1 << 30, MAX_ANSWER = 1 << 30, MAX_MESSAGE = 1 << 14, MAX_INPUTS = 64 };

static const char REQUEST_END[] = "rnncc-measure-end\n", ANSWER_END[] = "rnncc-measurement-end\n";

static const double PATIENCE_SECONDS = 60, MIN_BYTES_A_SECOND = 250e3;

/* After its answer the runner has this long to end before it is killed. */
static const double SECONDS_TO_END = 5;

typedef struct Runner {
  Arena *arena;
  const char *command;
  pid_t pid;
  int input, output, error;           /* our ends of its stdin, stdout, stderr; -1: closed */
  RunnerBytes pieces[MAX_INPUTS + 3]; /* of the request */
  int n_pieces, piece;                /* piece: the one that is being sent */
  size_t sent;                        /* of that */
  Text answer, said;                  /* stdout, stderr */
  double deadline;
  bool late, ended; /* past the deadline; its process was reaped */
  int exit_status;  /* as of waitpid */
} Runner;

/* ---- the request ---- */

static void add_count(Text *text, const char *key, int64_t value) {
  if (value > 0) text_add(text, "%s %" PRId64 "\n", key, value);
}

static void add_number(Text *text, const char *key, double value) {
  if (value > 0) text_add(text, "%s %.9g\n", key, value);
}

static const char *request_lines(Arena *arena, const MeasureRequest *request, size_t module_bytes) {
  Text text = text_new(arena);
  text_add(&text, "rnncc-measure 1\nmodule %zu\n", module_bytes);
  if (request->node) text_add(&text, "node %s\n", request->node);
  add_count(&text, "threads", request->threads);
  add_count(&text, "least_runs", request->least_runs);
  add_count(&text, "runs", request->runs);
  add_number(&text, "seconds", request->seconds);
  add_number(&text, "precision", request->precision);
  add_number(&text, "give_up_us", request->give_up_us);
  add_number(&text, "limit", request->limit_seconds);
  add_count(&text, "evict", request->evict_bytes);
  add_count(&text, "seed", request->seed);
  add_count(&text, "outputs", request->outputs);
  for (int i = 0; i < request->n_inputs; i++) text_add(&text, "input %zu\n", request->inputs[i].size);
  text_add(&text, "end\n");
  return text.data;
}

static void add_piece(Runner *runner, const void *data, size_t size) {
  runner->pieces[runner->n_pieces++] = (RunnerBytes){data, size};
}

static void make_request(Runner *runner, const MeasureRequest *request) {
  if (request->n_inputs > MAX_INPUTS) bug("%d inputs of a module to measure", request->n_inputs);
  FileBytes module = file_read(runner->arena, request->module, MAX_MODULE, LOCATION_FILE(request->module));
  const char *lines = request_lines(runner->arena, request, module.size);
  add_piece(runner, lines, strlen(lines));
  add_piece(runner, module.data, module.size);
  for (int i = 0; i < request->n_inputs; i++) add_piece(runner, request->inputs[i].data, request->inputs[i].size);
  add_piece(runner, REQUEST_END, strlen(REQUEST_END));
  size_t bytes = 0;
  for (int i = 0; i < runner->n_pieces; i++) bytes += runner->pieces[i].size;
  double patience = request->patience_seconds > 0 ? request->patience_seconds : PATIENCE_SECONDS;
  runner->deadline = seconds_now() + request->limit_seconds + patience + (double)bytes / MIN_BYTES_A_SECOND;
}

/* ---- the process ---- */

/* rnnrun, where it is installed or built. */
static const char *own_rnnrun(Arena *arena) {
  static const char *const places[] = {"rnnrun", "../tools/rnnrun"};
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  int folder = (int)(file_last_part(program) - program);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    const char *path = arena_format(arena, "%.*s%s", folder, program, places[i]);
    if (access(path, X_OK) == 0) return path;
  }
  return "rnnrun";
}

static void close_end(int *end) {
  if (*end >= 0) close(*end);
  *end = -1;
}

static bool make_pipe(int *read_end, int *write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  *read_end = ends[0], *write_end = ends[1];
  return true;
}

/* NULL, or why not. */
static const char *start(Runner *runner) {
  const char *shell[] = {"sh", "-c", runner->command, NULL};
  const char *own[] = {own_rnnrun(runner->arena), "measure", NULL};
  int its_input = -1, its_output = -1, its_error = -1, failure = errno;
  if (make_pipe(&its_input, &runner->input) && make_pipe(&runner->output, &its_output) &&
      make_pipe(&runner->error, &its_error))
    failure = process_spawn(runner->command ? shell : own, ".", its_input, its_output, its_error, &runner->pid);
  else
    failure = errno;
  close_end(&its_input);
  close_end(&its_output);
  close_end(&its_error);
  if (failure) return arena_string(runner->arena, strerror(failure));
  fcntl(runner->input, F_SETFL, O_NONBLOCK);
  fcntl(runner->output, F_SETFL, O_NONBLOCK);
  fcntl(runner->error, F_SETFL, O_NONBLOCK);
  return NULL;
}

static bool reap(Runner *runner, int options) {
  pid_t pid;
  while ((pid = waitpid(runner->pid, &runner->exit_status, options)) < 0 && errno == EINTR) continue;
  runner->ended = runner->ended || pid != 0;
  return runner->ended;
}

/* Kills the rest of its process group, too. */
static void finish(Runner *runner) {
  double end = seconds_now() + (runner->late ? 0 : SECONDS_TO_END);
  close_end(&runner->input);
  close_end(&runner->output);
  close_end(&runner->error);
  while (runner->pid > 0 && !reap(runner, WNOHANG) && seconds_now() < end && !interrupt_pending()) usleep(1000);
  if (runner->pid > 0) kill(-runner->pid, SIGKILL);
  if (runner->pid > 0 && !runner->ended) reap(runner, 0);
}

/* ---- talking ---- */

/* A runner that no longer reads has said why, or will. */
static void send_more(Runner *runner) {
  while (runner->piece < runner->n_pieces) {
    const RunnerBytes *piece = &runner->pieces[runner->piece];
    ssize_t count = write(runner->input, (const char *)piece->data + runner->sent, piece->size - runner->sent);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) break;
    runner->sent += (size_t)count;
    if (runner->sent == piece->size) runner->piece++, runner->sent = 0;
  }
  close_end(&runner->input);
}

/* Reads on past the limit, and drops what comes. */
static void read_more(int *end, Text *text, size_t limit) {
  char buffer[1 << 16];
  ssize_t count;
  while ((count = read(*end, buffer, sizeof buffer)) > 0)
    if (text->length + (size_t)count <= limit) text_bytes(text, buffer, (size_t)count);
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) close_end(end);
}

/* poll() has a short timeout, because a signal that arrives just before poll() does not interrupt it. */
static void talk(Runner *runner) {
  while (runner->output >= 0 && !interrupt_pending() && !runner->late) {
    struct pollfd polls[] = {{runner->input, POLLOUT, 0}, {runner->output, POLLIN, 0}, {runner->error, POLLIN, 0}};
    if (poll(polls, 3, 100) > 0) {
      if (polls[0].revents) send_more(runner);
      if (polls[1].revents) read_more(&runner->output, &runner->answer, MAX_ANSWER);
      if (polls[2].revents) read_more(&runner->error, &runner->said, MAX_MESSAGE);
    }
    runner->late = seconds_now() > runner->deadline;
  }
  if (runner->error >= 0) read_more(&runner->error, &runner->said, MAX_MESSAGE);
}

/* ---- the answer ---- */

static const char *const STATUSES[] = {
    [MEASURE_OK] = "ok", [MEASURE_CRASHED] = "crashed", [MEASURE_HUNG] = "hung", [MEASURE_FAILED] = "failed"};

typedef struct Answer {
  Arena *arena;
  const Text *text;
  size_t line; /* bytes of the JSON */
  Measurement measurement;
} Answer;

static Json needed(Json object, const char *key) {
  Json value = json_member(object, key);
  if (json_kind(value) == JSON_ABSENT) error_at(json_where(object), EXIT_INVALID, "%s is missing", key);
  return value;
}

static MeasureStatus status_of(Json value) {
  const char *name = "";
  json_get_string(value, &name);
  for (MeasureStatus status = MEASURE_OK; status <= MEASURE_FAILED; status++)
    if (!strcmp(STATUSES[status], name)) return status;
  error_at(json_where(value), EXIT_INVALID, "expected a status of ok, crashed, hung or failed, found \"%s\"",
           short_name(json_arena(value), name));
  return MEASURE_FAILED;
}

static int count_of(Json object, const char *key, int64_t most) {
  int64_t count = 0;
  json_get_int(needed(object, key), 0, most, &count);
  return (int)count;
}

static void read_times(Json object, Measurement *measurement) {
  json_get_double(needed(object, "least_us"), &measurement->least_us);
  json_get_double(needed(object, "lower_us"), &measurement->lower_us);
  json_get_double(needed(object, "median_us"), &measurement->median_us);
  json_get_double(needed(object, "upper_us"), &measurement->upper_us);
  json_get_bool(needed(object, "gave_up"), &measurement->gave_up);
  json_get_bool(needed(object, "disturbed"), &measurement->disturbed);
  json_get_string(needed(object, "cpu"), &measurement->cpu);
  json_get_string(needed(object, "isa"), &measurement->isa);
  measurement->runs = count_of(object, "runs", INT_MAX);
  measurement->threads = count_of(object, "threads", INT_MAX);
  measurement->cores = count_of(object, "cores", INT_MAX);
}

/* The lengths of the outputs and of the last line must add up to the rest of the answer. */
static void read_outputs(Json object, Answer *answer) {
  Json list = needed(object, "outputs");
  if (!json_expect(list, JSON_ARRAY)) return;
  RunnerBytes *outputs = ARENA_ARRAY(answer->arena, RunnerBytes, json_count(list) + 1);
  size_t at = answer->line + 1, left = answer->text->length - at;
  int count = 0;
  for (Json size = json_first(list); json_kind(size) != JSON_ABSENT; size = json_next(size), count++) {
    int64_t bytes = 0;
    json_get_int(size, 0, (int64_t)left, &bytes);
    outputs[count] = (RunnerBytes){answer->text->data + at, (size_t)bytes};
    at += (size_t)bytes, left -= (size_t)bytes;
  }
  if (left != strlen(ANSWER_END) || memcmp(answer->text->data + at, ANSWER_END, left) != 0)
    error_at(json_where(object), EXIT_INVALID, "the bytes that follow are not those that it announces");
  answer->measurement.outputs = outputs;
  answer->measurement.n_outputs = count;
}

/* Ends at the first error: it runs in first_error_of(). */
static void read_answer(void *argument) {
  Answer *answer = argument;
  int64_t version;
  const char *name;
  Json object = json_parse(answer->arena, "the runner's answer", answer->text->data, answer->line, 0);
  json_get_int(needed(object, "version"), 1, 1, &version);
  Json format = needed(object, "format");
  if (json_get_string(format, &name) && strcmp(name, "rnncc-measurement") != 0)
    error_at(json_where(format), EXIT_INVALID, "expected the format \"rnncc-measurement\", found \"%s\"",
             short_name(answer->arena, name));
  answer->measurement.status = status_of(needed(object, "status"));
  read_outputs(object, answer);
  if (answer->measurement.status == MEASURE_OK)
    read_times(object, &answer->measurement);
  else
    json_get_string(needed(object, "message"), &answer->measurement.message);
}

static Measurement without_answer(const Runner *runner, const char *wrong) {
  char *said = arena_string(runner->arena, runner->said.length ? runner->said.data : "it says nothing on stderr");
  said[strcspn(said, "\n")] = 0;
  int code = WIFEXITED(runner->exit_status) ? WEXITSTATUS(runner->exit_status) : 128 + WTERMSIG(runner->exit_status);
  const char *message = runner->late ? "the runner does not end"
                                     : arena_format(runner->arena, "the runner ended with exit code %d: %s%s%s", code,
                                                    said, wrong ? "; " : "", wrong ? wrong : "");
  return (Measurement){.status = runner->late ? MEASURE_HUNG : MEASURE_FAILED, .message = message};
}

static Measurement understand(const Runner *runner) {
  const Text *text = &runner->answer;
  const char *end = text->length ? memchr(text->data, '\n', text->length) : NULL;
  if (!end || runner->late) return without_answer(runner, text->length ? "its answer ends early" : NULL);
  Answer answer = {.arena = runner->arena, .text = text, .line = (size_t)(end - text->data)};
  const char *wrong = first_error_of(read_answer, &answer);
  return wrong ? without_answer(runner, wrong) : answer.measurement;
}

/* Copies the measurement out of the conversation's memory, which is freed. The copied outputs are aligned. */
static Measurement keep(Arena *arena, Measurement measurement) {
  RunnerBytes *outputs = ARENA_ARRAY(arena, RunnerBytes, measurement.n_outputs + 1);
  for (int i = 0; i < measurement.n_outputs; i++) {
    const RunnerBytes *output = &measurement.outputs[i];
    outputs[i] = (RunnerBytes){arena_copy(arena, output->data, output->size), output->size};
  }
  measurement.outputs = outputs;
  if (measurement.message) measurement.message = arena_string(arena, measurement.message);
  if (measurement.cpu) measurement.cpu = arena_string(arena, measurement.cpu);
  if (measurement.isa) measurement.isa = arena_string(arena, measurement.isa);
  return measurement;
}

static Measurement converse(Arena *arena, const char *command, const MeasureRequest *request) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  Runner runner = {.arena = arena, .command = command, .input = -1, .output = -1, .error = -1};
  runner.answer = text_new(arena);
  runner.said = text_new(arena);
  make_request(&runner, request);
  sigaction(SIGPIPE, &ignore, &before);
  const char *wrong = start(&runner);
  if (!wrong) talk(&runner);
  finish(&runner);
  sigaction(SIGPIPE, &before, NULL);
  interrupt_check();
  return wrong ? (Measurement){.status = MEASURE_FAILED, .message = wrong} : understand(&runner);
}

Measurement measure_module(Arena *arena, const char *runner, const MeasureRequest *request) {
  Arena *scratch = arena_new();
  Measurement measurement = keep(arena, converse(scratch, runner, request));
  arena_free(scratch);
  return measurement;
}
