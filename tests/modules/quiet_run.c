/* SPDX-License-Identifier: MIT */
/*
 * quiet_run MODULE.so THREADS: exits 0 if `run` is as quiet as promised, else says what it did.
 *
 * Allocations are counted by a malloc of our own, which the module's references bind to. That run makes no system call
 * with one thread is shown by the kernel: under strict seccomp anything but read, write and exit kills the process.
 */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnncc_loader.h"

enum { RUNS = 20 };

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

static size_t dtype_bytes(rnncc_dtype dtype) {
  return dtype == RNNCC_I64 ? 8 : dtype == RNNCC_F32 || dtype == RNNCC_I32 ? 4 : 1;
}

/* Zeros, at the optimum of each dimension for inputs and at the maximum for outputs. */
static rnncc_tensor *make_tensors(const rnncc_info *info, const rnncc_tensor_info *described, int count, int maximal) {
  rnncc_tensor *tensors = calloc((size_t)count, sizeof *tensors);
  for (int i = 0; i < count; i++) {
    rnncc_tensor *tensor = &tensors[i];
    tensor->dtype = described[i].dtype;
    tensor->rank = described[i].rank;
    tensor->bytes = dtype_bytes(tensor->dtype);
    for (int axis = 0; axis < tensor->rank; axis++) {
      int dim = described[i].dim[axis];
      tensor->shape[axis] = maximal || dim < 0 ? described[i].max_shape[axis] : info->dims[dim].opt;
      tensor->bytes *= (size_t)tensor->shape[axis];
    }
    tensor->data = aligned_alloc(64, (tensor->bytes + 64) / 64 * 64);
    memset(tensor->data, 0, tensor->bytes);
  }
  return tensors;
}

typedef struct Runner {
  const rnncc_api *api;
  rnncc_context *context;
  rnncc_tensor *inputs, *outputs;
} Runner;

static void run_all(const Runner *runner) {
  const rnncc_info *info = runner->api->info;
  for (int i = 0; i < RUNS; i++)
    if (runner->api->run(runner->context, runner->inputs, (size_t)info->n_inputs, runner->outputs,
                         (size_t)info->n_outputs))
      fail(runner->api->last_error(runner->context));
}

static void check_no_allocation(const Runner *runner, int threads) {
  long allocations_before = allocations, locks_before = locks;
  run_all(runner);
  if (allocations != allocations_before) fail("run allocates memory");
  if (threads == 1 && locks != locks_before) fail("run with one thread takes a lock");
}

static void check_no_system_call(const Runner *runner) {
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    run_all(runner);
    syscall(SYS_exit, 0);
  }
  int status;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("run with one thread makes a system call");
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage: quiet_run MODULE.so THREADS");
  char why[256];
  rnncc_library library;
  if (rnncc_load(argv[1], &library, why, sizeof why)) fail(why);
  const rnncc_api *api = library.api;

  rnncc_options options = {.struct_size = sizeof options, .threads = atoi(argv[2])};
  rnncc_model *model;
  Runner runner = {.api = api};
  if (api->model_create(&options, &model, NULL)) fail("model_create fails");
  if (api->context_create(model, NULL, 0, &runner.context)) fail("context_create fails");
  runner.inputs = make_tensors(api->info, api->info->inputs, api->info->n_inputs, 0);
  runner.outputs = make_tensors(api->info, api->info->outputs, api->info->n_outputs, 1);
  if (allocations == 0) fail("the counting malloc is not in use");
  if (api->warmup(runner.context)) fail("warmup fails");

  check_no_allocation(&runner, options.threads);
  if (options.threads == 1) check_no_system_call(&runner);
  puts("quiet");
  return 0;
}
