/* SPDX-License-Identifier: MIT */
/*
 * hard_run TRIAL AMOUNT MODULE...: runs of modules where the system gives little or disturbs. Exits 0 if each of them
 * has the bits of one thread alone, else says what was wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "module_run.h"

enum { MOST_MODULES = 8, MOST_CALLERS = 64 };

/* The module's calls come here: from some thread on, the system has no more. */
static _Atomic int threads_to_give = INT32_MAX;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *arg) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real)
    real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  if (threads_to_give-- <= 0) return EAGAIN;
  return real(thread, attributes, function, arg);
}

static void few_threads(const Subject *subject, int amount) {
  for (int given = 0; given <= amount; given++) {
    threads_to_give = given;
    rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = amount});
    if (threads_to_give > 0 && given < amount) fail("threads are not made by pthread_create");
    threads_to_give = INT32_MAX;
    if (subject->api->model_threads(model) != (given < amount ? given + 1 : amount)) fail("wrong number of threads");
    Stream stream = stream_new(subject->api, model, given % 2);
    expect_serial(subject, &stream, 3, "with few threads");
    stream_end(&stream);
    subject->api->model_destroy(model);
  }
}

static void one_cpu(const Subject *subject, int amount) {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one)) fail("sched_setaffinity");
  rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = 0});
  if (subject->api->model_threads(model) != 1) fail("more than one thread on one CPU");
  subject->api->model_destroy(model);
  for (int threads = 0; threads <= 4; threads++)
    check(subject, (rnncc_options){.threads = threads, .bind_threads = threads % 2}, amount, "on one CPU");
  sched_setaffinity(0, sizeof all, &all);
}

/* Where a quota gives less than one CPU. */
static void part_of_a_cpu(const Subject *subject, int amount) {
  rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = 0});
  if (subject->api->model_threads(model) != 1) fail("more than one thread within the quota");
  subject->api->model_destroy(model);
  check(subject, (rnncc_options){.threads = 2}, amount, "within the quota");
}

static void crowd(const Subject *subject, int amount) {
  check(subject, (rnncc_options){.threads = 256}, amount, "with 256 threads");
}

/* ---- the host's own threads ---- */

typedef struct Index {
  void (*body)(void *arg, int index);
  void *arg;
  int index;
} Index;

static void *run_index(void *arg) {
  const Index *it = arg;
  it->body(it->arg, it->index);
  return NULL;
}

static void parallel_for(void *host, int n, void (*body)(void *arg, int index), void *arg) {
  pthread_t threads[MOST_CALLERS];
  Index indices[MOST_CALLERS];
  ++*(int *)host;
  for (int i = 0; i < n; i++) {
    indices[i] = (Index){body, arg, i};
    if (pthread_create(&threads[i], NULL, run_index, &indices[i])) fail("no thread");
  }
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void host_threads(const Subject *subject, int amount) {
  int calls = 0;
  check(subject, (rnncc_options){.threads = 3, .parallel_for = parallel_for, .host = &calls}, amount, "parallel_for");
  if (!calls) fail("the host's parallel_for is not called");
}

/* ---- fork ---- */

static void expect_good_end(pid_t child, const char *where) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status) fail("%s: a child ends with %#x", where, status);
}

static atomic_bool enough;

static void *run_on(void *arg) {
  const Subject *subject = arg;
  rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = 2});
  Stream stream = stream_new(subject->api, model, true);
  while (!enough) expect_serial(subject, &stream, 1, "beside forks");
  stream_end(&stream);
  subject->api->model_destroy(model);
  return NULL;
}

