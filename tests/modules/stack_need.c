/* SPDX-License-Identifier: MIT */
/*
 * How much of their threads' stacks calls take: stack_need ROOM MODULE... prints of each network what a run, all calls
 * from model_create() to model_destroy(), and a worker took, each with what the module says of it: "RUN SAID CALL SAID
 * WORKER SAID NETWORK". A stack is painted before the calls, at all dims' maxima, and looked at after. Then a run has a
 * stack of exactly ROOM bytes, with pages at both ends that may not be touched, and all calls have one, too; ROOM 0: of
 * what the module says. Where the module trains, a run is one with the way back and a step; and where its weights can
 * be set, all calls have that.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "module_tensors.h"

enum { STACK = 1 << 20, PAINT = 0x5a };

typedef struct Call {
  const rnncc_api *api;
  rnncc_options options;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  rnncc_status status;
} Call;

static void run(Call *call) {
  call->status = call->api->run(call->context, call->inputs, (size_t)call->api->info->n_inputs, call->outputs,
                                (size_t)call->api->info->n_outputs);
}

static rnncc_status resume(Call *call) {
  const rnncc_training *training = call->api->training;
  size_t bytes = training->checkpoint_bytes(call->context);
  void *data = between_forbidden_pages(bytes, true);
  rnncc_status status = training->checkpoint_get(call->context, data, bytes);
  if (!status) status = training->checkpoint_set(call->context, data, bytes);
  forget_pages(data, bytes);
  return status;
}

static rnncc_status change_trained(Call *call) {
  const rnncc_training *training = call->api->training;
  const rnncc_tensor_info *weight = rnncc_parameter_at(training->info, 0);
  rnncc_tensor of = tensor_of(call->api->info, weight, true, true);
  rnncc_status status = training->weights_get(call->model, weight->name, of.data, of.bytes);
  if (!status) status = training->weights_set(call->model, weight->name, of.data, of.bytes);
  forget_pages(of.data, of.bytes);
  return status ? status : resume(call);
}

/* The way back after a run. */
static void train(Call *call) {
  const rnncc_training *training = call->api->training;
  const rnncc_optimizer adam = {.struct_size = sizeof adam,
                                .rule = RNNCC_ADAM,
                                .learning_rate = 1e-3f,
                                .beta1 = 0.9f,
                                .beta2 = 0.999f,
                                .epsilon = 1e-8f,
                                .max_norm = 1};
  if (!call->status) call->status = training->backward(call->context);
  if (!call->status) call->status = training->step(call->context, &adam);
}

static void run_and_train(Call *call) {
  run(call);
  if (call->api->training) train(call);
}

static rnncc_status change(Call *call) {
  const rnncc_info *info = call->api->info;
  const rnncc_tensor_info *described = rnncc_weight_at(info, 0);
  rnncc_tensor of = tensor_of(info, described, true, true);
  rnncc_weight weight = {.struct_size = sizeof weight,
                         .dtype = described->dtype,
                         .name = described->name,
                         .data = of.data,
                         .bytes = of.bytes};
  rnncc_status status = call->api->weights_get(call->model, weight.name, of.data, of.bytes, NULL, 0);
  if (!status) status = call->api->weights_set(call->model, &weight, 1, NULL, 0);
  forget_pages(of.data, of.bytes);
  return status;
}

static void begin(Call *call) {
  if (call->api->model_create(&call->options, &call->model, NULL)) exit(5);
  if (call->api->context_create(call->model, NULL, 0, &call->context, NULL)) exit(5);
}

static void end(Call *call) {
  call->api->context_destroy(call->context);
  call->api->model_destroy(call->model);
}

static void all(Call *call) {
  begin(call);
  call->api->warmup(call->context);
  run_and_train(call);
  if (!call->status && call->api->training) call->status = change_trained(call);
  if (!call->status && call->api->info->n_weights) call->status = change(call);
  end(call);
}

static void nothing(Call *call) { (void)call; }

/* ---- how much ---- */

typedef struct Thread {
  void (*calls)(Call *call);
  Call *call;
} Thread;

static void *thread_main(void *arg) {
  Thread *thread = arg;
  thread->calls(thread->call);
  return NULL;
}

static size_t untouched(const unsigned char *stack, size_t bytes) {
  size_t n = 0;
  while (n < bytes && stack[n] == PAINT) n++;
  return n;
}

