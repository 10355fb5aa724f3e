/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/elementwise.h"

#include <ctype.h>
#include <string.h>

#include "ir/op.h"
#include "support/diagnostics.h"
#include "support/text.h"

/* How an op is written: the kinds of rows of the table. */
typedef enum OpForm { FORM_VECTOR, FORM_MASK, FORM_DOUBLE, FORM_SCALAR } OpForm;

static const struct {
  OpForm form;
  const char *op, *text;
} TEXTS[] = {
#define VECTOR_OP(op, text) {FORM_VECTOR, op, text},
#define MASK_OP(op, text) {FORM_MASK, op, text},
#define DOUBLE_OP(op, text) {FORM_DOUBLE, op, text},
#define SCALAR_OP(op, text) {FORM_SCALAR, op, text},
#include "kernels/elementwise/elementwise_ops.def"
#undef VECTOR_OP
#undef MASK_OP
#undef DOUBLE_OP
#undef SCALAR_OP
};
enum { N_TEXTS = sizeof TEXTS / sizeof *TEXTS };

/* NULL if the op is not written so. */
static const char *find_text(OpForm form, const char *op) {
  for (int i = 0; i < N_TEXTS; i++)
    if (TEXTS[i].form == form && !strcmp(TEXTS[i].op, op)) return TEXTS[i].text;
  return NULL;
}

int elementwise_own_inputs(const Node *node) {
  int n = node->n_inputs;
  for (int k = 0; k < node->n_epilogue; k++) n -= node->epilogue[k]->n_inputs - 1;
  return n;
}

/* ---- which row of the table ---- */

static bool has_input(const Node *node, int index) {
  return index < elementwise_own_inputs(node) && node->inputs[index] != NULL;
}

static const char *clip_variant(const Node *node) {
  if (has_input(node, 1)) return has_input(node, 2) ? "ClipBoth" : "ClipLow";
  return has_input(node, 2) ? "ClipHigh" : "Copy";
}

/* f16 is read as f32. What an x86 CPU converts floats to is i32 or i64; narrower types take the lowest bytes. */
static const char *cast_variant(const Node *node) {
  DType from = node->inputs[0]->dtype, to = node->outputs[0]->dtype;
  if (from == to) return "Copy";
  if (to == RNNCC_BOOL) return "CastToBool";
  if (to == RNNCC_F16) return from == RNNCC_F64 ? "CastF64ToF16" : "CastToF16";
  if (!dtype_is_float(from) || dtype_is_float(to)) return "Copy";
  bool twice = from == RNNCC_F64;
  if (to == RNNCC_U64) return twice ? "CastF64ToU64" : "CastF32ToU64";
  if (to == RNNCC_I64 || to == RNNCC_U32) return twice ? "CastF64ToI64" : "CastF32ToI64";
  return twice ? "CastF64ToI32" : "CastF32ToI32";
}

static const char *pow_variant(const Node *node) {
  DType base = node->inputs[0]->dtype, exponent = node->inputs[1]->dtype;
  if (exponent == RNNCC_F64 && base != RNNCC_F64) return "PowToF64";
  return exponent == RNNCC_U64 ? "PowUnsigned" : "Pow";
}

static const char *is_inf_variant(const Node *node) {
  if (node_int(node, "detect_positive")) return node_int(node, "detect_negative") ? "IsInf" : "IsPositiveInf";
  return node_int(node, "detect_negative") ? "IsNegativeInf" : "IsNoInf";
}

