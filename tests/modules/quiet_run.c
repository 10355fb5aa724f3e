/* SPDX-License-Identifier: MIT */
/*
 * quiet_run MODULE.so THREADS: exits 0 if `run` is as quiet as promised, else reports what it did; of a module that
 * trains also `backward`, `step` and what goes with them. 77: so far it is, but the kernel has no seccomp filters.
 *
 * Own functions, to which the module's references bind, count allocations and locks. The kernel checks the system
 * calls: from some point on, all threads of the process are under a filter that kills it for any system call, or, if
 * there are several threads, for any but those by which they wait for each other and wake up. So all of this happens in
 * a child process.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/asleep.h"
#include "rnncc_loader.h"

enum { RUNS = 20, EXIT_NO_SECCOMP = 77 };

static atomic_long allocations, locks;

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { return allocations++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return allocations++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return allocations++, __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { return allocations++, __libc_memalign(alignment, size); }

int posix_memalign(void **out, size_t alignment, size_t size) {
  allocations++;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static int (*real)(pthread_mutex_t *);
  if (!real) real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  locks++;
  return real(mutex);
}

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* Zeros, at the optimum of each dimension for inputs and at the maximum for outputs. */
static rnncc_tensor *make_tensors(const rnncc_info *info, const rnncc_tensor_info *described, int count, int maximal) {
  rnncc_tensor *tensors = calloc((size_t)count, sizeof *tensors);
  for (int i = 0; i < count; i++) {
    rnncc_tensor *tensor = &tensors[i];
    tensor->struct_size = sizeof *tensor;
    tensor->dtype = described[i].dtype;
    tensor->rank = described[i].rank;
    tensor->bytes = rnncc_dtype_size(tensor->dtype);
    for (int axis = 0; axis < tensor->rank; axis++) {
      int dim = described[i].dim[axis];
      tensor->shape[axis] = maximal || dim < 0 ? described[i].max_shape[axis] : rnncc_dim_at(info, dim)->opt;
      tensor->bytes *= (size_t)tensor->shape[axis];
    }
    tensor->data = aligned_alloc(64, (tensor->bytes + 64) / 64 * 64);
    memset(tensor->data, 0, tensor->bytes);
  }
  return tensors;
}

typedef struct Runner {
  const rnncc_api *api;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_tensor *inputs, *outputs;
  rnncc_tensor *weights; /* of a module that trains: room for each */
  void *checkpoint;      /* and for this */
  size_t checkpoint_bytes;
} Runner;

static rnncc_status run_once(const Runner *runner) {
  const rnncc_info *info = runner->api->info;
  return runner->api->run(runner->context, runner->inputs, (size_t)info->n_inputs, runner->outputs,
                          (size_t)info->n_outputs);
}

/* Its gradient, then the weight, which is set to what it is; this is a model's, and no context has its errors. */
static rnncc_status move_weight(const Runner *runner, int i) {
  const rnncc_training *training = runner->api->training;
  const char *name = rnncc_parameter_at(training->info, i)->name;
  const rnncc_tensor *room = &runner->weights[i];
  rnncc_status status = training->gradient(runner->context, name, room->data, room->bytes);
  if (status) return status;
  if (training->weights_get(runner->model, name, room->data, room->bytes)) fail("weights_get fails");
  if (training->weights_set(runner->model, name, room->data, room->bytes)) fail("weights_set fails");
  return RNNCC_OK;
}

static rnncc_status train_once(const Runner *runner, rnncc_rule rule) {
  const rnncc_training *training = runner->api->training;
  const rnncc_optimizer optimizer = {.struct_size = sizeof optimizer,
                                     .rule = rule,
                                     .learning_rate = 1e-3f,
                                     .momentum = 0.9f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .max_norm = 1};
  double norm;
  rnncc_status status = training->backward(runner->context);
  for (int i = 0; !status && i < training->info->n_parameters; i++) status = move_weight(runner, i);
  if (!status) status = training->gradient_norm(runner->context, &norm);
  if (!status) status = training->gradients_keep(runner->context, 1);
  if (!status) status = training->optimizer_reset(runner->model); /* the rule is another each time */
  if (!status) status = training->step(runner->context, &optimizer);
  if (!status) status = training->checkpoint_get(runner->context, runner->checkpoint, runner->checkpoint_bytes);
  return status ? status : training->checkpoint_set(runner->context, runner->checkpoint, runner->checkpoint_bytes);
}

