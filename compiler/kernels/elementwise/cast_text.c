/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/cast_text.h"

#include "ir/op.h"
#include "small_float.h"
#include "support/text.h"

static bool is_narrow_integer(DType dtype) { return dtype_is_integer(dtype) && dtype_info(dtype)->bits < 8; }

static bool is_small_float(DType dtype) { return dtype_is_coded(dtype) && dtype_is_moved(dtype); }

DType cast_between(DType dtype) {
  if (dtype_is_coded(dtype)) return RNNCC_F32;
  return is_narrow_integer(dtype) ? RNNCC_I32 : dtype;
}

/* "signed_bits(x, 4)" */
static const char *lowest_bits(Arena *arena, DType dtype, const char *x) {
  const DTypeInfo *type = dtype_info(dtype);
  return arena_format(arena, "%s_bits(%s, %d)", type->kind == DTYPE_SIGNED ? "signed" : "unsigned", x, type->bits);
}

const char *cast_decoded(Arena *arena, DType dtype, const char *element) {
  if (is_narrow_integer(dtype)) return lowest_bits(arena, dtype, element);
  if (!dtype_is_coded(dtype)) return element;
  if (is_small_float(dtype) && dtype != RNNCC_F8E8M0)
    return arena_format(arena, "small_to_f32(%s, &%s)", element, dtype_name(dtype));
  return arena_format(arena, "%s_to_f32(%s)", dtype_name(dtype), element);
}

static int power_rounding(const Node *node) {
  static const int ROUNDING[] = {[POWERS_up] = POWER_UP, [POWERS_down] = POWER_DOWN, [POWERS_nearest] = POWER_NEAREST};
  return ROUNDING[node_word(node, ATTR_round_mode)];
}

const char *cast_encoded(Arena *arena, const Node *node, const char *number) {
  DType to = node->outputs[0]->dtype;
  bool wide = node->inputs[0]->dtype == RNNCC_F64, saturate = node_int(node, ATTR_saturate) != 0;
  if (is_narrow_integer(to)) return lowest_bits(arena, to, number);
  if (!dtype_is_coded(to)) return number;
  const char *name = dtype_name(to);
  if (to == RNNCC_BF16 && !wide && dtype_is_integer(node->inputs[0]->dtype))
    return arena_format(arena, "f64_to_bf16((double)%s)", number); /* which f32 would round before */
  if (!is_small_float(to))
    return wide ? arena_format(arena, "f64_to_%s(%s)", name, number)
                : arena_format(arena, "f32_to_%s((float)%s)", name, number);
  const char *single = arena_format(arena, wide ? "f64_to_odd_f32(%s)" : "(float)%s", number);
  return to == RNNCC_F8E8M0 ? arena_format(arena, "f32_to_f8e8m0(%s, %d, %d)", single, saturate, power_rounding(node))
                            : arena_format(arena, "f32_to_small(%s, &%s, %d)", single, name, saturate);
}
