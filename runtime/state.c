/* SPDX-License-Identifier: MIT */
/*
 * The states of a context. Seen along its batch axis a state is [outer][slots][inner bytes]; every copy moves a run of
 * slots between two such arrays that differ in their number of slots only.
 */
#include "context.h"
#include "memory.h"

typedef struct Slots {
  unsigned char *data;
  size_t slots, first;
} Slots;

static size_t state_outer(const rnncc_state_info *state) {
  return state->batch_axis < 0 ? 1 : shape_elements(state->tensor->shape, state->batch_axis);
}

static size_t state_inner(const rnncc_state_info *state) {
  const rnncc_tensor_info *tensor = state->tensor;
  int32_t from = state->batch_axis + 1; /* 0 if there is no batch axis: all of it */
  return shape_elements(tensor->shape + from, tensor->rank - from) * rnncc_dtype_size(tensor->dtype);
}

static void slots_copy(const rnncc_state_info *state, Slots to, Slots from, size_t count) {
  size_t outer = state_outer(state), inner = state_inner(state);
  for (size_t i = 0; i < outer; i++)
    memcpy(to.data + (i * to.slots + to.first) * inner, from.data + (i * from.slots + from.first) * inner,
           count * inner);
}

static size_t run_batch(const rnncc_context *context, const rnncc_state_info *state) {
  int32_t dim = state->batch_axis < 0 ? -1 : state->tensor->dim[state->batch_axis];
  return dim < 0 ? (size_t)state->slots : (size_t)context->dims[dim];
}

void states_load(rnncc_context *context) {
  const Module *module = context->model->module;
  for (int i = 0; i < module->info.n_states; i++) {
    const rnncc_state_info *state = &module->info.states[i];
    size_t batch = run_batch(context, state);
    Slots kept = {context->states[i], state->slots, 0}, dense = {context->arena + module->states[i].arena_in, batch, 0};
    slots_copy(state, dense, kept, batch);
  }
}

void states_store(rnncc_context *context) {
  const Module *module = context->model->module;
  for (int i = 0; i < module->info.n_states; i++) {
    const rnncc_state_info *state = &module->info.states[i];
    size_t batch = run_batch(context, state);
    Slots kept = {context->states[i], state->slots, 0},
          dense = {context->arena + module->states[i].arena_out, batch, 0};
    slots_copy(state, kept, dense, batch);
  }
}

static void state_clear(rnncc_context *context, int32_t index, int32_t slot) {
  const rnncc_state_info *state = &context->model->module->info.states[index];
  if (slot < 0) {
    memset(context->states[index], 0, context->model->module->states[index].bytes);
    return;
  }
  size_t outer = state_outer(state), inner = state_inner(state);
  for (size_t i = 0; i < outer; i++) memset(context->states[index] + (i * state->slots + slot) * inner, 0, inner);
}

static rnncc_status no_such_slot(rnncc_context *context, const rnncc_state_info *state, int32_t slot) {
  return context_fail(context, RNNCC_ERROR_ARGUMENT, "state '%.64s' has slots 0 to %d (-1 for all), not %d",
                      state->tensor->name, state->slots - 1, slot);
}

rnncc_status context_state_reset(rnncc_context *context, int32_t slot) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  const rnncc_info *info = &context->model->module->info;
  bool found = slot == -1;
  for (int i = 0; i < info->n_states; i++) {
    if (slot < -1 || slot >= info->states[i].slots) continue;
    found = true;
    state_clear(context, i, slot);
  }
  return found ? RNNCC_OK : context_fail(context, RNNCC_ERROR_ARGUMENT, "no state has a slot %d (-1 is for all)", slot);
}

/* Checks the arguments of get and set; on success *part is where the context keeps the slots, *count how many. */
static rnncc_status state_find(rnncc_context *context, int32_t index, int32_t slot, const void *data, size_t bytes,
                               Slots *part, size_t *count) {
  const rnncc_info *info = &context->model->module->info;
  if (index < 0 || index >= info->n_states)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "there is no state %d; the model has %d", index, info->n_states);
  const rnncc_state_info *state = &info->states[index];
  if (slot < -1 || slot >= state->slots) return no_such_slot(context, state, slot);
  *count = slot < 0 ? (size_t)state->slots : 1;
  size_t needed = state_outer(state) * *count * state_inner(state);
  if (bytes != needed)
    return context_fail(context, RNNCC_ERROR_SIZE, "state '%.64s': %zu bytes given, it takes %zu", state->tensor->name,
                        bytes, needed);
  if (!data && needed)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "state '%.64s': data is NULL", state->tensor->name);
  *part = (Slots){context->states[index], state->slots, slot < 0 ? 0 : slot};
  return RNNCC_OK;
}

rnncc_status context_state_get(rnncc_context *context, int32_t index, int32_t slot, void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  Slots kept;
  size_t count;
  rnncc_status status = state_find(context, index, slot, data, bytes, &kept, &count);
  if (status || !bytes) return status;
  slots_copy(&context->model->module->info.states[index], (Slots){data, count, 0}, kept, count);
  return RNNCC_OK;
}

rnncc_status context_state_set(rnncc_context *context, int32_t index, int32_t slot, const void *data, size_t bytes) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  Slots kept;
  size_t count;
  rnncc_status status = state_find(context, index, slot, data, bytes, &kept, &count);
  if (status || !bytes) return status;
  slots_copy(&context->model->module->info.states[index], kept, (Slots){(unsigned char *)data, count, 0}, count);
  return RNNCC_OK;
}
