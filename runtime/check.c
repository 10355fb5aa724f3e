/* SPDX-License-Identifier: MIT */
/* All checks of the caller's arguments. They are done before a run changes anything. */
#include "context.h"
#include "indirect.h"

enum { UNBOUND = -1 };

static const char *const dtype_names[] = {
    [RNNCC_NONE] = "none",
#define DTYPE(name, code, type, text, ...) [RNNCC_##name] = text,
#include "dtypes.def"
};

#define DTYPE(name, code, type, text, bits, ...)                                                                       \
  _Static_assert(RNNCC_##name == (code) && 8 * sizeof(type) == ((bits) < 8 ? 8 : (bits)),                              \
                 "dtypes.def and rnncc.h differ in " text);
#include "dtypes.def"

static const char *dtype_name(rnncc_dtype dtype) {
  return (size_t)dtype < sizeof dtype_names / sizeof *dtype_names ? dtype_names[dtype] : "no known type";
}

size_t shape_elements(const int64_t *shape, int32_t rank) {
  size_t elements = 1;
  for (int32_t axis = 0; axis < rank; axis++) elements *= shape[axis];
  return elements;
}

/* A tensor that is checked, and what names it in messages. */
typedef struct Checked {
  const char *role; /* "input" or "output" */
  const rnncc_tensor_info *info;
  const rnncc_tensor *tensor;
  const int64_t *shape; /* at run time */
} Checked;

static size_t needed_bytes(const Checked *it) {
  return shape_elements(it->shape, it->info->rank) * rnncc_dtype_size(it->info->dtype);
}

static Checked checked_input(const rnncc_context *context, const rnncc_tensor *inputs, int i) {
  const rnncc_tensor *tensor = tensor_at(inputs, i);
  return (Checked){"input", &context->model->module->info.inputs[i], tensor, tensor->shape};
}

static Checked checked_output(const rnncc_context *context, const rnncc_tensor *outputs, int i) {
  return (Checked){"output", &context->model->module->info.outputs[i], tensor_at(outputs, i), context->shapes[i]};
}

static rnncc_status check_dtype(rnncc_context *context, const Checked *it) {
  if (it->tensor->dtype == it->info->dtype) return RNNCC_OK;
  return context_fail(context, RNNCC_ERROR_DTYPE, "%s '%.64s' has type %s, the model's is %s", it->role, it->info->name,
                      dtype_name(it->tensor->dtype), dtype_name(it->info->dtype));
}

static rnncc_status check_buffer(rnncc_context *context, const Checked *it) {
  size_t needed = needed_bytes(it);
  const rnncc_tensor *tensor = it->tensor;
  if (tensor->bytes < needed)
    return context_fail(context, RNNCC_ERROR_SIZE, "%s '%.64s': the buffer has %zu bytes, its shape takes %zu",
                        it->role, it->info->name, tensor->bytes, needed);
  if (!tensor->data && needed)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "%s '%.64s': data is NULL", it->role, it->info->name);
  if ((uintptr_t)tensor->data % rnncc_dtype_size(it->info->dtype))
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "%s '%.64s': data is not aligned to its %zu-byte elements",
                        it->role, it->info->name, rnncc_dtype_size(it->info->dtype));
  return RNNCC_OK;
}

static bool is_in_bounds(const rnncc_dim_info *dim, int64_t extent) { return extent >= dim->min && extent <= dim->max; }
static bool is_multiple(const rnncc_dim_info *dim, int64_t extent) {
  return dim->multiple <= 1 || extent % dim->multiple == 0;
}

/* The first tensor that has a named dimension gives it its value; all others must agree. */
static rnncc_status bind_dim(rnncc_context *context, const Checked *it, int32_t axis) {
  int32_t index = it->info->dim[axis];
  const rnncc_dim_info *dim = &context->model->module->info.dims[index];
  int64_t value = it->tensor->shape[axis];
  if (!is_in_bounds(dim, value))
    return context_fail(context, RNNCC_ERROR_BOUND,
                        "input '%.64s': axis %d is %lld, but '%.32s' was compiled for %lld to %lld", it->info->name,
                        axis, (long long)value, dim->name, (long long)dim->min, (long long)dim->max);
  if (!is_multiple(dim, value))
    return context_fail(context, RNNCC_ERROR_BOUND,
                        "input '%.64s': axis %d is %lld, but '%.32s' was compiled for multiples of %lld",
                        it->info->name, axis, (long long)value, dim->name, (long long)dim->multiple);
  if (context->dims[index] != UNBOUND && context->dims[index] != value)
    return context_fail(context, RNNCC_ERROR_SHAPE,
                        "input '%.64s': axis %d is %lld, but '%.32s' is %lld in another input", it->info->name, axis,
                        (long long)value, dim->name, (long long)context->dims[index]);
  context->dims[index] = value;
  return RNNCC_OK;
}