static const char *table_name(const Node *node) {
  const char *op = node->op->name;
  if (!strcmp(op, "Clip")) return clip_variant(node);
  if (!strcmp(op, "Cast")) return cast_variant(node);
  if (!strcmp(op, "Pow")) return pow_variant(node);
  if (!strcmp(op, "BitShift")) return strcmp(node_string(node, "direction"), "LEFT") ? "ShiftRight" : "ShiftLeft";
  if (!strcmp(op, "IsInf")) return is_inf_variant(node);
  if (!strcmp(op, "Gelu")) return strcmp(node_string(node, "approximate"), "tanh") ? "Gelu" : "GeluTanh";
  if (node->op->max_inputs < 0 && !has_input(node, 1)) return "Copy";
  if (!strcmp(op, "Mod")) return node_int(node, "fmod") ? "ModC" : "Mod";
  return op;
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
    text_float(out, (float)node_float(node, name));
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

static bool reads_halves(const Node *node) {
  return !strcmp(node->op->name, "Cast") && node->inputs[0]->dtype == RNNCC_F16 && node->outputs[0]->dtype != RNNCC_F16;
}

/* The row counts operands without the absent ones. NULL if there is no row. */
static const char *expression(Arena *arena, const Node *node, const char *text, const char *const *inputs) {
  const char *present[3] = {NULL, NULL, NULL};
  int n = 0, own = elementwise_own_inputs(node);
  if (!text) return NULL;
  for (int k = 0; k < own && k < 3; k++)
    if (inputs[k]) present[n++] = inputs[k];
  if (reads_halves(node)) present[0] = arena_format(arena, "f16_to_f32(%s)", present[0]);
  return fill_in(arena, node, text, present);
}

static bool all_f32(const Node *node) {
  for (int k = 0; k < elementwise_own_inputs(node); k++)
    if (node->inputs[k] && node->inputs[k]->dtype != RNNCC_F32) return false;
  return node->outputs[0]->dtype == RNNCC_F32;
}

bool elementwise_on_vectors(const Node *node) { return all_f32(node) && find_text(FORM_VECTOR, table_name(node)); }

const char *elementwise_vector(Arena *arena, const Node *node, const char *const *inputs) {
  return elementwise_on_vectors(node) ? expression(arena, node, find_text(FORM_VECTOR, table_name(node)), inputs)
                                      : NULL;
}

const char *elementwise_scalar(Arena *arena, const Node *node, const char *const *inputs) {
  const char *text = node->inputs[0]->dtype == RNNCC_F64 ? find_text(FORM_DOUBLE, table_name(node)) : NULL;
  return expression(arena, node, text ? text : find_text(FORM_SCALAR, table_name(node)), inputs);
}

/* ---- chains ---- */

static bool all_f32_or_bool(const Node *node) {
  for (int k = 0; k < elementwise_own_inputs(node); k++) {
    const Value *input = node->inputs[k];
    if (input && input->dtype != RNNCC_F32 && input->dtype != RNNCC_BOOL) return false;
  }
  return node->outputs[0]->dtype == RNNCC_F32 || node->outputs[0]->dtype == RNNCC_BOOL;
}

/* Those of the table that take masks and those that take vectors, by their first input. */
static const char *mask_name(const Node *node) {
  bool from_bool = node->inputs[0]->dtype == RNNCC_BOOL, to_bool = node->outputs[0]->dtype == RNNCC_BOOL;
  if (!strcmp(node->op->name, "Where")) return to_bool ? "WhereBool" : "Where";
  if (!strcmp(node->op->name, "Cast") && from_bool) return to_bool ? "" : "CastFromBool";
  return from_bool && !strcmp(node->op->name, "Equal") ? "" : table_name(node);
}

static const char *chained_text(const Node *node) {
  if (elementwise_on_vectors(node)) return find_text(FORM_VECTOR, table_name(node));
  return all_f32_or_bool(node) ? find_text(FORM_MASK, mask_name(node)) : NULL;
}

bool elementwise_chains(const Node *node) {
  return node->n_outputs == 1 && elementwise_own_inputs(node) <= 3 && chained_text(node) != NULL;
}

const char *elementwise_chained(Arena *arena, const Node *node, const char *const *inputs) {
  return expression(arena, node, chained_text(node), inputs);
}

bool elementwise_is_literal(const Value *value) {
  return value_is_constant(value) && value->dtype == RNNCC_F32 && value_static(value) && value_count(value) == 1;
}

/* ---- epilogues ---- */

/* A constant of more axes than the first input would make the result larger. */
bool elementwise_is_epilogue(const Node *node) {
  if (!elementwise_on_vectors(node) || elementwise_own_inputs(node) > 3) return false;
  for (int k = 1; k < elementwise_own_inputs(node); k++) {
    const Value *input = node->inputs[k];
    if (input && (!elementwise_is_literal(input) || input->rank > node->inputs[0]->rank)) return false;
  }
  return !value_is_constant(node->inputs[0]);
}

const char *elementwise_literal(Arena *arena, const Value *value) {
  Text out = text_new(arena);
  text_add(&out, "vset(");
  text_float(&out, *(const float *)value->data);
  text_add(&out, ")");
  return out.data;
}

/* Its first input is in `x`. */
static const char *apply_to_x(Arena *arena, const Node *node) {
  const char *inputs[3] = {"x", NULL, NULL};
  for (int k = 1; k < elementwise_own_inputs(node); k++)
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
