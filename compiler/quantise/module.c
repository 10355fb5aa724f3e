/* SPDX-License-Identifier: MIT */
#include "quantise/module.h"

#include <string.h>
#include <sys/mman.h>

#include "support/numbers.h"

/* Room for the largest run; pages that no run writes take no memory. */
static void *room_for(const rnncc_tensor_info *info, size_t *bytes) {
  *bytes = dtype_size(info->dtype);
  for (int axis = 0; axis < info->rank; axis++) *bytes = (size_t)saturating_mul((int64_t)*bytes, info->max_shape[axis]);
  void *room = mmap(NULL, (size_t)max_int((int64_t)*bytes, 1), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) out_of_memory();
  return room;
}

Module module_open(Arena *arena, const char *path, int threads) {
  Module module = {0};
  char error[1024];
  const char *why = "no reason given";
  if (rnncc_load(path, &module.library, error, sizeof error))
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "%s", error);
  const rnncc_api *api = module.library.api;
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  rnncc_status status = api->model_create(&options, &module.model, &why);
  if (status != RNNCC_OK)
    fatal_at(LOCATION_FILE(path), status == RNNCC_ERROR_MEMORY ? EXIT_LIMIT : EXIT_ENVIRONMENT, "%s", why);
  if (api->context_create(module.model, NULL, 0, &module.context, &why) != RNNCC_OK)
    fatal_at(LOCATION_FILE(path), EXIT_LIMIT, "%s", why);
  module.info = api->info;
  module.inputs = ARENA_ARRAY(arena, rnncc_tensor, module.info->n_inputs + 1);
  module.outputs = ARENA_ARRAY(arena, rnncc_tensor, module.info->n_outputs + 1);
  for (int i = 0; i < module.info->n_outputs; i++) {
    const rnncc_tensor_info *info = rnncc_output_at(module.info, i);
    module.outputs[i] = (rnncc_tensor){.struct_size = sizeof(rnncc_tensor), .dtype = info->dtype, .rank = info->rank};
    module.outputs[i].data = room_for(info, &module.outputs[i].bytes);
  }
  return module;
}

static void set_input(rnncc_tensor *input, const Tensor *tensor) {
  *input =
      (rnncc_tensor){.struct_size = sizeof *input, .data = tensor->data, .dtype = tensor->dtype, .rank = tensor->rank};
  memcpy(input->shape, tensor->shape, sizeof input->shape);
  input->bytes = (size_t)tensor_count(tensor) * dtype_size(tensor->dtype);
}

void module_run(const Module *module, const Run *run, const bool *switches) {
  const rnncc_api *api = module->library.api;
  int n = module->info->n_inputs - (switches != NULL);
  for (int i = 0; i < n; i++) set_input(&module->inputs[i], &run->inputs[i]);
  if (switches) {
    int64_t length = rnncc_input_at(module->info, n)->shape[0];
    module->inputs[n] = (rnncc_tensor){.struct_size = sizeof(rnncc_tensor),
                                       .data = (void *)(uintptr_t)switches,
                                       .bytes = (size_t)length,
                                       .dtype = RNNCC_BOOL,
                                       .rank = 1,
                                       .shape = {length}};
  }
  if (run->first && module->info->n_states) api->state_reset(module->context, -1);
  if (api->run(module->context, module->inputs, (size_t)module->info->n_inputs, module->outputs,
               (size_t)module->info->n_outputs) != RNNCC_OK)
    fatal_at(LOCATION_FILE(run->file), EXIT_INVALID, "the network does not take it: %s",
             api->last_error(module->context));
}

int64_t tensor_elements(const rnncc_tensor *tensor) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor->rank; axis++) count *= tensor->shape[axis];
  return count;
}