static rnncc_status check_axis(rnncc_context *context, const Checked *it, int32_t axis) {
  if (it->info->dim[axis] >= 0) return bind_dim(context, it, axis);
  if (it->tensor->shape[axis] == it->info->shape[axis]) return RNNCC_OK;
  return context_fail(context, RNNCC_ERROR_SHAPE, "input '%.64s': axis %d is %lld, the model's is %lld", it->info->name,
                      axis, (long long)it->tensor->shape[axis], (long long)it->info->shape[axis]);
}

static rnncc_status check_shape(rnncc_context *context, const Checked *it) {
  if (it->tensor->rank != it->info->rank)
    return context_fail(context, RNNCC_ERROR_SHAPE, "input '%.64s' has rank %d, the model's is %d", it->info->name,
                        it->tensor->rank, it->info->rank);
  for (int32_t axis = 0; axis < it->info->rank; axis++) {
    rnncc_status status = check_axis(context, it, axis);
    if (status) return status;
  }
  return RNNCC_OK;
}

static rnncc_status check_input(rnncc_context *context, const Checked *it) {
  rnncc_status status = check_dtype(context, it);
  if (!status) status = check_shape(context, it);
  if (!status) status = check_buffer(context, it);
  return status;
}

static rnncc_status check_inputs(rnncc_context *context, const rnncc_tensor *inputs) {
  const rnncc_info *info = &context->model->module->info;
  for (int i = 0; i < info->n_dims; i++) context->dims[i] = UNBOUND;
  for (int i = 0; i < info->n_inputs; i++) {
    Checked it = checked_input(context, inputs, i);
    rnncc_status status = check_input(context, &it);
    if (status) return status;
    context->inputs[i] = it.tensor->data;
  }
  for (int i = 0; i < info->n_dims; i++)
    if (context->dims[i] == UNBOUND) context->dims[i] = info->dims[i].max;
  return RNNCC_OK;
}

/* What the outputs' buffers must have room for. */
static void find_room(const Module *module, const int64_t *dims, int64_t (*shapes)[RNNCC_MAX_RANK]) {
  indirect_shapes(module->output_room ? module->output_room : module->output_shapes, dims, shapes);
}

static rnncc_status check_outputs(rnncc_context *context, const rnncc_tensor *outputs) {
  const Module *module = context->model->module;
  find_room(module, context->dims, context->shapes);
  for (int i = 0; i < module->info.n_outputs; i++) {
    Checked it = checked_output(context, outputs, i);
    rnncc_status status = check_dtype(context, &it);
    if (!status) status = check_buffer(context, &it);
    if (status) return status;
    context->outputs[i] = it.tensor->data;
  }
  return RNNCC_OK;
}

static bool overlap(const Checked *a, const Checked *b) {
  uintptr_t a_begin = (uintptr_t)a->tensor->data, b_begin = (uintptr_t)b->tensor->data;
  size_t a_bytes = needed_bytes(a), b_bytes = needed_bytes(b);
  return a_bytes && b_bytes && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

static rnncc_status check_apart(rnncc_context *context, const Checked *output, const Checked *other) {
  if (!overlap(output, other)) return RNNCC_OK;
  return context_fail(context, RNNCC_ERROR_ARGUMENT, "%s '%.64s' overlaps %s '%.64s'", output->role, output->info->name,
                      other->role, other->info->name);
}

/* No output shares memory with an input or another output. */
static rnncc_status check_overlaps(rnncc_context *context, const rnncc_tensor *inputs, const rnncc_tensor *outputs) {
  const rnncc_info *info = &context->model->module->info;
  rnncc_status status = RNNCC_OK;
  for (int i = 0; i < info->n_outputs; i++) {
    Checked output = checked_output(context, outputs, i);
    for (int j = 0; j < info->n_inputs && !status; j++) {
      Checked input = checked_input(context, inputs, j);
      status = check_apart(context, &output, &input);
    }
    for (int j = 0; j < i && !status; j++) {
      Checked earlier = checked_output(context, outputs, j);
      status = check_apart(context, &output, &earlier);
    }
  }
  return status;
}

static int64_t integer_at(rnncc_dtype dtype, const void *data, size_t at) {
  switch (dtype) {
  case RNNCC_I64:
    return ((const int64_t *)data)[at];
  case RNNCC_I32:
    return ((const int32_t *)data)[at];
  default:
    return ((const uint8_t *)data)[at];
  }
}

static rnncc_status check_range(rnncc_context *context, const rnncc_tensor *tensor, const ModuleRangeCheck *check) {
  int64_t hi = check->hi + (check->hi_dim >= 0 ? context->dims[check->hi_dim] : 0);
  size_t elements = shape_elements(tensor->shape, tensor->rank);
  for (size_t i = 0; i < elements; i++) {
    int64_t value = integer_at(tensor->dtype, tensor->data, i);
    if (value < check->lo || value >= hi)
      return context_fail(context, RNNCC_ERROR_VALUE, "input '%.64s': element %zu is %lld; a %s lies in %lld to %lld",
                          context->model->module->info.inputs[check->input].name, i, (long long)value, check->what,
                          (long long)check->lo, (long long)hi - 1);
  }
  return RNNCC_OK;
}

static rnncc_status check_ranges(rnncc_context *context, const rnncc_tensor *inputs) {
  const Module *module = context->model->module;
  for (int i = 0; i < module->n_checks; i++) {
    rnncc_status status = check_range(context, tensor_at(inputs, module->checks[i].input), &module->checks[i]);
    if (status) return status;
  }
  return RNNCC_OK;
}

static rnncc_status check_length(rnncc_context *context, const char *what, const void *list, size_t n, int32_t due) {
  if (n != (size_t)due)
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "%zu %s given, the model has %d", n, what, due);
  if (!list && n) return context_fail(context, RNNCC_ERROR_ARGUMENT, "%s is NULL", what);
  return RNNCC_OK;
}

