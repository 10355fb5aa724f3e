/* SPDX-License-Identifier: MIT */
/* The operands of calls as C expressions. */
#include <string.h>

#include "emit/schedule.h"

/* ---- addresses ---- */

/* `t3`, or `t3 + 64` in the value's own elements. */
static bool add_place(Text *out, const Program *program, const Access *access) {
  DimTable *dims = program->graph->dims;
  text_add(out, "t%d", access->value->id);
  if (access->offset == dim_const(dims, 0)) return false;
  int64_t size = (int64_t)dtype_size(access->value->dtype);
  const Dim *elements = dim_div_exact(dims, access->offset, dim_const(dims, size));
  if (!elements) bug("an operand that begins inside an element of t%d", access->value->id);
  text_add(out, " + ");
  if (dim_is_const(elements))
    text_add(out, "%lld", (long long)dim_value(elements));
  else
    dim_print_c(out, elements);
  return true;
}

/* Is the C type equal? Halves and bools are integers in C. */
static bool same_element(DType a, DType b) { return !strcmp(dtype_c(a), dtype_c(b)); }

static void add_address(Text *out, const Program *program, const Parameter *parameter, const Access *access) {
  if (parameter->element == RNNCC_NONE || same_element(access->value->dtype, parameter->element)) {
    add_place(out, program, access);
    return;
  }
  Text place = text_new(out->arena);
  bool sum = add_place(&place, program, access);
  text_add(out, parameter->points_to_const ? "(const void *)" : "(void *)");
  text_add(out, sum ? "(%s)" : "%s", place.data);
}

static void add_addresses(Text *out, const Program *program, const Call *call, const Operand *operand, bool constant) {
  text_add(out, constant ? "(const void *const[]){" : "(void *const[]){");
  for (int k = 0; k < operand->count; k++) {
    if (k) text_add(out, ", ");
    add_place(out, program, &call->item->accesses[operand->access + k]);
  }
  text_add(out, "}");
}

/* ---- numbers ---- */

static void add_dims(Text *out, const Operand *operand) {
  text_add(out, "(const int64_t[]){");
  for (int k = 0; k < operand->count; k++) {
    if (k) text_add(out, ", ");
    dim_print_c(out, operand->dims[k]);
  }
  text_add(out, operand->count ? "}" : "0}");
}

static void add_integers(Text *out, const Parameter *parameter, const Operand *operand) {
  text_add(out, "(const %s[]){", dtype_c(parameter->element));
  for (int k = 0; k < operand->count; k++) text_add(out, "%s%lld", k ? ", " : "", (long long)operand->integers[k]);
  text_add(out, operand->count ? "}" : "0}");
}

static void add_float(Text *out, const Parameter *parameter, double number) {
  if (parameter->kind == PARAMETER_DOUBLE)
    text_add(out, "%a", number);
  else
    text_float(out, (float)number);
}

/* The address of a data-dependent dim. */
static void add_found(Text *out, const Program *program, const DimSymbol *found) {
  if (found)
    text_add(out, "&run->data_dims[%d]", found->index - dim_given_count(program->graph->dims));
  else
    text_add(out, "&(int64_t){0}");
}

/* ---- all of them ---- */

void emit_operand(Text *out, const Program *program, const Call *call, int index) {
  static const char *const SUPPLIED[] = {[SUPPLIED_TEAM] = "team",
                                         [SUPPLIED_ALONE] = "&alone",
                                         [SUPPLIED_RUN] = "run",
                                         [SUPPLIED_FAULT] = "run->fault",
                                         [SUPPLIED_TURN] = "run->turn"};
  const Operand *operand = &call->operands[index];
  const Parameter *parameter = &call->kernel->parameters[index];
  switch (operand->kind) {
  case OPERAND_VALUE:
    add_address(out, program, parameter, &call->item->accesses[operand->access]);
    break;
  case OPERAND_VALUES:
    add_addresses(out, program, call, operand, parameter->points_to_const);
    break;
  case OPERAND_NULL:
    text_add(out, "NULL");
    break;
  case OPERAND_DIM:
    dim_print_c(out, operand->dims[0]);
    break;
  case OPERAND_DIMS:
    add_dims(out, operand);
    break;
  case OPERAND_INTEGER:
    text_add(out, "%lld", (long long)operand->integers[0]);
    break;
  case OPERAND_INTEGERS:
    add_integers(out, parameter, operand);
    break;
  case OPERAND_FLOAT:
    add_float(out, parameter, operand->number);
    break;
  case OPERAND_FOUND:
    add_found(out, program, operand->found);
    break;
  case OPERAND_SUPPLIED:
    text_add(out, "%s", SUPPLIED[operand->supplied]);
    break;
  case OPERAND_NONE:
    bug("%s: an operand that is not given", call->kernel->function);
  }
}