/* Before there are workers, after runs, and while another thread's run is under way. */
static void forks(const Subject *subject, int amount) {
  pthread_t other;
  enough = false;
  if (pthread_create(&other, NULL, run_on, (void *)(uintptr_t)subject)) fail("no thread");
  rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = 3});
  Stream stream = stream_new(subject->api, model, true);
  for (int i = 0; i < amount; i++) {
    pid_t child = fork();
    if (child == 0) {
      expect_serial(subject, &stream, 3, "in a child, with the parent's model");
      check(subject, (rnncc_options){.threads = 2}, 3, "in a child, with a model of its own");
      subject->api->context_destroy(stream.context);
      subject->api->model_destroy(model);
      _exit(0);
    }
    expect_good_end(child, i ? "fork after runs" : "fork before a run");
    expect_serial(subject, &stream, 3, "in the parent, after a fork");
  }
  enough = true;
  pthread_join(other, NULL);
  stream_end(&stream);
  subject->api->model_destroy(model);
}

/* ---- signals ---- */

static atomic_long signals;

static void count_signal(int number) {
  (void)number;
  signals++;
}

/* Another process stops this one and lets it go on, and sends it signals, until it is killed. */
static _Noreturn void disturb(pid_t victim) {
  for (long i = 0;; i++) {
    kill(victim, i % 4 ? SIGUSR1 : SIGSTOP);
    sched_yield();
    kill(victim, SIGCONT);
    nanosleep(&(struct timespec){.tv_nsec = 20000 + i % 7 * 30000}, NULL);
  }
}

static void disturbed(const Subject *subject, int amount) {
  struct sigaction action = {.sa_handler = count_signal}; /* no SA_RESTART: system calls do see EINTR */
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  signals = 0;
  pid_t victim = getpid(), other = fork();
  if (other == 0) disturb(victim);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL);
  for (int threads = 1; threads <= 3; threads++)
    check(subject, (rnncc_options){.threads = threads}, amount, "under signals");
  while (signals < 10) check(subject, (rnncc_options){.threads = 2}, 1, "under signals");
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  kill(victim, SIGCONT);
}

/* ---- many callers ---- */

typedef struct Caller {
  const Subject *subject;
  rnncc_model *model;
  pthread_t thread;
  int runs;
} Caller;

static void *call_often(void *arg) {
  Caller *caller = arg;
  Stream stream = stream_new(caller->subject->api, caller->model, caller->runs % 2);
  expect_serial(caller->subject, &stream, caller->runs, "among many callers");
  stream_end(&stream);
  return NULL;
}

static void join_all(Caller *callers, int count) {
  for (int i = 0; i < count; i++)
    if (pthread_create(&callers[i].thread, NULL, call_often, &callers[i])) fail("no thread");
  for (int i = 0; i < count; i++) pthread_join(callers[i].thread, NULL);
}

static void callers(const Subject *subject, int amount) {
  static Caller all[MOST_CALLERS];
  rnncc_model *model = model_new(subject->api, (rnncc_options){.threads = 2});
  for (int i = 0; i < MOST_CALLERS; i++) all[i] = (Caller){subject, model, .runs = amount};
  join_all(all, MOST_CALLERS);
  subject->api->model_destroy(model);
}

/* All modules at once, each with a pool of its own. */
static void together(const Subject *subjects, int count, int amount) {
  Caller all[MOST_MODULES];
  for (int i = 0; i < count; i++)
    all[i] = (Caller){&subjects[i], model_new(subjects[i].api, (rnncc_options){.threads = 2}), .runs = amount};
  join_all(all, count);
  for (int i = 0; i < count; i++) subjects[i].api->model_destroy(all[i].model);
}

/* ---- what stays ---- */

/* Freed blocks that malloc keeps for each thread count as allocated. */
enum { CACHED_BYTES = 4096 };

static void expect_no_more_blocks(size_t before, const char *where) {
  size_t now = mallinfo2().uordblks;
  if (now > before + CACHED_BYTES) fail("%s keeps %zu bytes", where, now - before);
}

static int lines_of(const char *path) {
  int lines = 0;
  FILE *file = fopen(path, "r");
  for (int c; file && (c = getc(file)) != EOF;) lines += c == '\n';
  if (file) fclose(file);
  return lines;
}