/* Of a thread that makes the calls on a stack of this memory. */
static size_t touched(unsigned char *stack, void (*calls)(Call *), Call *call) {
  pthread_attr_t attributes;
  pthread_t thread;
  memset(stack, PAINT, STACK);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  if (pthread_create(&thread, &attributes, thread_main, &(Thread){calls, call})) exit(3);
  pthread_join(thread, NULL);
  return STACK - untouched(stack, STACK);
}

/* More than if the thread does nothing. */
static size_t used(unsigned char *stack, void (*calls)(Call *), Call *call) {
  size_t idle = touched(stack, nothing, call), all_of_it = touched(stack, calls, call);
  return all_of_it > idle ? all_of_it - idle : 0;
}

/* ---- of a worker ---- */

enum { PAINTED = STACK / 2, HOOK_BYTES = 256 };
static uintptr_t worker_bottom, worker_top; /* of what is painted: below the hook, and what that calls none of */

static void paint_worker(void *host, int32_t worker) {
  (void)host, (void)worker;
  volatile unsigned char here = 0;
  worker_top = (uintptr_t)&here - HOOK_BYTES;
  worker_bottom = worker_top - PAINTED;
  for (uintptr_t at = worker_bottom; at < worker_top; at++) *(volatile unsigned char *)at = PAINT;
}

/* From the hook's frame on, or from one beside it. */
static size_t worker_used(Call *call) {
  call->options.threads = 2;
  call->options.share_all = 1;
  call->options.thread_start = paint_worker;
  begin(call);
  for (int i = 0; i < 3; i++) run_and_train(call);
  size_t left = untouched((const unsigned char *)worker_bottom, PAINTED);
  end(call);
  return HOOK_BYTES + PAINTED - left;
}

/* ---- no more than that ---- */

enum { GUARD = 1 << 16 };

static ucontext_t caller;
static Thread of_context;
static void call_there(void) { of_context.calls(of_context.call); }

/* The last bytes of `room` are those of the first frames. */
static void call_on(size_t room, void (*calls)(Call *), Call *call) {
  ucontext_t own;
  room = room / 16 * 16;
  size_t pages = (room + GUARD - 1) / GUARD * GUARD;
  unsigned char *memory = mmap(NULL, pages + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + GUARD, pages, PROT_READ | PROT_WRITE)) exit(6);
  getcontext(&own);
  own.uc_stack.ss_sp = memory + GUARD; /* it grows down to the guard */
  own.uc_stack.ss_size = room;
  own.uc_link = &caller;
  of_context = (Thread){calls, call};
  makecontext(&own, call_there, 0);
  if (swapcontext(&caller, &own)) exit(7);
  munmap(memory, pages + 2 * GUARD);
}

static int measure(const rnncc_api *api, unsigned char *stack, size_t room) {
  const rnncc_info *info = api->info;
  Call call = {.api = api, .options = {.struct_size = sizeof call.options, .threads = 1}};
  if (info->n_inputs > MOST_TENSORS || info->n_outputs > MOST_TENSORS) return 4;
  for (int i = 0; i < info->n_inputs; i++) call.inputs[i] = tensor_of(info, rnncc_input_at(info, i), true, true);
  for (int i = 0; i < info->n_outputs; i++) call.outputs[i] = tensor_of(info, rnncc_output_at(info, i), true, true);
  begin(&call);
  size_t of_run = used(stack, run_and_train, &call);
  if (call.status) fprintf(stderr, "%s: %s\n", info->name, api->last_error(call.context));
  if (!call.status) call_on(room ? room : info->run_stack_bytes, run_and_train, &call);
  end(&call);
  if (call.status) return 1;
  call.options.threads = 2;
  size_t of_all = used(stack, all, &call);
  call_on(room ? room : info->call_stack_bytes, all, &call);
  printf("%zu %zu %zu %zu ", of_run, info->run_stack_bytes, of_all, info->call_stack_bytes);
  printf("%zu %zu %s\n", worker_used(&call), info->worker_stack_bytes, info->name);
  fflush(stdout);
  return call.status != RNNCC_OK;
}

int main(int argc, char **argv) {
  char error[512];
  unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t room = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  for (int i = 2; i < argc; i++) {
    rnncc_library library;
    if (rnncc_load(argv[i], &library, error, sizeof error)) return puts(error), 2;
    for (int k = 0; k < library.api->n_networks; k++)
      if (measure(library.api->networks[k], stack, room)) return 1;
  }
  return stack == MAP_FAILED;
}
