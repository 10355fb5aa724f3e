/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/elementwise.h"

#include <ctype.h>
#include <string.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "kernels/elementwise/cast_text.h"
#include "kernels/elementwise/whole_numbers.h"
#include "support/text.h"

/* The text of an op for each kind of operands; NULL: none. */
typedef struct Texts {
  const char *vector, *mask, *f64, *scalar;
} Texts;

typedef enum TextRow {
  TEXT_NONE,
#define OPERATOR(op, ...) TEXT_##op,
#define VARIANT(name, ...) TEXT_##name,
#include "kernels/elementwise/elementwise_ops.def"
#undef OPERATOR
#undef VARIANT
} TextRow;

static const Texts texts[] = {
#define OPERATOR(op, ...) [TEXT_##op] = {__VA_ARGS__},
#define VARIANT(name, ...) [TEXT_##name] = {__VA_ARGS__},
#include "kernels/elementwise/elementwise_ops.def"
#undef OPERATOR
#undef VARIANT
};

static const TextRow own_rows[N_OPS] = {
#define OPERATOR(op, ...) [OP_##op] = TEXT_##op,
#define VARIANT(name, ...)
#include "kernels/elementwise/elementwise_ops.def"
#undef OPERATOR
#undef VARIANT
};

/* ---- the row of the table ---- */

static bool has_input(const Node *node, int index) {
  return index < node_own_inputs(node) && node->inputs[index] != NULL;
}

static TextRow clip_variant(const Node *node) {
  if (has_input(node, 1)) return has_input(node, 2) ? TEXT_ClipBoth : TEXT_ClipLow;
  return has_input(node, 2) ? TEXT_ClipHigh : TEXT_Copy;
}

/* Of the numbers, which cast_text.c decodes and encodes. x86 CPUs convert floats to i32 or i64; narrower types take the
 * lowest bytes. */
static TextRow cast_variant(const Node *node) {
  DType from = cast_between(node->inputs[0]->dtype), to = cast_between(node->outputs[0]->dtype);
  if (from == to) return TEXT_Copy;
  if (to == RNNCC_BOOL) return TEXT_CastToBool;
  if (!dtype_is_float(from) || dtype_is_float(to)) return TEXT_Copy;
  bool twice = from == RNNCC_F64;
  if (to == RNNCC_U64) return twice ? TEXT_CastF64ToU64 : TEXT_CastF32ToU64;
  if (to == RNNCC_I64 || to == RNNCC_U32) return twice ? TEXT_CastF64ToI64 : TEXT_CastF32ToI64;
  return twice ? TEXT_CastF64ToI32 : TEXT_CastF32ToI32;
}

static TextRow pow_variant(const Node *node) {
  DType base = node->inputs[0]->dtype, exponent = node->inputs[1]->dtype;
  if (exponent == RNNCC_F64 && base != RNNCC_F64) return TEXT_PowToF64;
  return exponent == RNNCC_U64 ? TEXT_PowUnsigned : TEXT_Pow;
}

static TextRow is_inf_variant(const Node *node) {
  if (node_int(node, ATTR_detect_positive))
    return node_int(node, ATTR_detect_negative) ? TEXT_IsInf : TEXT_IsPositiveInf;
  return node_int(node, ATTR_detect_negative) ? TEXT_IsNegativeInf : TEXT_IsNoInf;
}

static TextRow shift_variant(const Node *node) {
  if (node_word(node, ATTR_direction) == SHIFT_LEFT) return TEXT_ShiftLeft;
  return dtype_info(node->inputs[0]->dtype)->kind == DTYPE_SIGNED ? TEXT_ShiftRightSigned : TEXT_ShiftRight;
}

static TextRow row_of(const Node *node) {
  if (node->op->max_inputs < 0 && !has_input(node, 1)) return TEXT_Copy;
  switch (node->op->kind) {
  case OP_BitShift:
    return shift_variant(node);
  case OP_Cast:
    return cast_variant(node);
  case OP_Clip:
    return clip_variant(node);
  case OP_Gelu:
    return node_word(node, ATTR_approximate) == GELU_tanh ? TEXT_GeluTanh : TEXT_Gelu;
  case OP_IsInf:
    return is_inf_variant(node);
  case OP_Mod:
    return node_int(node, ATTR_fmod) ? TEXT_ModC : TEXT_Mod;
  case OP_Pow:
    return pow_variant(node);
  default:
    return own_rows[node->op->kind];
  }
}

