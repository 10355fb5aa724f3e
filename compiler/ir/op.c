/* SPDX-License-Identifier: MIT */
/* The rows of ops.def, and the sets of words of their attributes. */
#include "ir/op.h"

#include <string.h>

#include "ir/family.h"
#include "support/closest.h"

#define family_NONE (*(const KernelFamily *)NULL) /* its address, all that is asked of it, is NULL */

#define OP(name, in_min, in_max, out_min, out_max, types, layout, shape_rule, reference_kernel, ...)                   \
  ShapeRule shape_rule;                                                                                                \
  ReferenceKernel reference_kernel;
#include "ir/ops.def"

#define WORD(prefix, word) #word,
#define WORD_SPELT(prefix, word, text) text,
#define WORDS(set, words) static const char *const words_##set[] = {words NULL};
#include "ir/ops.def"
#undef WORD_SPELT
#undef WORD

static const bool draws[N_OPS] = {
#define DRAW(name, ...) [OP_##name] = true,
#include "ir/ops.def"
};

/* ---- types ---- */

enum { T = 1, A, B, D, E, F, I, J, L, R, S, X, Y, Z };
_Static_assert(Z <= MAX_TYPE_VARIABLES, "variables of types");

enum { USE_COMPUTED, USE_STORED, USE_MOVED };

enum {
#define DTYPE(id, ...) id = 1 << RNNCC_##id,
#include "dtypes.def"
  SIGNED = 0
#define DTYPE(id, code, type, text, bits, kind, ...) | (DTYPE_##kind == DTYPE_SIGNED && (bits) >= 8) << RNNCC_##id
#include "dtypes.def"
  ,
  UNSIGNED = 0
#define DTYPE(id, code, type, text, bits, kind, ...) | (DTYPE_##kind == DTYPE_UNSIGNED && (bits) >= 8) << RNNCC_##id
#include "dtypes.def"
  ,
  INTEGER = SIGNED | UNSIGNED,
  ANY = 0
#define DTYPE(id, ...) | id
#include "dtypes.def"
  ,
  MOVED = 0
#define DTYPE(id, code, type, text, bits, kind, use, ...) | (USE_##use == USE_MOVED) << RNNCC_##id
#include "dtypes.def"
  ,
  QUANTISED = (MOVED & ~F8E8M0)
#define DTYPE(id, code, type, text, bits, ...) | (INTEGER & id && (bits) <= 16 ? id : 0)
#include "dtypes.def"
      ,
  WIDE = ANY & ~MOVED
};

#define MAY(variable) (SLOT_OPTIONAL + (variable))
#define ONLY(type) (SLOT_FIXED + RNNCC_##type)
#define BODY SLOT_BODY
#define SET_TYPES(...) {__VA_ARGS__}

/* ---- attributes and the rows ---- */

#define INT(name, value) {.id = ATTR_##name, .kind = ATTRIBUTE_INT, .has_default = true, .i = (value)},
#define FLOAT(name, value) {.id = ATTR_##name, .kind = ATTRIBUTE_FLOAT, .has_default = true, .f = (value)},
#define ONE_OF(name, set) {.id = ATTR_##name, .kind = ATTRIBUTE_WORD, .has_default = true, .words = words_##set},
#define OPTIONAL(of, name) {.id = ATTR_##name, .kind = ATTRIBUTE_##of},
#define REQUIRED(of, name) {.id = ATTR_##name, .kind = ATTRIBUTE_##of, .required = true},

#define OP(op, in_min, in_max, out_min, out_max, types_, layout_, shape_rule, reference_kernel, runs, ...)             \
  {.kind = OP_##op,                                                                                                    \
   .name = #op,                                                                                                        \
   .min_inputs = in_min,                                                                                               \
   .max_inputs = in_max,                                                                                               \
   .min_outputs = out_min,                                                                                             \
   .max_outputs = out_max,                                                                                             \
   .attributes = (const AttributeSpec[]){__VA_ARGS__{0}},                                                              \
   .types = SET_##types_,                                                                                              \
   .layout = LAYOUT_##layout_,                                                                                         \
   .shape = shape_rule,                                                                                                \
   .reference = reference_kernel,                                                                                      \
   .family = &family_##runs},
static const OpInfo ops[] = {
#include "ir/ops.def"
};
enum { N_ROWS = sizeof ops / sizeof *ops };

const OpInfo *op_at(int index) { return index >= 0 && index < N_ROWS ? &ops[index] : NULL; }
const OpInfo *op_info(OpKind kind) { return &ops[kind]; }
bool is_op(const Node *node, OpKind kind) { return node && node->op->kind == kind; }

const OpInfo *op_find(const char *name) {
  for (int i = 0; i < N_ROWS; i++)
    if (!strcmp(ops[i].name, name)) return &ops[i];
  return NULL;
}

const char *op_closest(const char *name) {
  Closest closest = closest_to(name);
  for (int i = 0; i < N_ROWS; i++) closest_try(&closest, ops[i].name);
  return closest.best;
}

bool op_is_view(const OpInfo *op) { return op->reference == ref_view; }
bool op_is_reduction(const OpInfo *op) { return op->shape == shape_reduce; }
bool op_is_global_pool(const OpInfo *op) { return op->shape == shape_global_pool; }
bool op_is_arg(const OpInfo *op) { return op->shape == shape_arg; }
bool op_draws(const OpInfo *op) { return draws[op->kind]; }
bool op_is_expanded(const OpInfo *op) { return op->reference == ref_expanded; }
