/* SPDX-License-Identifier: MIT */
/* The operands of calls, each checked against its parameter. */
#include <string.h>

#include "program/build.h"
#include "program/build_internal.h"
#include "support/diagnostics.h"
#include "support/list.h"

static int parameter_index(const SpecialisedKernel *kernel, const char *name) {
  for (int i = 0; i < kernel->n_parameters; i++)
    if (!strcmp(kernel->parameters[i].name, name)) return i;
  return -1;
}

static int expect_parameter(const Call *call, const char *name) {
  int index = parameter_index(call->kernel, name);
  if (index < 0) bug("%s has no parameter `%s`", call->kernel->function, name);
  return index;
}

/* Sets the parameter's operand. bug() unless the parameter is of one of the two kinds. */
static const Parameter *give(Call *call, const char *name, ParameterKind kind, ParameterKind other, Operand operand) {
  int index = expect_parameter(call, name);
  const Parameter *parameter = &call->kernel->parameters[index];
  if (call->operands[index].kind) bug("%s: parameter `%s` is given twice", call->kernel->function, name);
  if (parameter->kind != kind && parameter->kind != other)
    bug("%s: parameter `%s` is of another kind than its operand", call->kernel->function, name);
  call->operands[index] = operand;
  return parameter;
}

/* ---- memory ---- */

static void expect_mode(const Call *call, const Parameter *parameter, AccessMode mode) {
  if (parameter->points_to_const != (mode == READ))
    bug("%s: `%s` is %s, but its operand says %s", call->kernel->function, parameter->name,
        parameter->points_to_const ? "const" : "not const", mode == READ ? "READ" : "WRITE");
}

void operand_part(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *bytes,
                  AccessMode mode) {
  if (!value) {
    operand_null(call, parameter);
    return;
  }
  Access access = {.value = (Value *)value, .offset = offset, .bytes = bytes, .mode = mode};
  Operand operand = {.kind = OPERAND_VALUE, .access = item_access(call->program, call->item, access), .count = 1};
  expect_mode(call, give(call, parameter, PARAMETER_POINTER, PARAMETER_POINTER, operand), mode);
}

void operand_value(Call *call, const char *parameter, const Value *value, AccessMode mode) {
  operand_part(call, parameter, value, dim_const(call->program->graph->dims, 0), NULL, mode);
}

void operand_bytes(Call *call, const char *parameter, const Value *value, int64_t offset, int64_t bytes,
                   AccessMode mode) {
  DimTable *dims = call->program->graph->dims;
  operand_part(call, parameter, value, dim_const(dims, offset), dim_const(dims, bytes), mode);
}

void operand_elements(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *count,
                      AccessMode mode) {
  DimTable *dims = call->program->graph->dims;
  const Dim *size = value ? dim_const(dims, (int64_t)dtype_size(value->dtype)) : NULL;
  operand_part(call, parameter, value, value ? dim_mul(dims, offset, size) : NULL,
               value && count ? dim_mul(dims, count, size) : NULL, mode);
}

void operand_value_array(Call *call, const char *parameter, int n, Value *const *values, AccessMode mode) {
  const Dim *zero = dim_const(call->program->graph->dims, 0);
  Operand operand = {.kind = OPERAND_VALUES, .access = call->item->n_accesses, .count = n};
  for (int k = 0; k < n; k++)
    item_access(call->program, call->item, (Access){.value = values[k], .offset = zero, .mode = mode});
  expect_mode(call, give(call, parameter, PARAMETER_POINTERS, PARAMETER_POINTERS, operand), mode);
}

void operand_null(Call *call, const char *parameter) {
  give(call, parameter, PARAMETER_POINTER, PARAMETER_POINTER, (Operand){.kind = OPERAND_NULL});
}

void operand_sharing(Call *call, const char *parameter, Sharing sharing) {
  const Operand *operand = &call->operands[expect_parameter(call, parameter)];
  if (operand->kind != OPERAND_VALUE && operand->kind != OPERAND_NULL)
    bug("%s: `%s` is no memory that calls could share", call->kernel->function, parameter);
  if (operand->kind == OPERAND_VALUE) call->item->accesses[operand->access].sharing = sharing;
}

/* ---- numbers ---- */

static const Dim *const *copy_dims(const Call *call, int n, const Dim *const *dims) {
  const Dim **copy = ARENA_ARRAY(call->program->arena, const Dim *, n + 1);
  for (int i = 0; i < n; i++) copy[i] = dims[i];
  return copy;
}

