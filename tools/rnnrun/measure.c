/* SPDX-License-Identifier: MIT */
/*
 * One measurement for a tuner, which sends a module and reads times: request.h says what comes in. What goes out is a
 * line of JSON, the outputs' bytes one after the other, and a last line, by which the reader knows that it has all.
 *
 * The module runs in a child, which may crash or hang: that too is an answer. The child writes its answer to a file in
 * memory; the parent sends either that or, if there is none, how the child ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caches.h"
#include "request.h"
#include "session.h"
#include "support.h"
#include "tensors.h"
#include "timings.h"
#include "verbs.h"

static const char LAST_LINE[] = "rnncc-measurement-end\n";

/* Involuntary, a second: an idle machine has a few. */
static const double MAX_SWITCHES = 50;

/* So many runs are enough to tell that a kernel is far too slow. */
enum { RUNS_TO_GIVE_UP = 3 };

typedef struct Candidate {
  Session session;
  const Request *request;
  rnncc_tensor *inputs;
  rnncc_tensor *first, *outputs; /* of the first run, which is sent; of the later ones */
  void *caches;                  /* what is read to empty them */
  Timings timings;               /* microseconds */
  long switches;                 /* involuntary ones during the runs */
  uint64_t nanoseconds;          /* the runs took, not what lay between them */
  int gave_up;
} Candidate;

/* ---- the child: nothing is given back, it ends soon ---- */

/* Given inputs have the shapes of the dimensions' optimum, like generated ones. */
static rnncc_tensor *candidate_inputs(const Request *request, const rnncc_info *info) {
  char fill[64];
  Arguments none = {0};
  snprintf(fill, sizeof fill, "random:%lld", (long long)request->seed);
  rnncc_tensor *inputs = make_inputs(info, &none, fill);
  if (request->n_inputs == 0) return inputs;
  if (request->n_inputs != info->n_inputs)
    fail(EXIT_INPUT, "the module takes %d inputs, the request has %d", info->n_inputs, request->n_inputs);
  for (int i = 0; i < info->n_inputs; i++) {
    if (request->inputs[i].bytes != inputs[i].bytes)
      fail(EXIT_INPUT, "input %d takes %zu bytes, the request has %zu", i, inputs[i].bytes, request->inputs[i].bytes);
    if (inputs[i].bytes) memcpy(inputs[i].data, request->inputs[i].data, inputs[i].bytes);
  }
  return inputs;
}

static Candidate start_candidate(const Request *request) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", request->module);
  Candidate candidate = {.session = load_module(path, NULL), .request = request};
  const rnncc_info *info = candidate.session.api->info;
  candidate.inputs = candidate_inputs(request, info);
  candidate.first = make_outputs(info);
  candidate.outputs = make_outputs(info);
  candidate.caches = allocate((size_t)request->evict);
  candidate.timings = timings_new((size_t)request->runs);
  candidate.session.share_all = 1; /* a layer alone has little work; a network has it beside others */
  session_start(&candidate.session, (int)request->threads);
  session_check(&candidate.session, candidate.session.api->warmup(candidate.session.context), "warmup");
  session_run(&candidate.session, candidate.inputs, candidate.first);
  return candidate;
}

/* Nanoseconds of the kernels that the request asks for. */
static uint64_t asked_time(const Request *request, const rnncc_profile_entry *entries, size_t count) {
  uint64_t sum = 0;
  int found = 0;
  for (size_t i = 0; i < count; i++) {
    const rnncc_profile_entry *entry = rnncc_profile_at(entries, i);
    if (*request->node && strcmp(entry->node, request->node) != 0) continue;
    sum += entry->nanoseconds;
    found = 1;
  }
  if (!found) fail(EXIT_INPUT, "no kernel serves node `%s`", request->node);
  return sum;
}

/* Those of the calling thread, whose clock the profile uses: the runtime itself moves and wakes workers. */
static long involuntary_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static double time_run(Candidate *candidate) {
  Session *session = &candidate->session;
  const Request *request = candidate->request;
  const rnncc_profile_entry *entries;
  size_t count;
  caches_evict(candidate->caches, (size_t)request->evict, session->api->model_threads(session->model));
  session_check(session, session->api->profile(session->context, 1, &entries, &count), "profile");
  uint64_t start = now_ns();
  long switches = involuntary_switches();
  session_run(session, candidate->inputs, candidate->outputs);
  candidate->switches += involuntary_switches() - switches;
  candidate->nanoseconds += now_ns() - start;
  session_check(session, session->api->profile(session->context, 0, &entries, &count), "profile");
  return (double)asked_time(request, entries, count) * 1e-3;
}

/* Whether to measure further. */
static int goes_on(Candidate *candidate, uint64_t start) {
  const Request *request = candidate->request;
  const Timings *timings = &candidate->timings;
  if (timings->count >= (size_t)request->runs) return 0;
  if ((double)(now_ns() - start) * 1e-9 > request->seconds) return 0;
  candidate->gave_up =
      request->give_up_us > 0 && timings->count >= RUNS_TO_GIVE_UP && timings->sorted[0] > request->give_up_us;
  if (candidate->gave_up) return 0;
  if (timings->count < (size_t)request->least_runs || request->precision <= 0) return 1;
  return !timings_precise(timings, request->precision);
}

static void measure_candidate(Candidate *candidate) {
  uint64_t start = now_ns();
  do timings_add(&candidate->timings, time_run(candidate));
  while (goes_on(candidate, start));
}

/* A single switch is too few to tell. */
static int is_disturbed(const Candidate *candidate) {
  return (double)candidate->switches > 1 + MAX_SWITCHES * 1e-9 * (double)candidate->nanoseconds;
}