static void load_and_unload(const char *path, int round) {
  rnncc_library library;
  char why[256];
  if (rnncc_load(path, &library, why, sizeof why)) fail("%s", why);
  rnncc_model *model = round % 2 ? model_new(library.api, (rnncc_options){.threads = 2}) : NULL;
  library.api->model_destroy(model);
  rnncc_unload(&library);
}

/* At once, and after a model was made. If each kept a block, hundreds would keep more than the caches. */
static void loads(const char *path, int amount) {
  enum { ROUNDS_BEFORE = 100 };
  size_t blocks = 0;
  int maps = 0;
  for (int i = 0; i < amount + ROUNDS_BEFORE; i++) {
    if (i == ROUNDS_BEFORE) maps = lines_of("/proc/self/maps"), blocks = mallinfo2().uordblks;
    load_and_unload(path, i);
  }
  if (lines_of("/proc/self/maps") > maps + 2) fail("%s: loading keeps mappings", path);
  expect_no_more_blocks(blocks, path);
}

static long resident_pages(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) fail("/proc/self/statm");
  fclose(file);
  return pages;
}

/* For some seconds: contexts and models come and go between runs, and memory is flat: what grew in each round would
 * leak. Where threads overlap for the first time, which may be late, they leave blocks, stacks and arenas of malloc. */
static void soak(const Subject *subject, int seconds) {
  enum { LEAST_ROUNDS = 20, MAY_GROW = 8, MORE_PAGES = 64 };
  size_t most_blocks = 0;
  long pages = 0;
  int rounds = 0, grew = 0;
  for (time_t begin = time(NULL); rounds < LEAST_ROUNDS || time(NULL) < begin + seconds; rounds++) {
    for (int threads = 1; threads <= 3; threads++) check(subject, (rnncc_options){.threads = threads}, 20, "in a soak");
    size_t blocks = mallinfo2().uordblks;
    if (blocks > most_blocks) most_blocks = blocks, grew++;
    if (rounds < LEAST_ROUNDS / 2) pages = resident_pages();
  }
  if (grew > MAY_GROW) fail("in a soak memory grew in %d of %d rounds", grew, rounds);
  if (resident_pages() > pages + MORE_PAGES) fail("%ld pages more are resident", resident_pages() - pages);
}

static const struct {
  const char *name;
  void (*try)(const Subject *, int amount);
} trials[] = {{"few_threads", few_threads},
              {"one_cpu", one_cpu},
              {"part_of_a_cpu", part_of_a_cpu},
              {"crowd", crowd},
              {"forks", forks},
              {"host_threads", host_threads},
              {"disturbed", disturbed},
              {"callers", callers},
              {"soak", soak}};

static void try_each(const char *name, int amount, const Subject *subjects, int count) {
  for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
    if (strcmp(trials[t].name, name) != 0) continue;
    for (int i = 0; i < count; i++) trials[t].try(&subjects[i], amount);
    return;
  }
  fail("unknown trial %s", name);
}

int main(int argc, char **argv) {
  static Subject subjects[MOST_MODULES];
  int count = argc - 3, amount = argc > 3 ? atoi(argv[2]) : 0;
  if (count < 1 || count > MOST_MODULES || amount < 1) fail("usage: hard_run TRIAL AMOUNT MODULE...");
  if (!strcmp(argv[1], "loads")) {
    for (int i = 0; i < count; i++) loads(argv[3 + i], amount);
    return 0;
  }
  for (int i = 0; i < count; i++) subjects[i] = subject_load(argv[3 + i]);
  if (!strcmp(argv[1], "together"))
    together(subjects, count, amount);
  else
    try_each(argv[1], amount, subjects, count);
  for (int i = 0; i < count; i++) rnncc_unload(&subjects[i].library);
  return 0;
}
