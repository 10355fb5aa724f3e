/* SPDX-License-Identifier: MIT */
/*
 * An application that takes all that an array of the ABI holds: of the module of tests/unit/runtime_fake.h it prints
 * what it is, and a run's results. test_abi.py builds it with headers of several ages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnncc_loader.h"

enum { T = 5, B = 2, F = 3 };

static void check(rnncc_status status, const char *what) {
  if (status == RNNCC_OK) return;
  printf("%s: %s\n", what, rnncc_status_name(status));
  exit(1);
}

static void print_tensor(const char *kind, const rnncc_tensor_info *tensor) {
  printf("%s %s: %zu bytes an element, rank %d", kind, tensor->name, rnncc_dtype_size(tensor->dtype), tensor->rank);
  for (int axis = 0; axis < tensor->rank; axis++)
    printf(" %lld<=%lld@%d", (long long)tensor->shape[axis], (long long)tensor->max_shape[axis], tensor->dim[axis]);
  putchar('\n');
}

static void print_info(const rnncc_info *info) {
  for (int i = 0; i < info->n_dims; i++) {
    const rnncc_dim_info *dim = rnncc_dim_at(info, i);
    printf("dim %s: %lld %lld %lld x%lld\n", dim->name, (long long)dim->min, (long long)dim->opt, (long long)dim->max,
           (long long)dim->multiple);
  }
  for (int i = 0; i < info->n_inputs; i++) print_tensor("input", rnncc_input_at(info, i));
  for (int i = 0; i < info->n_outputs; i++) print_tensor("output", rnncc_output_at(info, i));
  for (int i = 0; i < info->n_states; i++) {
    const rnncc_state_info *state = rnncc_state_at(info, i);
    print_tensor("state", state->tensor);
    printf("  axis %d, %d slots\n", state->batch_axis, state->slots);
  }
}

static void print_profile(const rnncc_api *api, rnncc_context *context) {
  const rnncc_profile_entry *entries;
  size_t count;
  check(api->profile(context, 0, &entries, &count), "profile");
  for (size_t i = 0; i < count; i++) {
    const rnncc_profile_entry *entry = rnncc_profile_at(entries, i);
    printf("%s %s: %d calls, %g flops, %g bytes\n", entry->kernel, entry->node, (int)entry->calls, entry->flops,
           entry->bytes);
  }
}

static void run(const rnncc_api *api, rnncc_context *context) {
  float x[T * B * F], y[T * B * F], last[B * F], scale = 2;
  int64_t lengths[B] = {T, T - 1}, shapes[2][RNNCC_MAX_RANK];
  for (int i = 0; i < T * B * F; i++) x[i] = (float)(i % 7);
  rnncc_tensor inputs[] = {
      {.dtype = RNNCC_F32, .data = x, .bytes = sizeof x, .rank = 3, .shape = {T, B, F}},
      {.dtype = RNNCC_I64, .data = lengths, .bytes = sizeof lengths, .rank = 1, .shape = {B}},
      {.dtype = RNNCC_F32, .data = &scale, .bytes = sizeof scale},
  };
  rnncc_tensor outputs[] = {
      {.dtype = RNNCC_F32, .data = y, .bytes = sizeof y},
      {.dtype = RNNCC_F32, .data = last, .bytes = sizeof last},
  };
  inputs[0].struct_size = outputs[0].struct_size = sizeof *inputs;
  check(api->output_shapes(context, (const int64_t[]){T, B}, 2, shapes, 2), api->last_error(context));
  check(api->run(context, inputs, 3, outputs, 2), api->last_error(context));
  for (int i = 0; i < 2; i++) {
    printf("output %d: rank %d, as told: %d;", i, outputs[i].rank,
           !memcmp(shapes[i], outputs[i].shape, (size_t)outputs[i].rank * sizeof *shapes[i]));
    const float *data = i ? last : y;
    for (int k = 0; k < (i ? B * F : T * B * F); k++) printf(" %g", data[k]);
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  char error[256];
  rnncc_library library;
  rnncc_model *model;
  rnncc_context *context;
  rnncc_options options = {.struct_size = sizeof options, .threads = 2};
  const char *why;
  if (argc != 2) return 2;
  if (rnncc_load(argv[1], &library, error, sizeof error)) return puts(error), 1;
  const rnncc_api *api = library.api;
  print_info(api->info);
  check(api->model_create(&options, &model, &why), "model_create");
  check(api->context_create(model, NULL, 0, &context, &why), "context_create");
  check(api->profile(context, 1, NULL, NULL), "profile");
  run(api, context);
  print_profile(api, context);
  api->context_destroy(context);
  api->model_destroy(model);
  rnncc_unload(&library);
  return 0;
}
