/* SPDX-License-Identifier: MIT */
/* The rows of ops.def, and the small languages their attribute and type columns are written in. */
#include "ir/op.h"

#include <string.h>

#include "ir/family.h"
#include "support/closest.h"

#define family_NONE (*(const KernelFamily *)NULL) /* its address, all that is asked of it, is NULL */

#define OP(name, in_min, in_max, out_min, out_max, attributes, types, layout, shape_rule, reference_kernel, family)    \
  ShapeRule shape_rule;                                                                                                \
  ReferenceKernel reference_kernel;
#include "ir/ops.def"
#undef OP

#define OP(name, in_min, in_max, out_min, out_max, attributes, types, layout, shape_rule, reference_kernel, family)    \
  {OP_##name,  #name, in_min,          in_max,     out_min,          out_max,                                          \
   attributes, types, LAYOUT_##layout, shape_rule, reference_kernel, &family_##family},
static const OpInfo ops[] = {
#include "ir/ops.def"
};
#undef OP
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
bool op_is_expanded(const OpInfo *op) { return op->reference == ref_expanded; }

static const struct KindRow {
  char letter;
  const char *words;
} kind_rows[] = {
    [ATTRIBUTE_INT] = {'i', "an integer"},           [ATTRIBUTE_FLOAT] = {'f', "a number"},
    [ATTRIBUTE_STRING] = {'s', "a string"},          [ATTRIBUTE_INTS] = {'I', "a list of integers"},
    [ATTRIBUTE_FLOATS] = {'F', "a list of numbers"}, [ATTRIBUTE_STRINGS] = {'S', "a list of strings"},
    [ATTRIBUTE_TENSOR] = {'t', "a tensor"},          [ATTRIBUTE_GRAPH] = {'g', "a graph"},
};
enum { N_KINDS = sizeof kind_rows / sizeof *kind_rows };

const char *attribute_kind_words(AttributeKind kind) { return kind_rows[kind].words; }

static AttributeKind kind_of_letter(char letter) {
  for (int kind = 0; kind < N_KINDS; kind++)
    if (kind_rows[kind].letter == letter) return (AttributeKind)kind;
  bug("ops.def: attribute kind '%c'", letter);
}

bool op_next_attribute(const OpInfo *op, int *position, AttributeSpec *spec) {
  const char *word = op->attributes + *position;
  word += strspn(word, " ");
  if (!*word) return false;
  int length = (int)strcspn(word, " ");
  int name_length = (int)strcspn(word, ":");
  if (name_length + 1 >= length || (size_t)name_length >= sizeof spec->name) bug("ops.def: attributes of %s", op->name);
  *spec = (AttributeSpec){.kind = kind_of_letter(word[name_length + 1])};
  memcpy(spec->name, word, (size_t)name_length);
  const char *rest = word + name_length + 2;
  spec->required = *rest == '!';
  spec->has_default = *rest == '=';
  spec->text = spec->has_default ? rest + 1 : "";
  spec->text_length = spec->has_default ? (int)(word + length - spec->text) : 0;
  *position = (int)(word + length - op->attributes);
  return true;
}

bool op_find_attribute(const OpInfo *op, const char *name, AttributeSpec *spec) {
  for (int position = 0; op_next_attribute(op, &position, spec);)
    if (!strcmp(spec->name, name)) return true;
  return false;
}
