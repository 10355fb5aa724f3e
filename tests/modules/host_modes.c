/* SPDX-License-Identifier: MIT */
/*
 * host_modes MODULE EXTENT: runs of a module, each named dim of that extent, where the host rounds in another way and
 * traps all exceptions, and of a module that trains the gradients' norm and a step. Exits 0 if each has the bits of the
 * usual mode, else says what has others.
 */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "module_tensors.h"

static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

typedef struct Result {
  uint64_t outputs, weights;
  double norm;
} Result;

static rnncc_tensor tensor_at_extent(const rnncc_info *info, const rnncc_tensor_info *described, int64_t extent) {
  rnncc_tensor tensor = tensor_of(info, described, true, true);
  for (int axis = 0; axis < tensor.rank; axis++)
    if (described->dim[axis] >= 0) tensor.shape[axis] = extent;
  return tensor;
}

/* Odd eighths, and labels 0 and 1. */
static void fill(const rnncc_tensor *tensor) {
  for (size_t i = 0; i < tensor->bytes / rnncc_dtype_size(tensor->dtype); i++)
    if (tensor->dtype == RNNCC_I64)
      ((int64_t *)tensor->data)[i] = i % 2;
    else
      ((float *)tensor->data)[i] = (float)(i * 7 % 11) / 8 + 0.1f;
}

static uint64_t add_bytes(uint64_t sum, const void *data, size_t bytes) {
  for (size_t k = 0; k < bytes; k++) sum = (sum ^ ((const unsigned char *)data)[k]) * 1099511628211u;
  return sum;
}

static uint64_t bits_of_weights(const rnncc_api *api, rnncc_context *context) {
  size_t bytes = api->training->checkpoint_bytes(context);
  void *data = malloc(bytes);
  if (!data || api->training->checkpoint_get(context, data, bytes)) fail("checkpoint_get");
  uint64_t sum = add_bytes(0, data, bytes);
  free(data);
  return sum;
}

/* Back through the run, the norm, what is refused, and a step. */
static void train(const rnncc_api *api, rnncc_model *model, rnncc_context *context, Result *result) {
  rnncc_optimizer by = {
      .struct_size = sizeof by, .rule = RNNCC_SGD, .learning_rate = NAN, .momentum = 0.3f, .max_norm = 0.7f};
  if (api->training->backward(context) || api->training->gradient_norm(context, &result->norm)) fail("backward");
  if (api->training->step(context, &by) != RNNCC_ERROR_ARGUMENT) fail("a learning rate of NaN is taken");
  if (api->training->weight_factors(model, rnncc_parameter_at(api->training->info, 0)->name, NAN, 1) !=
      RNNCC_ERROR_ARGUMENT)
    fail("a factor of NaN is taken");
  by.learning_rate = 0.1f;
  if (api->training->step(context, &by)) fail("step: %s", api->last_error(context));
}

static Result run_in(const rnncc_api *api, int threads, int rounding, int traps, int64_t extent) {
  const rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  const rnncc_info *info = api->info;
  rnncc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  rnncc_model *model;
  rnncc_context *context;
  Result result = {0};
  if (api->model_create(&options, &model, NULL) || api->context_create(model, NULL, 0, &context, NULL))
    fail("no memory");
  for (int i = 0; i < info->n_inputs; i++) {
    inputs[i] = tensor_at_extent(info, rnncc_input_at(info, i), extent);
    fill(&inputs[i]);
  }
  for (int i = 0; i < info->n_outputs; i++) {
    outputs[i] = tensor_of(info, rnncc_output_at(info, i), true, true);
    memset(outputs[i].data, 0, outputs[i].bytes);
  }
  fesetround(rounding);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(traps);
  if (api->run(context, inputs, (size_t)info->n_inputs, outputs, (size_t)info->n_outputs)) fail("run");
  if (RNNCC_HAS(api, training) && api->training) train(api, model, context, &result);
  fedisableexcept(FE_ALL_EXCEPT);
  fesetround(FE_TONEAREST);
  for (int i = 0; i < info->n_outputs; i++)
    result.outputs = add_bytes(result.outputs, outputs[i].data, outputs[i].bytes);
  if (RNNCC_HAS(api, training) && api->training) result.weights = bits_of_weights(api, context);
  api->context_destroy(context);
  api->model_destroy(model);
  return result;
}

int main(int argc, char **argv) {
  rnncc_library library;
  char why[256];
  if (argc != 3) fail("usage: host_modes MODULE EXTENT");
  if (rnncc_load(argv[1], &library, why, sizeof why)) fail("%s", why);
  const Result usual = run_in(library.api, 1, FE_TONEAREST, 0, atoll(argv[2]));
  for (int threads = 1; threads <= 3; threads++)
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
      Result it = run_in(library.api, threads, roundings[i], FE_ALL_EXCEPT, atoll(argv[2]));
      if (it.outputs != usual.outputs || it.weights != usual.weights || memcmp(&it.norm, &usual.norm, sizeof it.norm))
        fail("mode %d, %d threads: %s", roundings[i], threads,
             it.outputs != usual.outputs   ? "outputs"
             : it.weights != usual.weights ? "weights"
                                           : "the norm");
    }
  return 0;
}