static void run_all(const Runner *runner) {
  static const rnncc_rule rules[] = {RNNCC_SGD, RNNCC_ADAM, RNNCC_ADAMW};
  for (int i = 0; i < RUNS; i++) {
    rnncc_status status = run_once(runner);
    if (!status && runner->api->training) status = train_once(runner, rules[i % 3]);
    if (status) fail(runner->api->last_error(runner->context));
  }
}

static void check_no_allocation_and_no_lock(const Runner *runner) {
  long allocations_before = allocations, locks_before = locks;
  run_all(runner);
  if (allocations != allocations_before) fail("run allocates memory");
  if (locks != locks_before) fail("run takes a lock");
}

enum { MAX_THREADS = 64 };

/* The threads of this process except the calling one. */
static int find_threads(pid_t others[MAX_THREADS]) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *task; tasks && (task = readdir(tasks)) && count < MAX_THREADS;)
    if (task->d_name[0] != '.' && atoi(task->d_name) != gettid()) others[count++] = atoi(task->d_name);
  if (tasks) closedir(tasks);
  return count;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* All threads fall asleep if no run comes, and in the second after that nothing wakes them. */
static void check_idle(int threads) {
  pid_t others[MAX_THREADS];
  long before[MAX_THREADS];
  int count = find_threads(others);
  if (count != threads - 1) fail("the number of threads is not the requested one");
  for (int i = 0; i < count; i++)
    if (!falls_asleep(others[i])) fail("an idle thread does not sleep");
  for (int i = 0; i < count; i++) before[i] = switches_asleep(others[i]);
  pause_ms(1000);
  for (int i = 0; i < count; i++)
    if (before[i] < 0 || switches_asleep(others[i]) != before[i]) fail("an idle thread uses the CPU");
}

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* System calls that threads may make: sleeping, waking, yielding the CPU, and choosing the CPU on which a sleeper
 * wakes. The fork guard asks for the process id if the kernel does not wipe pages on fork. */
static const struct sock_filter together[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_futex),
    ALLOW(SYS_sched_yield),
    ALLOW(SYS_sched_getaffinity),
    ALLOW(SYS_sched_setaffinity),
    ALLOW(SYS_getcpu),
    ALLOW(SYS_getpid),
    ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static const struct sock_filter alone[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

#define PROGRAM(rules) {sizeof(rules) / sizeof *(rules), (struct sock_filter *)(rules)}

static void forbid_system_calls(int threads) {
  struct sock_fprog programs[] = {PROGRAM(alone), PROGRAM(together)};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &programs[threads > 1])) {
    if (errno != ENOSYS && errno != EINVAL) fail("the kernel refuses the filter");
    _exit(EXIT_NO_SECCOMP);
  }
}

static Runner make_runner(const rnncc_api *api, int threads) {
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  Runner runner = {.api = api};
  if (api->model_create(&options, &runner.model, NULL)) fail("model_create fails");
  if (api->context_create(runner.model, NULL, 0, &runner.context, NULL)) fail("context_create fails");
  runner.inputs = make_tensors(api->info, api->info->inputs, api->info->n_inputs, 0);
  runner.outputs = make_tensors(api->info, api->info->outputs, api->info->n_outputs, 1);
  if (api->training)
    runner.weights = make_tensors(api->info, api->training->info->parameters, api->training->info->n_parameters, 1);
  if (api->training) {
    runner.checkpoint_bytes = api->training->checkpoint_bytes(runner.context);
    runner.checkpoint = malloc(runner.checkpoint_bytes);
  }
  if (api->warmup(runner.context)) fail("warmup fails");
  return runner;
}

static _Noreturn void check_module(const char *path, int threads) {
  char why[256];
  rnncc_library library;
  if (rnncc_load(path, &library, why, sizeof why)) fail(why);
  Runner runner = make_runner(library.api, threads);
  if (allocations == 0) fail("the counting malloc is not in use");
  check_no_allocation_and_no_lock(&runner);
  check_idle(threads);
  forbid_system_calls(threads);
  run_all(&runner);
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage: quiet_run MODULE.so THREADS");
  pid_t child = fork();
  if (child == 0) check_module(argv[1], atoi(argv[2]));
  int status;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) fail("run makes a system call");
  bool unseen = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_SECCOMP;
  if (status && !unseen) fail("run is not quiet");
  puts(unseen ? "system calls are not seen: the kernel has no seccomp filters" : "quiet");
  return unseen ? EXIT_NO_SECCOMP : 0;
}