/* ---- filling in ---- */

static size_t name_length(const char *text) {
  size_t length = 0;
  while (isalpha((unsigned char)text[length])) length++;
  return length;
}

static void add_name(Text *out, const Node *node, const char *name, const char *const *operands) {
  if (!name[1] && name[0] >= 'a' && name[0] <= 'c')
    text_add(out, "%s", operands[name[0] - 'a']);
  else
    text_float(out, (float)node_float(node, attribute_find(name)));
}

static const char *fill_in(Arena *arena, const Node *node, const char *text, const char *const *operands) {
  Text out = text_new(arena);
  while (*text) {
    size_t plain = strcspn(text, "$");
    text_bytes(&out, text, plain);
    text += plain;
    if (!*text) break;
    size_t length = name_length(++text);
    add_name(&out, node, arena_format(arena, "%.*s", (int)length, text), operands);
    text += length;
  }
  return out.data;
}

static bool converts(const Node *node) {
  return is_op(node, OP_Cast) && node->inputs[0]->dtype != node->outputs[0]->dtype;
}

/* Operands are numbered without absent ones. NULL if there is no text. */
static const char *expression(Arena *arena, const Node *node, const char *text, const char *const *inputs) {
  const char *present[3] = {NULL, NULL, NULL};
  int n = 0, own = node_own_inputs(node);
  if (!text) return NULL;
  for (int k = 0; k < own && k < 3; k++)
    if (inputs[k]) present[n++] = inputs[k];
  if (!converts(node)) return fill_in(arena, node, text, present);
  present[0] = cast_decoded(arena, node->inputs[0]->dtype, present[0]);
  return cast_encoded(arena, node, fill_in(arena, node, text, present));
}

static bool all_f32(const Node *node) {
  for (int k = 0; k < node_own_inputs(node); k++)
    if (node->inputs[k] && node->inputs[k]->dtype != RNNCC_F32) return false;
  return node->outputs[0]->dtype == RNNCC_F32;
}

bool elementwise_on_vectors(const Node *node) { return all_f32(node) && texts[row_of(node)].vector; }

const char *elementwise_vector(Arena *arena, const Node *node, const char *const *inputs) {
  return elementwise_on_vectors(node) ? expression(arena, node, texts[row_of(node)].vector, inputs) : NULL;
}

const char *elementwise_scalar(Arena *arena, const Node *node, const char *const *inputs) {
  const char *text = node->inputs[0]->dtype == RNNCC_F64 ? texts[row_of(node)].f64 : NULL;
  return expression(arena, node, text ? text : texts[row_of(node)].scalar, inputs);
}

/* ---- chains ---- */

/* In vectors f32 and 8-bit integers are floats, and bools masks. */
static bool has_vectors(const Value *value) {
  return value->dtype == RNNCC_F32 || value->dtype == RNNCC_BOOL || dtype_is_byte(value->dtype);
}

static bool all_in_vectors(const Node *node) {
  for (int k = 0; k < node_own_inputs(node); k++)
    if (node->inputs[k] && !has_vectors(node->inputs[k])) return false;
  return has_vectors(node->outputs[0]);
}

bool elementwise_of_bytes(const Node *node) {
  bool bytes = dtype_is_byte(node->outputs[0]->dtype);
  for (int k = 0; k < node_own_inputs(node); k++) bytes |= node->inputs[k] && dtype_is_byte(node->inputs[k]->dtype);
  return bytes;
}

/* Those that give floats that hold integers the same result as the integers. */
static TextRow byte_row(const Node *node) {
  static const bool alike[N_OPS] = {
      [OP_Clip] = true,        [OP_Equal] = true, [OP_Greater] = true, [OP_GreaterOrEqual] = true, [OP_Less] = true,
      [OP_LessOrEqual] = true, [OP_Max] = true,   [OP_Min] = true,     [OP_Where] = true,
  };
  if (!is_op(node, OP_Cast)) return alike[node->op->kind] ? row_of(node) : TEXT_NONE;
  if (node->outputs[0]->dtype == RNNCC_F32) return TEXT_Copy;
  return node->inputs[0]->dtype == RNNCC_F32 ? TEXT_CastToByte : TEXT_NONE;
}

