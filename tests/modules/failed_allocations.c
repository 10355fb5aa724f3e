/* SPDX-License-Identifier: MIT */
/*
 * failed_allocations MODULE...: each allocation and mapping of memory of a module fails, one in each round of model,
 * context, a weight that is set, run, backward() and destruction. What the module took before it gives back, and each
 * run gives the outputs of the first. Prints "FAILURES NETWORK".
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module_tensors.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

enum { MOST_LIVE = 4096 };

static const void *module;          /* where it is loaded; NULL: nothing is counted */
static const void *live[MOST_LIVE]; /* by the module, not given back. One thread at a time takes memory */
static long asked, failing;         /* in this round; which one fails, 0: none */

static int by_module(const void *caller) {
  Dl_info of;
  return module && dladdr(caller, &of) && of.dli_fbase == module;
}

static int fails(const void *caller) { return by_module(caller) && ++asked == failing && (errno = ENOMEM); }

static void *taken(const void *caller, void *memory) {
  if (!memory || memory == MAP_FAILED || !by_module(caller)) return memory;
  int i = 0;
  while (live[i]) i++;
  live[i] = memory;
  return memory;
}

static void given_back(const void *memory) {
  for (int i = 0; memory && i < MOST_LIVE; i++)
    if (live[i] == memory) live[i] = NULL;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t bytes) { return fails(CALLER) ? NULL : taken(CALLER, __libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return fails(CALLER) ? NULL : taken(CALLER, __libc_calloc(count, bytes)); }
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails(CALLER) ? NULL : taken(CALLER, __libc_memalign(alignment, bytes));
}
void free(void *memory) {
  given_back(memory);
  __libc_free(memory);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from) {
  void *(*next)(void *, size_t, int, int, int, off_t) =
      (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  return fails(CALLER) ? MAP_FAILED : taken(CALLER, next(at, bytes, protection, flags, file, from));
}
int munmap(void *memory, size_t bytes) {
  int (*next)(void *, size_t) = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
  given_back(memory);
  return next(memory, bytes);
}

typedef struct Tensors {
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  int ran; /* in the last round */
} Tensors;

/* Of a module whose weights change: the first one, to what it is. */
static rnncc_status set_weight(const rnncc_api *api, rnncc_model *model) {
  if (!api->info->n_weights) return RNNCC_OK;
  const rnncc_tensor_info *info = rnncc_weight_at(api->info, 0);
  rnncc_weight weight = {.struct_size = sizeof weight, .dtype = info->dtype, .name = info->name};
  weight.bytes = rnncc_dtype_size(info->dtype);
  for (int axis = 0; axis < info->rank; axis++) weight.bytes *= (size_t)info->shape[axis];
  void *data = __libc_malloc(weight.bytes);
  weight.data = data;
  rnncc_status status = api->weights_get(model, weight.name, data, weight.bytes, NULL, 0);
  if (!status) status = api->weights_set(model, &weight, 1, NULL, 0);
  __libc_free(data);
  return status;
}

/* RNNCC_OK, or why the first call failed that did. A weight that could not be set is what it was. */
static rnncc_status round_of(const rnncc_api *api, Tensors *t) {
  rnncc_options options = {.struct_size = sizeof options, .threads = 3};
  rnncc_model *model = NULL;
  rnncc_context *context = NULL;
  rnncc_status status = api->model_create(&options, &model, NULL);
  t->ran = 0;
  if (!status) status = api->context_create(model, NULL, 0, &context, NULL);
  if (!status) {
    status = set_weight(api, model);
    rnncc_status ran =
        api->run(context, t->inputs, (size_t)api->info->n_inputs, t->outputs, (size_t)api->info->n_outputs);
    t->ran = ran == RNNCC_OK;
    if (ran) status = ran;
  }
  if (!status && api->training) status = api->training->backward(context);
  api->context_destroy(context);
  api->model_destroy(model);
  return status;
}

static int lost(void) {
  int count = 0;
  for (int i = 0; i < MOST_LIVE; i++) count += live[i] != NULL;
  return count;
}

static int differ(const rnncc_api *api, const Tensors *first, const Tensors *t) {
  for (int i = 0; t->ran && i < api->info->n_outputs; i++)
    if (memcmp(first->outputs[i].data, t->outputs[i].data, first->outputs[i].bytes) != 0)
      return fprintf(stderr, "%s: call %ld fails: other outputs\n", api->info->name, failing);
  return 0;
}

static int try_all(const rnncc_api *api) {
  Tensors first = {0}, t;
  Dl_info of;
  int failures = 0;
  if (api->info->n_inputs > MOST_TENSORS || api->info->n_outputs > MOST_TENSORS || !dladdr((const void *)api, &of))
    return 4;
  for (int i = 0; i < api->info->n_inputs; i++)
    first.inputs[i] = tensor_of(api->info, rnncc_input_at(api->info, i), true, true);
  for (int i = 0; i < api->info->n_outputs; i++)
    first.outputs[i] = tensor_of(api->info, rnncc_output_at(api->info, i), true, true);
  if (round_of(api, &first)) return 5;
  t = first;
  for (int i = 0; i < api->info->n_outputs; i++)
    t.outputs[i] = tensor_of(api->info, rnncc_output_at(api->info, i), true, true);
  for (failing = 1;; failing++) {
    asked = 0;
    module = of.dli_fbase;
    rnncc_status status = round_of(api, &t);
    module = NULL;
    if (lost()) return fprintf(stderr, "%s: call %ld fails: %d are lost\n", api->info->name, failing, lost()), 1;
    if (asked < failing) {
      if (status) return fprintf(stderr, "%s: status %d without a failure\n", api->info->name, (int)status), 1;
      break;
    }
    if (status != RNNCC_OK && status != RNNCC_ERROR_MEMORY)
      return fprintf(stderr, "%s: call %ld fails: status %d\n", api->info->name, failing, (int)status), 1;
    failures += status == RNNCC_ERROR_MEMORY;
    if (differ(api, &first, &t)) return 6;
  }
  if (!t.ran || differ(api, &first, &t)) return 6;
  return printf("%d %s\n", failures, api->info->name) < 0;
}

int main(int argc, char **argv) {
  char error[512];
  for (int i = 1; i < argc; i++) {
    rnncc_library library;
    if (rnncc_load(argv[i], &library, error, sizeof error)) return puts(error), 2;
    for (int k = 0; k < library.api->n_networks; k++) {
      int code = try_all(library.api->networks[k]);
      if (code) return code;
    }
  }
  return 0;
}