static size_t sent_bytes(const Candidate *candidate, int output) {
  const rnncc_tensor *tensor = &candidate->first[output];
  return candidate->request->outputs ? tensor_bytes(tensor->dtype, tensor->rank, tensor->shape) : 0;
}

static void write_times(FILE *file, const Timings *timings) {
  fprintf(file, ", \"runs\": %zu, \"least_us\": %.3f, \"lower_us\": %.3f, \"median_us\": %.3f, \"upper_us\": %.3f",
          timings->count, timings->sorted[0], timings_quantile(timings, 0.25), timings_quantile(timings, 0.5),
          timings_quantile(timings, 0.75));
}

static void write_answer(FILE *file, const Candidate *candidate) {
  const Session *session = &candidate->session;
  const rnncc_info *info = session->api->info;
  char cpu[CPU_NAME_BYTES];
  fprintf(file, "{\"format\": \"rnncc-measurement\", \"version\": 1, \"status\": \"ok\"");
  write_times(file, &candidate->timings);
  fprintf(file, ", \"gave_up\": %s, \"disturbed\": %s, \"threads\": %d, \"cores\": %d, \"isa\": ",
          candidate->gave_up ? "true" : "false", is_disturbed(candidate) ? "true" : "false",
          session->api->model_threads(session->model), cpu_count());
  write_json_string(file, info->isa);
  fputs(", \"cpu\": ", file);
  write_json_string(file, cpu_name(cpu));
  fputs(", \"outputs\": [", file);
  for (int i = 0; i < info->n_outputs; i++) fprintf(file, "%s%zu", i ? ", " : "", sent_bytes(candidate, i));
  fputs("]}\n", file);
  for (int i = 0; i < info->n_outputs; i++) fwrite(candidate->first[i].data, 1, sent_bytes(candidate, i), file);
  fputs(LAST_LINE, file);
}

/* Those that the parent was started with may block it. */
static void take_alarms(void) {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGALRM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Messages of the module or of fail() go to `said`. The alarm ends the process, whatever the module is doing. */
static _Noreturn void run_child(const Request *request, int answer, int said) {
  time_t seconds = (time_t)request->limit;
  suseconds_t microseconds = (suseconds_t)(1e6 * (request->limit - (double)seconds));
  struct itimerval limit = {.it_value = {seconds, microseconds}};
  take_alarms();
  setitimer(ITIMER_REAL, &limit, NULL);
  dup2(said, STDOUT_FILENO);
  dup2(said, STDERR_FILENO);
  Candidate candidate = start_candidate(request);
  measure_candidate(&candidate);
  FILE *file = fdopen(answer, "wb");
  if (!file) fail(EXIT_RESOURCE, "no stream");
  write_answer(file, &candidate);
  if (fclose(file) != 0) fail(EXIT_RESOURCE, "the answer does not fit into memory");
  _exit(0);
}

/* ---- the parent ---- */

static int memory_file(const char *name) {
  int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) fail(EXIT_ENVIRONMENT, "no file in memory can be made: %s", strerror(errno));
  return file;
}

/* Fails silently if the reader is gone. */
static void send_file(int file) {
  char piece[1 << 16];
  lseek(file, 0, SEEK_SET);
  for (ssize_t count; (count = read(file, piece, sizeof piece)) > 0;) fwrite(piece, 1, (size_t)count, stdout);
}

/* The end of what the child said, as one line of ASCII. */
static void read_message(int said, char *message, size_t bytes) {
  off_t length = lseek(said, 0, SEEK_END), from = length > (off_t)bytes - 1 ? length - (off_t)bytes + 1 : 0;
  ssize_t count = pread(said, message, bytes - 1, from);
  message[count > 0 ? count : 0] = '\0';
  for (char *c = message; *c; c++)
    if (*c < ' ' || *c > '~') *c = c[1] ? ' ' : '\0';
}

/* How a child ended that gave no answer. fail() exits with 2 to 5. */
static void send_failure(int status, int said) {
  char text[1024], end[64];
  read_message(said, text, sizeof text);
  const char *kind = "crashed";
  if (WIFSIGNALED(status)) {
    kind = WTERMSIG(status) == SIGALRM ? "hung" : "crashed";
    snprintf(end, sizeof end, "ended by signal %d", WTERMSIG(status));
  } else {
    int code = WEXITSTATUS(status);
    if (code >= EXIT_INPUT && code <= EXIT_ENVIRONMENT) kind = "failed";
    snprintf(end, sizeof end, "ended with exit code %d", code);
  }
  printf("{\"format\": \"rnncc-measurement\", \"version\": 1, \"status\": \"%s\", \"message\": ", kind);
  write_json_string(stdout, *text && strcmp(kind, "hung") != 0 ? text : end);
  printf(", \"outputs\": []}\n%s", LAST_LINE);
}

static int is_whole(int answer) {
  char end[sizeof LAST_LINE] = "";
  off_t length = lseek(answer, 0, SEEK_END), last = (off_t)sizeof LAST_LINE - 1;
  return length >= last && pread(answer, end, (size_t)last, length - last) == last && strcmp(end, LAST_LINE) == 0;
}

int measure_verb(const Arguments *arguments) {
  (void)arguments;
  Request request;
  if (!request_read(stdin, &request)) fail(EXIT_INPUT, "stdin: no request to measure: %s", request.wrong);
  int answer = memory_file("answer"), said = memory_file("said"), status;
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) fail(EXIT_RESOURCE, "cannot fork");
  if (child == 0) run_child(&request, answer, said);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_whole(answer))
    send_file(answer);
  else
    send_failure(status, said);
  close(answer);
  close(said);
  request_free(&request);
  return 0;
}