static const char *byte_text(const Node *node) {
  const Texts *row = &texts[byte_row(node)];
  return row->vector ? row->vector : row->mask;
}

/* The row for masks or for vectors, by the first input. */
static TextRow mask_row(const Node *node) {
  bool from_bool = node->inputs[0]->dtype == RNNCC_BOOL, to_bool = node->outputs[0]->dtype == RNNCC_BOOL;
  if (is_op(node, OP_Where)) return to_bool ? TEXT_WhereBool : TEXT_Where;
  if (is_op(node, OP_Cast) && from_bool) return to_bool ? TEXT_NONE : TEXT_CastFromBool;
  return from_bool && is_op(node, OP_Equal) ? TEXT_NONE : row_of(node);
}

static const char *chained_text(const Node *node) {
  if (elementwise_on_vectors(node)) return texts[row_of(node)].vector;
  if (!all_in_vectors(node)) return NULL;
  return elementwise_of_bytes(node) ? byte_text(node) : texts[mask_row(node)].mask;
}

bool elementwise_chains(const Node *node) {
  if (node->n_outputs != 1 || node_own_inputs(node) > 3 || !chained_text(node)) return false;
  return !dtype_is_byte(node->outputs[0]->dtype) || !is_op(node, OP_Cast) || fits_byte(node);
}

const char *elementwise_chained(Arena *arena, const Node *node, const char *const *inputs) {
  return expression(arena, node, chained_text(node), inputs);
}

bool elementwise_is_literal(const Value *value) {
  bool number = value->dtype == RNNCC_F32 || dtype_is_byte(value->dtype);
  return value_is_known(value) && number && value_static(value) && value_count(value) == 1;
}

/* ---- epilogues ---- */

/* A constant of more axes than the first input would make the result larger. */
bool elementwise_is_epilogue(const Node *node) {
  if (!elementwise_on_vectors(node) || node_own_inputs(node) > 3) return false;
  for (int k = 1; k < node_own_inputs(node); k++) {
    const Value *input = node->inputs[k];
    if (input && (!elementwise_is_literal(input) || input->rank > node->inputs[0]->rank)) return false;
  }
  return !value_is_constant(node->inputs[0]);
}

const char *elementwise_literal(Arena *arena, const Value *value) {
  Text out = text_new(arena);
  text_add(&out, "vset(");
  text_float(&out, (float)value_element(value, 0));
  text_add(&out, ")");
  return out.data;
}

/* The node's expression of its first input `x`. */
static const char *apply_to_x(Arena *arena, const Node *node) {
  const char *inputs[3] = {"x", NULL, NULL};
  for (int k = 1; k < node_own_inputs(node); k++)
    inputs[k] = node->inputs[k] ? elementwise_literal(arena, node->inputs[k]) : NULL;
  return elementwise_vector(arena, node, inputs);
}

/* x is used more than once in many expressions, so each step gets a name. */
const char *elementwise_epilogue_body(Arena *arena, const Node *node) {
  Text out = text_new(arena);
  for (int k = 0; k < node->n_epilogue; k++) text_add(&out, "x = %s;\n  ", apply_to_x(arena, node->epilogue[k]));
  text_add(&out, "return x;");
  return out.data;
}

bool elementwise_follows(const Node *host, const Node *step) {
  (void)host;
  return elementwise_is_epilogue(step);
}

bool epilogue_begins_with_sum(const Node *node) {
  return node->n_epilogue && !elementwise_is_epilogue(node->epilogue[0]);
}

const Value *epilogue_addend(const Node *node) {
  return epilogue_begins_with_sum(node) ? node->epilogue[0]->inputs[1] : NULL;
}

const char *elementwise_epilogue(Arena *arena, const Node *node) {
  int sum = epilogue_begins_with_sum(node);
  if (node->n_epilogue == sum) return NULL;
  Node steps = {.epilogue = node->epilogue + sum, .n_epilogue = node->n_epilogue - sum};
  return elementwise_epilogue_body(arena, &steps);
}