static rnncc_status check_tensors(rnncc_context *context, const char *what, const rnncc_tensor *tensors, size_t n,
                                  int32_t due) {
  rnncc_status status = check_length(context, what, tensors, n, due);
  if (!status && n && (!RNNCC_HAS(tensors, shape) || tensors->struct_size % sizeof(void *)))
    return context_fail(context, RNNCC_ERROR_ARGUMENT, "%s[0].struct_size is %u; expected sizeof(rnncc_tensor)", what,
                        tensors->struct_size);
  return status;
}

rnncc_status run_check(rnncc_context *context, const rnncc_tensor *inputs, size_t n_inputs, const rnncc_tensor *outputs,
                       size_t n_outputs) {
  const rnncc_info *info = &context->model->module->info;
  rnncc_status status = check_tensors(context, "inputs", inputs, n_inputs, info->n_inputs);
  if (!status) status = check_tensors(context, "outputs", outputs, n_outputs, info->n_outputs);
  if (!status) status = check_inputs(context, inputs);
  if (!status) status = check_outputs(context, outputs);
  if (!status) status = check_overlaps(context, inputs, outputs);
  if (!status) status = check_ranges(context, inputs);
  return status;
}

#ifdef RNNCC_TRAINS
/* ---- gradients that the program gives and takes ---- */

static Checked checked_given(const rnncc_context *context, const rnncc_tensor *given, int i) {
  const Module *module = context->model->module;
  int output = module->training.info.output_gradients[i];
  return (Checked){"the gradient of output", &module->info.outputs[output], tensor_at(given, i),
                   context->shapes[output]};
}

/* In the last run. */
static void input_shape(const rnncc_context *context, const rnncc_tensor_info *info, int64_t *shape) {
  for (int axis = 0; axis < info->rank; axis++)
    shape[axis] = info->dim[axis] >= 0 ? context->dims[info->dim[axis]] : info->shape[axis];
}

static const rnncc_tensor_info *result_info(const rnncc_context *context, int i) {
  const Module *module = context->model->module;
  return &module->info.inputs[module->training.info.input_gradients[i]];
}

/* shape: room for that of the input. */
static Checked checked_result(const rnncc_context *context, const rnncc_tensor *results, int i, int64_t *shape) {
  const rnncc_tensor_info *info = result_info(context, i);
  input_shape(context, info, shape);
  return (Checked){"the gradient of input", info, tensor_at(results, i), shape};
}

/* It has the output's shape in the last run. */
static rnncc_status check_same_shape(rnncc_context *context, const Checked *it) {
  if (it->tensor->rank != it->info->rank)
    return context_fail(context, RNNCC_ERROR_SHAPE, "%s '%.64s' has rank %d, expected %d", it->role, it->info->name,
                        it->tensor->rank, it->info->rank);
  for (int32_t axis = 0; axis < it->info->rank; axis++)
    if (it->tensor->shape[axis] != it->shape[axis])
      return context_fail(context, RNNCC_ERROR_SHAPE, "%s '%.64s': axis %d is %lld, the output's is %lld", it->role,
                          it->info->name, axis, (long long)it->tensor->shape[axis], (long long)it->shape[axis]);
  return RNNCC_OK;
}

