/* SPDX-License-Identifier: MIT */
/* --weights: sets weights of a model by their names. */
#include <stdlib.h>
#include <string.h>

#include "safetensors.h"
#include "verbs.h"

static const rnncc_tensor_info *weight_named(const rnncc_info *info, const char *name) {
  for (int i = 0; i < info->n_weights; i++)
    if (!strcmp(rnncc_weight_at(info, i)->name, name)) return rnncc_weight_at(info, i);
  return NULL;
}

/* A name that the module has not is for weights_set() to tell, which lists those that it has. */
static void check_tensor(const char *path, const SafeTensor *tensor, const rnncc_tensor_info *info) {
  char expected[SHAPE_TEXT], found[SHAPE_TEXT];
  if (!info) return;
  if (tensor->dtype != info->dtype)
    fail(EXIT_INPUT, "%s: `%.200s`: expected %s, found %s", path, tensor->name, dtype_text(info->dtype),
         dtype_text(tensor->dtype));
  bool same = tensor->rank == info->rank;
  for (int axis = 0; same && axis < info->rank; axis++) same = tensor->shape[axis] == info->shape[axis];
  if (!same)
    fail(EXIT_INPUT, "%s: `%.200s`: expected the shape %s, found %s", path, tensor->name,
         shape_text(expected, info->rank, info->shape), shape_text(found, tensor->rank, tensor->shape));
}

/* Aligned as weights_set() wants it; the caller frees it. */
static void *aligned_data(const SafeTensor *tensor) {
  void *data = allocate(tensor->bytes);
  if (tensor->bytes) memcpy(data, tensor->data, tensor->bytes);
  return data;
}

static int exit_of(rnncc_status status) {
  return status == RNNCC_ERROR_UNSUPPORTED ? EXIT_UNSUPPORTED
         : status == RNNCC_ERROR_MEMORY    ? EXIT_RESOURCE
                                           : EXIT_INPUT;
}

void set_weights(const Session *session, const char *path) {
  if (!path) return;
  if (!RNNCC_HAS(session->api, weights_get) || !RNNCC_HAS(session->api->info, n_weights))
    fail(EXIT_UNSUPPORTED, "%s: --weights: the module is older than weights that change", session->path);
  SafeTensors tensors = safetensors_read(path);
  rnncc_weight *list = allocate((size_t)tensors.count * sizeof *list + 1);
  for (int i = 0; i < tensors.count; i++) {
    const SafeTensor *tensor = &tensors.list[i];
    check_tensor(path, tensor, weight_named(session->api->info, tensor->name));
    list[i] = (rnncc_weight){.struct_size = sizeof *list,
                             .dtype = tensor->dtype,
                             .name = tensor->name,
                             .data = aligned_data(tensor),
                             .bytes = tensor->bytes};
  }
  char why[4096] = "";
  rnncc_status status = session->api->weights_set(session->model, list, (size_t)tensors.count, why, sizeof why);
  if (status != RNNCC_OK) fail(exit_of(status), "%s: %s", path, why);
  for (int i = 0; i < tensors.count; i++) free((void *)(uintptr_t)list[i].data);
  free(list);
  safetensors_free(&tensors);
}
