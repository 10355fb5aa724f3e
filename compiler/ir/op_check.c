/* SPDX-License-Identifier: MIT */
/* Does a node fit its op's row? Every mistake is reported, with what was expected. */
#include <stdio.h>
#include <string.h>

#include "ir/op.h"
#include "support/closest.h"

static bool check_count(const Node *node, const char *what, int found, int least, int most) {
  if (found >= least && (most < 0 || found <= most)) return true;
  Location where = node->where;
  const char *s = least == 1 ? "" : "s";
  if (most < 0)
    error_at(where, EXIT_INVALID, "%s needs at least %d %s%s, found %d", node->op->name, least, what, s, found);
  else if (least == most)
    error_at(where, EXIT_INVALID, "%s has exactly %d %s%s, found %d", node->op->name, least, what, s, found);
  else
    error_at(where, EXIT_INVALID, "%s has %d to %d %ss, found %d", node->op->name, least, most, what, found);
  return false;
}

/* The slot of input or output `index`. */
static TypeSlot slot_at(const TypeSlot *slots, int index) {
  int last = 0;
  while (last < index && slots[last + 1]) last++;
  return slots[last];
}

static bool is_optional(const OpInfo *op, int input) { return slot_at(op->types.inputs, input) & SLOT_OPTIONAL; }

bool op_needs_output(const OpInfo *op, int output, int count) {
  return output < op->min_outputs || (op->max_outputs < 0 && output < count);
}

static bool check_present(const Node *node) {
  bool good = true;
  int needed = node->op->max_inputs < 0 ? node->n_inputs : node->op->min_inputs;
  for (int i = 0; i < needed && i < node->n_inputs; i++) {
    if (node->inputs[i] || is_optional(node->op, i)) continue;
    error_at(node->where, EXIT_INVALID, "input %d of %s is absent (\"\"), but it is required", i, node->op->name);
    good = false;
  }
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] || !op_needs_output(node->op, i, node->n_outputs)) continue;
    error_at(node->where, EXIT_INVALID, "output %d of %s is absent (\"\"), but it is required", i, node->op->name);
    good = false;
  }
  return good;
}

void op_list_attributes(const OpInfo *op, char *text, size_t bytes) {
  text[0] = 0;
  for (const AttributeSpec *spec = op->attributes; spec->id; spec++) {
    size_t length = strlen(text);
    snprintf(text + length, bytes - length, "%s%s", length ? ", " : "", attribute_name(spec->id));
  }
}

/* The attribute's name that was probably meant; NULL if none is near. */
static const char *closest_attribute(const OpInfo *op, const char *name) {
  Closest closest = closest_to(name);
  for (const AttributeSpec *spec = op->attributes; spec->id; spec++) closest_try(&closest, attribute_name(spec->id));
  return closest.best;
}

static bool unknown_attribute(const Node *node, const Attribute *attribute) {
  char known[512];
  const char *closest = closest_attribute(node->op, attribute->name);
  op_list_attributes(node->op, known, sizeof known);
  if (!known[0])
    error_at(attribute->where, EXIT_UNSUPPORTED, "%s has no attributes, found `%.80s`", node->op->name,
             attribute->name);
  else if (closest)
    error_at(attribute->where, EXIT_UNSUPPORTED, "%s has no attribute `%.80s`; did you mean `%s`? It has: %s",
             node->op->name, attribute->name, closest, known);
  else
    error_at(attribute->where, EXIT_UNSUPPORTED, "%s has no attribute `%.80s`; it has: %s", node->op->name,
             attribute->name, known);
  return false;
}

static bool is_list(AttributeKind kind) {
  return kind == ATTRIBUTE_INTS || kind == ATTRIBUTE_FLOATS || kind == ATTRIBUTE_STRINGS;
}

static bool kind_fits(const Attribute *attribute, AttributeKind wanted) {
  if (attribute->kind == wanted) return true;
  if (wanted == ATTRIBUTE_FLOAT) return attribute->kind == ATTRIBUTE_INT;
  if (wanted == ATTRIBUTE_WORD) return attribute->kind == ATTRIBUTE_STRING;
  return is_list(wanted) && is_list(attribute->kind) && attribute->count == 0;
}

void op_list_words(const AttributeSpec *spec, char *text, size_t bytes) {
  text[0] = 0;
  for (int i = 0; spec->words[i]; i++) {
    size_t length = strlen(text);
    snprintf(text + length, bytes - length, "%s%s", i ? "|" : "", spec->words[i]);
  }
}

static bool check_attribute(const Node *node, const Attribute *attribute) {
  const AttributeSpec *spec = op_attribute(node->op, attribute->id);
  if (!spec) return unknown_attribute(node, attribute);
  if (!kind_fits(attribute, spec->kind)) {
    error_at(attribute->where, EXIT_INVALID, "`%s` of %s must be %s, found %s", attribute->name, node->op->name,
             attribute_kind_words(spec->kind), attribute_kind_words(attribute->kind));
    return false;
  }
  if (spec->kind == ATTRIBUTE_WORD && attribute->kind != ATTRIBUTE_WORD) {
    char words[256];
    op_list_words(spec, words, sizeof words);
    error_at(attribute->where, EXIT_INVALID, "`%s` of %s is \"%.80s\"; it must be one of %s", attribute->name,
             node->op->name, attribute->s, words);
    return false;
  }
  return true;
}

