/* SPDX-License-Identifier: MIT */
/* Rewriting of attributes that became inputs. */
#include <math.h>
#include <string.h>

#include "ir/tensor.h"
#include "load/onnx/adapt.h"

/* Replaces the attribute by an input with its list. */
static void move_ints(OnnxReader *reader, Draft *draft, const char *name, int input) {
  const Attribute *given = draft_attribute(draft, name);
  if (!given || given->kind != ATTRIBUTE_INTS) return;
  draft_set_input(reader, draft, input, draft_ints(reader, draft, given->count, given->ints));
  draft_drop(draft, name);
}

/* Is the number one of the type? To a float it is rounded. */
static bool is_of_type(double number, DType dtype) {
  const DTypeInfo *type = dtype_info(dtype);
  if (type->kind == DTYPE_FLOAT) return true;
  double end = type->kind == DTYPE_BOOL ? 2 : ldexp(1, type->bits - (type->kind == DTYPE_SIGNED));
  return number >= (double)dtype_min(dtype) && number < end && number == trunc(number);
}

/* The number in the type of input 0; of an input of a body, which only the node around it tells, by a node. */
static Value *number_like(OnnxReader *reader, const Draft *draft, DType dtype, double number) {
  if (dtype != RNNCC_NONE) return draft_number(reader, draft, dtype, number);
  Value *operands[] = {draft_number(reader, draft, RNNCC_F32, number), draft->inputs[0]};
  return draft_node(reader, draft, "CastLike", 2, operands);
}

/* The number as an input, of the type of input 0, in place of the attribute. False after an error. */
static bool move_number(OnnxReader *reader, Draft *draft, const char *name, int input) {
  const Attribute *given = draft_attribute(draft, name);
  if (!given || given->kind != ATTRIBUTE_FLOAT || !draft_input(draft, 0)) return true;
  DType dtype = draft_dtype(reader, draft, draft->inputs[0]);
  if (dtype != RNNCC_NONE && !is_of_type(given->f, dtype)) {
    error_at(draft->where, EXIT_INVALID, "expected a value of type %s as `%s`, found %g", dtype_name(dtype), name,
             given->f);
    return false;
  }
  draft_set_input(reader, draft, input, number_like(reader, draft, dtype, given->f));
  draft_drop(draft, name);
  return true;
}

bool adapt_clip(OnnxReader *reader, Draft *draft) {
  return move_number(reader, draft, "min", 1) && move_number(reader, draft, "max", 2);
}

/* Opset 1 calls the pads `paddings`. */
bool adapt_pad(OnnxReader *reader, Draft *draft) {
  move_ints(reader, draft, "paddings", 1);
  move_ints(reader, draft, "pads", 1);
  return move_number(reader, draft, "value", 2);
}

bool adapt_top_k(OnnxReader *reader, Draft *draft) {
  const Attribute *given = draft_attribute(draft, "k");
  if (!given || given->kind != ATTRIBUTE_INT) return true;
  draft_set_input(reader, draft, 1, draft_ints(reader, draft, 1, &given->i));
  draft_drop(draft, "k");
  return true;
}

bool adapt_reshape(OnnxReader *reader, Draft *draft) {
  move_ints(reader, draft, "shape", 1);
  return true;
}

/* Opset 17 counts the axis from the start, and takes axis 1 if none is given. */
bool adapt_dft(OnnxReader *reader, Draft *draft) {
  int64_t axis = draft_int(draft, "axis", 1);
  draft_drop(draft, "axis");
  Value *number = draft_ints(reader, draft, 1, &axis);
  number->rank = 0;
  draft_set_input(reader, draft, 2, number);
  return true;
}

void draft_cast_onto(OnnxReader *reader, const Draft *draft, Value *value, DType dtype, Value *output) {
  const Attribute to = {.name = "to", .kind = ATTRIBUTE_STRING, .s = dtype_name(dtype)};
  draft_node_with(reader, draft, "Cast", 1, &value, 1, &to, output);
}

Value *draft_cast(OnnxReader *reader, const Draft *draft, Value *value, DType dtype) {
  Value *output = graph_value(draft->scope->graph, draft->name, draft->where);
  draft_cast_onto(reader, draft, value, dtype, output);
  return output;
}

/* Are all numbers of the constant small enough for each type of floats? */
static bool fits_floats(const Value *value) {
  if (!value->data) return false;
  for (int64_t i = 0, count = value_count(value); i < count; i++)
    if (!(fabs(value_element(value, i)) <= 0x1p8)) return false;
  return true;
}

/* The exponent may be of another type; the result has the base's. Powers of integers stay as they are. Where the base's
 * type may not hold the exponent, an integer, the power is taken in f64. */
bool adapt_pow(OnnxReader *reader, Draft *draft) {
  Value *base = draft_input(draft, 0), *exponent = draft_input(draft, 1);
  if (!base || !exponent || draft->n_outputs != 1 || !draft->outputs[0]) return true;
  DType result = draft_dtype(reader, draft, base), other = draft_dtype(reader, draft, exponent);
  if (result == RNNCC_NONE || other == RNNCC_NONE || result == other || !dtype_is_float(result)) return true;
  if (dtype_is_float(other) || fits_floats(exponent)) {
    draft_set_input(reader, draft, 1, draft_cast(reader, draft, exponent, result));
    return true;
  }
  Value *output = draft_take_output(draft, 0);
  draft_set_input(reader, draft, 0, draft_cast(reader, draft, base, RNNCC_F64));
  draft_set_input(reader, draft, 1, draft_cast(reader, draft, exponent, RNNCC_F64));
  draft_cast_onto(reader, draft, draft->outputs[0], result, output);
  return true;
}

/* Opset 1 numbers the type or, as text, names it in capitals; our names are those of the format. */
bool adapt_cast(OnnxReader *reader, Draft *draft) {
  static const struct {
    const char *onnx, *ours;
  } NAMES[] = {
#define DTYPE(id, code, type, text, bits, kind, use, safetensors, onnx, name, ...) {name, text},
#include "dtypes.def"
  };
  const Attribute *to = draft_attribute(draft, "to");
  if (!to || to->kind != ATTRIBUTE_STRING) return true;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strcmp(NAMES[i].onnx, to->s) != 0) continue;
    draft_set_string(reader, draft, "to", NAMES[i].ours);
    return true;
  }
  unsupported_add(&reader->unsupported, draft->name, "Cast to \"%.40s\"", to->s);
  return false;
}
