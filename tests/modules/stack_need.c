/* SPDX-License-Identifier: MIT */
/* How much of its caller's stack a run takes: stack_need ROOM MODULE... prints "BYTES NETWORK" for each network. The
 * stack is painted before a run at all dims' maxima, and looked at after. Then it runs on a stack of exactly ROOM
 * bytes, with pages at both ends that may not be touched. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "module_tensors.h"

enum { STACK = 1 << 20, PAINT = 0x5a };

typedef struct Call {
  const rnncc_api *api;
  rnncc_context *context;
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  rnncc_status status;
} Call;

static void *run(void *arg) {
  Call *call = arg;
  call->status = call->api->run(call->context, call->inputs, (size_t)call->api->info->n_inputs, call->outputs,
                                (size_t)call->api->info->n_outputs);
  return NULL;
}

/* Of a thread that runs it on a stack of this memory. */
static size_t bytes_touched(unsigned char *stack, void *(*function)(void *), void *arg) {
  pthread_attr_t attributes;
  pthread_t thread;
  size_t untouched = 0;
  memset(stack, PAINT, STACK);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  if (pthread_create(&thread, &attributes, function, arg)) exit(3);
  pthread_join(thread, NULL);
  while (untouched < STACK && stack[untouched] == PAINT) untouched++;
  return STACK - untouched;
}

static void *nothing(void *arg) { return arg; }

enum { GUARD = 1 << 16 };

static ucontext_t caller;
static Call *of_context;
static void run_there(void) { run(of_context); }

/* The last bytes of `room` are those of the first frames. */
static void run_on(size_t room, Call *call) {
  ucontext_t own;
  size_t pages = (room + GUARD - 1) / GUARD * GUARD;
  unsigned char *memory = mmap(NULL, pages + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + GUARD, pages, PROT_READ | PROT_WRITE)) exit(6);
  getcontext(&own);
  own.uc_stack.ss_sp = memory + GUARD; /* it grows down to the guard */
  own.uc_stack.ss_size = room;
  own.uc_link = &caller;
  of_context = call;
  makecontext(&own, run_there, 0);
  if (swapcontext(&caller, &own)) exit(7);
  munmap(memory, pages + 2 * GUARD);
}

static int measure(const rnncc_api *api, unsigned char *stack, size_t room) {
  Call call = {.api = api};
  rnncc_options options = {.struct_size = sizeof options, .threads = 1};
  rnncc_model *model;
  if (api->info->n_inputs > MOST_TENSORS || api->info->n_outputs > MOST_TENSORS) return 4;
  for (int i = 0; i < api->info->n_inputs; i++)
    call.inputs[i] = tensor_of(api->info, rnncc_input_at(api->info, i), true, true);
  for (int i = 0; i < api->info->n_outputs; i++)
    call.outputs[i] = tensor_of(api->info, rnncc_output_at(api->info, i), true, true);
  if (api->model_create(&options, &model, NULL) || api->context_create(model, NULL, 0, &call.context, NULL)) return 5;
  size_t idle = bytes_touched(stack, nothing, NULL), used = bytes_touched(stack, run, &call);
  if (call.status) fprintf(stderr, "%s: %s\n", api->info->name, api->last_error(call.context));
  printf("%zu %s\n", used > idle ? used - idle : 0, api->info->name);
  fflush(stdout);
  if (!call.status) run_on(room, &call);
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