static rnncc_status check_given(rnncc_context *context, const rnncc_tensor *given) {
  const Module *module = context->model->module;
  rnncc_status status = RNNCC_OK;
  for (int i = 0; i < module->training.info.n_output_gradients && !status; i++) {
    Checked it = checked_given(context, given, i);
    status = check_dtype(context, &it);
    if (!status) status = check_same_shape(context, &it);
    if (!status) status = check_buffer(context, &it);
    context->inputs[module->info.n_inputs + i] = it.tensor->data;
  }
  return status;
}

static rnncc_status check_results(rnncc_context *context, const rnncc_tensor *results) {
  const Module *module = context->model->module;
  rnncc_status status = RNNCC_OK;
  for (int i = 0; i < module->training.info.n_input_gradients && !status; i++) {
    int64_t shape[RNNCC_MAX_RANK];
    Checked it = checked_result(context, results, i, shape);
    status = check_dtype(context, &it);
    if (!status) status = check_buffer(context, &it);
    context->outputs[module->info.n_outputs + i] = it.tensor->data;
  }
  return status;
}

/* The caller's: their ranks and shapes. */
static void tell_shapes(const rnncc_context *context, rnncc_tensor *results) {
  for (int i = 0; i < context->model->module->training.info.n_input_gradients; i++) {
    rnncc_tensor *tensor = tensor_at(results, i);
    tensor->rank = result_info(context, i)->rank;
    input_shape(context, result_info(context, i), tensor->shape);
  }
}

/* No result shares memory with what backward reads, or another result. */
static rnncc_status check_result_apart(rnncc_context *context, const rnncc_tensor *given, const rnncc_tensor *results,
                                       int i) {
  const Module *module = context->model->module;
  int64_t shape[RNNCC_MAX_RANK], other_shape[RNNCC_MAX_RANK];
  Checked result = checked_result(context, results, i, shape);
  rnncc_status status = RNNCC_OK;
  for (int j = 0; j < module->info.n_inputs && !status; j++) {
    rnncc_tensor input = {.data = (void *)(uintptr_t)context->inputs[j]};
    input_shape(context, &module->info.inputs[j], input.shape);
    status = check_apart(context, &result, &(Checked){"input", &module->info.inputs[j], &input, input.shape});
  }
  for (int j = 0; j < module->training.info.n_output_gradients && !status; j++) {
    Checked other = checked_given(context, given, j);
    status = check_apart(context, &result, &other);
  }
  for (int j = 0; j < i && !status; j++) {
    Checked earlier = checked_result(context, results, j, other_shape);
    status = check_apart(context, &result, &earlier);
  }
  return status;
}

rnncc_status backward_check(rnncc_context *context, const rnncc_tensor *given, size_t n_given, rnncc_tensor *results,
                            size_t n_results) {
  const rnncc_training_info *info = &context->model->module->training.info;
  rnncc_status status = check_tensors(context, "output_gradients", given, n_given, info->n_output_gradients);
  if (!status) status = check_tensors(context, "input_gradients", results, n_results, info->n_input_gradients);
  if (!status) status = check_given(context, given);
  if (!status) status = check_results(context, results);
  for (int i = 0; i < info->n_input_gradients && !status; i++) status = check_result_apart(context, given, results, i);
  if (!status) tell_shapes(context, results);
  return status;
}
#endif

static rnncc_status check_extent(rnncc_context *context, const rnncc_dim_info *dim, int64_t extent) {
  if (!is_in_bounds(dim, extent))
    return context_fail(context, RNNCC_ERROR_BOUND, "'%.32s' is %lld, but was compiled for %lld to %lld", dim->name,
                        (long long)extent, (long long)dim->min, (long long)dim->max);
  if (!is_multiple(dim, extent))
    return context_fail(context, RNNCC_ERROR_BOUND, "'%.32s' is %lld, but was compiled for multiples of %lld",
                        dim->name, (long long)extent, (long long)dim->multiple);
  return RNNCC_OK;
}

rnncc_status context_output_shapes(rnncc_context *context, const int64_t *dims, size_t n_dims,
                                   int64_t (*shapes)[RNNCC_MAX_RANK], size_t n_outputs) {
  if (!context) return RNNCC_ERROR_ARGUMENT;
  const Module *module = context->model->module;
  rnncc_status status = check_length(context, "dims", dims, n_dims, module->info.n_dims);
  if (!status) status = check_length(context, "shapes", shapes, n_outputs, module->info.n_outputs);
  for (int i = 0; i < module->info.n_dims && !status; i++)
    status = check_extent(context, &module->info.dims[i], dims[i]);
  if (!status && n_outputs) find_room(module, dims, shapes);
  return status;
}