void operand_dim(Call *call, const char *parameter, const Dim *dim) {
  Operand operand = {.kind = OPERAND_DIM, .count = 1, .dims = copy_dims(call, 1, &dim)};
  give(call, parameter, PARAMETER_INTEGER, PARAMETER_INTEGER, operand);
}

void operands_around(Call *call, const Value *x, int axis, const char *along) {
  Graph *graph = call->program->graph;
  int behind = axis < x->rank ? axis + 1 : x->rank;
  operand_dim(call, "outer", value_count_dim(graph, x, 0, axis));
  operand_dim(call, along, value_count_dim(graph, x, axis, behind));
  operand_dim(call, "inner", value_count_dim(graph, x, behind, x->rank));
}

void operand_integer(Call *call, const char *parameter, int64_t value) {
  int64_t *copy = arena_copy(call->program->arena, &value, sizeof value);
  give(call, parameter, PARAMETER_INTEGER, PARAMETER_INTEGER,
       (Operand){.kind = OPERAND_INTEGER, .count = 1, .integers = copy});
}

void operand_extent(Call *call, const char *parameter, const Dim *dim) {
  if (dim_is_const(dim))
    operand_integer(call, parameter, dim_value(dim));
  else
    operand_dim(call, parameter, dim);
}

void operand_float(Call *call, const char *parameter, double value) {
  give(call, parameter, PARAMETER_FLOAT, PARAMETER_DOUBLE, (Operand){.kind = OPERAND_FLOAT, .number = value});
}

/* An array that the kernel reads. */
static void give_array(Call *call, const char *parameter, Operand operand) {
  expect_mode(call, give(call, parameter, PARAMETER_POINTER, PARAMETER_POINTER, operand), READ);
}

void operand_dim_array(Call *call, const char *parameter, int n, const Dim *const *dims) {
  give_array(call, parameter, (Operand){.kind = OPERAND_DIMS, .count = n, .dims = copy_dims(call, n, dims)});
}

void operand_integer_array(Call *call, const char *parameter, int n, const int64_t *values) {
  int64_t *copy = ARENA_ARRAY(call->program->arena, int64_t, n + 1);
  for (int i = 0; i < n; i++) copy[i] = values[i];
  give_array(call, parameter, (Operand){.kind = OPERAND_INTEGERS, .count = n, .integers = copy});
}

void operand_extent_array(Call *call, const char *parameter, int n, const Dim *const *dims) {
  int64_t *values = ARENA_ARRAY(call->program->arena, int64_t, n + 1);
  for (int i = 0; i < n; i++) {
    if (!dim_is_const(dims[i])) {
      operand_dim_array(call, parameter, n, dims);
      return;
    }
    values[i] = dim_value(dims[i]);
  }
  operand_integer_array(call, parameter, n, values);
}

void operand_found(Call *call, const char *parameter, const Dim *dim) {
  const DimSymbol *symbol = dim_is_const(dim) ? NULL : dim_as_symbol(dim);
  if (!symbol && !dim_is_const(dim)) bug("%s finds an expression", call->kernel->function);
  expect_mode(
      call,
      give(call, parameter, PARAMETER_POINTER, PARAMETER_POINTER, (Operand){.kind = OPERAND_FOUND, .found = symbol}),
      WRITE);
  if (symbol) *LIST_ADD(call->program->arena, call->found, call->n_found, call->found_capacity) = symbol;
}

/* ---- supplied operands ---- */

static const struct {
  const char *parameter;
  Supplied supplied;
} SUPPLIED[] = {{"team", SUPPLIED_TEAM}, {"run", SUPPLIED_RUN}, {"fault", SUPPLIED_FAULT}, {"turn", SUPPLIED_TURN}};

static void supply(Call *call, const char *parameter, Supplied supplied, bool alone) {
  int index = parameter_index(call->kernel, parameter);
  if (index < 0 || call->operands[index].kind) return;
  if (supplied == SUPPLIED_TEAM && alone) supplied = SUPPLIED_ALONE;
  call->operands[index] = (Operand){.kind = OPERAND_SUPPLIED, .supplied = supplied};
  if (supplied == SUPPLIED_FAULT) call->program->may_fault = true;
}

void complete_operands(Call *call, bool alone) {
  for (size_t i = 0; i < sizeof SUPPLIED / sizeof *SUPPLIED; i++)
    supply(call, SUPPLIED[i].parameter, SUPPLIED[i].supplied, alone);
  for (int i = 0; i < call->kernel->n_parameters; i++)
    if (!call->operands[i].kind)
      bug("%s: parameter `%s` is not given", call->kernel->function, call->kernel->parameters[i].name);
}