static bool given_before(const Node *node, const Attribute *attribute) {
  for (const Attribute *other = node->attributes; other < attribute; other++)
    if (!strcmp(other->name, attribute->name)) return true;
  return false;
}

static bool check_attributes(const Node *node) {
  bool good = true;
  for (int i = 0; i < node->n_attributes; i++) {
    const Attribute *attribute = &node->attributes[i];
    good &= check_attribute(node, attribute);
    if (!given_before(node, attribute)) continue;
    error_at(attribute->where, EXIT_INVALID, "`%s` is given twice", attribute->name);
    good = false;
  }
  for (const AttributeSpec *spec = node->op->attributes; spec->id; spec++) {
    if (!spec->required || node_has(node, spec->id)) continue;
    error_at(node->where, EXIT_INVALID, "%s needs the attribute `%s`, %s", node->op->name, attribute_name(spec->id),
             attribute_kind_words(spec->kind));
    good = false;
  }
  return good;
}

bool op_check_node(Node *node) {
  for (int i = 0; i < node->n_attributes; i++) attribute_settle(node->op, &node->attributes[i]);

  const OpInfo *op = node->op;
  bool good = check_count(node, "input", node->n_inputs, op->min_inputs, op->max_inputs);
  good &= check_count(node, "output", node->n_outputs, op->min_outputs, op->max_outputs);
  good &= check_present(node);
  good &= check_attributes(node);
  return good;
}

static bool is_in(TypeSet types, DType dtype) { return types >> dtype & 1; }

/* A type that is only stored is taken wherever f32 is: legalize_types puts Casts around the node. */
static bool type_allowed(TypeSet types, DType dtype) {
  return is_in(types, dtype) || (dtype_is_stored(dtype) && is_in(types, RNNCC_F32));
}

/* "f64,f32" */
static void list_types(TypeSet types, char *text, size_t bytes) {
  text[0] = 0;
  for (const DType *type = all_dtypes; *type; type++) {
    size_t used = strlen(text);
    if (is_in(types, *type)) snprintf(text + used, bytes - used, "%s%s", used ? "," : "", dtype_name(*type));
  }
}

/* The first input of each type variable settles what the others must be. */
typedef struct Bindings {
  int input[MAX_TYPE_VARIABLES + 1];     /* index + 1; 0: not bound yet */
  DType refused[MAX_TYPE_VARIABLES + 1]; /* that is told once; RNNCC_NONE: none was */
} Bindings;

static bool check_type(const Node *node, int input, int variable, Bindings *bindings) {
  const Value *value = node->inputs[input];
  TypeSet types = node->op->types.variables[variable];
  if (!type_allowed(types, value->dtype)) {
    if (bindings->refused[variable] == value->dtype) return false;
    bindings->refused[variable] = value->dtype;
    char listed[256];
    list_types(types, listed, sizeof listed);
    error_at(node->where, EXIT_UNSUPPORTED, "input %d of %s (`%s`) is %s; it may be %s", input, node->op->name,
             value->name, dtype_name(value->dtype), listed);
    return false;
  }
  int *bound = &bindings->input[variable];
  if (!*bound) *bound = input + 1;
  const Value *first = node->inputs[*bound - 1];
  if (first->dtype == value->dtype) return true;
  error_at(node->where, EXIT_INVALID, "inputs %d and %d of %s must have one type, found %s (`%s`) and %s (`%s`)",
           *bound - 1, input, node->op->name, dtype_name(first->dtype), first->name, dtype_name(value->dtype),
           value->name);
  return false;
}

static int variable_of(const Node *node, int input) { return slot_at(node->op->types.inputs, input) & ~SLOT_OPTIONAL; }

bool op_check_types(const Node *node) {
  Bindings bindings = {{0}, {0}};
  bool good = true;
  for (int i = 0; i < node->n_inputs; i++) {
    int variable = variable_of(node, i);
    if (node->inputs[i] && variable != SLOT_BODY) good &= check_type(node, i, variable, &bindings);
  }
  return good;
}

bool op_lists_type(const Node *node, int input) {
  int variable = variable_of(node, input);
  return variable != SLOT_BODY && is_in(node->op->types.variables[variable], node->inputs[input]->dtype);
}

static DType type_of_variable(const Node *node, int variable) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && variable_of(node, i) == variable) return node->inputs[i]->dtype;
  bug("ops.def: %s has no input of an output's type", node->op->name);
}

void op_set_output_types(Node *node) {
  for (int i = 0; i < node->n_outputs; i++) {
    TypeSlot slot = slot_at(node->op->types.outputs, i);
    if (!node->outputs[i] || slot == SLOT_BODY) continue;
    node->outputs[i]->dtype = slot & SLOT_FIXED ? (DType)(slot - SLOT_FIXED) : type_of_variable(node, slot);
  }
}
