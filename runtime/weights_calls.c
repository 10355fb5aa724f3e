/* SPDX-License-Identifier: MIT */
/* weights_set() and weights_get(): what applications call, and what is wrong with a call. */
#include "weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct WeightsReason {
  char *text;
  size_t room;
} WeightsReason;

static rnncc_status weights_fail(const WeightsReason *reason, rnncc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static rnncc_status weights_fail(const WeightsReason *reason, rnncc_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (reason->text && reason->room) vsnprintf(reason->text, reason->room, format, arguments);
  va_end(arguments);
  return status;
}

static rnncc_status check_model(const rnncc_model *model, const char *function, const WeightsReason *reason) {
  if (reason->text && reason->room) *reason->text = 0;
  if (!model) return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "%s: the model is NULL", function);
  if (!model->weights)
    return weights_fail(reason, RNNCC_ERROR_UNSUPPORTED,
                        "%s: the module's weights are constant; compile it with --weights=mutable", function);
  return RNNCC_OK;
}

#ifdef RNNCC_MUTABLE

static rnncc_status fail_unknown(const Module *module, const char *name, const WeightsReason *reason) {
  rnncc_status status = weights_fail(reason, RNNCC_ERROR_ARGUMENT, "no weight `%.200s`; expected one of:", name);
  if (!reason->text || !reason->room) return status;
  size_t used = strlen(reason->text);
  for (int i = 0; i < module->info.n_weights && used + 1 < reason->room; i++) {
    snprintf(reason->text + used, reason->room - used, "%s%s", i ? ", " : " ", module->info.weights[i].name);
    used += strlen(reason->text + used);
  }
  return status;
}

static rnncc_status find_weight(const Module *module, const char *name, const char *function,
                                const WeightsReason *reason, int *index) {
  if (!name) return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "%s: a name is NULL", function);
  for (*index = 0; *index < module->info.n_weights; ++*index)
    if (!strcmp(module->info.weights[*index].name, name)) return RNNCC_OK;
  return fail_unknown(module, name, reason);
}

static rnncc_status check_bytes(const Module *module, int index, const void *data, size_t bytes,
                                const WeightsReason *reason) {
  const rnncc_tensor_info *info = &module->info.weights[index];
  size_t expected = module->mutable_weights->block_bytes[index];
  if (!data) return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "weight `%.200s`: its data is NULL", info->name);
  if (bytes != expected)
    return weights_fail(reason, RNNCC_ERROR_SIZE, "weight `%.200s`: expected %zu bytes, found %zu", info->name,
                        expected, bytes);
  if ((uintptr_t)data % rnncc_dtype_size(info->dtype))
    return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "weight `%.200s`: its data is not aligned to its element",
                        info->name);
  return RNNCC_OK;
}

static rnncc_status check_weight(const Module *module, const rnncc_weight *weight, const void **numbers,
                                 const WeightsReason *reason) {
  int index;
  rnncc_status status = find_weight(module, weight->name, "weights_set", reason, &index);
  if (!status) status = check_bytes(module, index, weight->data, weight->bytes, reason);
  if (status) return status;
  const rnncc_tensor_info *info = &module->info.weights[index];
  if (weight->dtype != info->dtype)
    return weights_fail(reason, RNNCC_ERROR_DTYPE, "weight `%.200s`: expected element type %d of rnncc_dtype, found %d",
                        info->name, (int)info->dtype, (int)weight->dtype);
  if (numbers[index]) return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "weight `%.200s` is there twice", info->name);
  numbers[index] = weight->data;
  return RNNCC_OK;
}

static rnncc_status check_list(const Module *module, const rnncc_weight *list, size_t n, const void **numbers,
                               const WeightsReason *reason) {
  if (n && !list) return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "weights_set: `weights` is NULL");
  if (n && list->struct_size < sizeof *list)
    return weights_fail(reason, RNNCC_ERROR_ARGUMENT, "weights_set: struct_size: expected at least %zu, found %u",
                        sizeof *list, (unsigned)list->struct_size);
  for (size_t i = 0; i < n; i++) {
    const rnncc_weight *weight = (const rnncc_weight *)((uintptr_t)list + i * list->struct_size);
    rnncc_status status = check_weight(module, weight, numbers, reason);
    if (status) return status;
  }
  return RNNCC_OK;
}

rnncc_status model_weights_set(rnncc_model *model, const rnncc_weight *list, size_t n, char *why, size_t room) {
  WeightsReason reason = {why, room};
  rnncc_status status = check_model(model, "weights_set", &reason);
  if (status) return status;
  const void **numbers = calloc((size_t)model->module->info.n_weights, sizeof *numbers);
  if (!numbers) return weights_fail(&reason, RNNCC_ERROR_MEMORY, "weights_set: out of memory");
  status = check_list(model->module, list, n, numbers, &reason);
  if (!status && n && !weights_set_numbers(model->weights, numbers))
    status = weights_fail(&reason, RNNCC_ERROR_MEMORY, "weights_set: out of memory");
  free((void *)numbers);
  return status;
}

rnncc_status model_weights_get(rnncc_model *model, const char *name, void *data, size_t bytes, char *why, size_t room) {
  WeightsReason reason = {why, room};
  int index;
  rnncc_status status = check_model(model, "weights_get", &reason);
  if (!status) status = find_weight(model->module, name, "weights_get", &reason, &index);
  if (!status) status = check_bytes(model->module, index, data, bytes, &reason);
  if (status) return status;
  weights_get_numbers(model->weights, index, data);
  return RNNCC_OK;
}
#else /* its weights are constant: nothing of all that is in the module */

rnncc_status model_weights_set(rnncc_model *model, const rnncc_weight *list, size_t n, char *why, size_t room) {
  (void)list, (void)n;
  return check_model(model, "weights_set", &(WeightsReason){why, room});
}

rnncc_status model_weights_get(rnncc_model *model, const char *name, void *data, size_t bytes, char *why, size_t room) {
  (void)name, (void)data, (void)bytes;
  return check_model(model, "weights_get", &(WeightsReason){why, room});
}

#endif
