/* SPDX-License-Identifier: MIT */
/* Attributes of a node: given ones, else defaults of the op's row. */
#include "ir/attribute.h"

#include <string.h>

#include "ir/op.h"

static const char *const names[N_ATTRIBUTES] = {
#define ATTRIBUTE(name) [ATTR_##name] = #name,
#include "ir/ops.def"
};

const char *attribute_name(AttributeName name) { return names[name]; }

AttributeName attribute_find(const char *name) {
  for (int id = ATTR_NONE + 1; id < N_ATTRIBUTES; id++)
    if (!strcmp(names[id], name)) return (AttributeName)id;
  return ATTR_NONE;
}

static const char *const kind_words[] = {
    [ATTRIBUTE_INT] = "an integer",
    [ATTRIBUTE_FLOAT] = "a number",
    [ATTRIBUTE_STRING] = "a string",
    [ATTRIBUTE_INTS] = "a list of integers",
    [ATTRIBUTE_FLOATS] = "a list of numbers",
    [ATTRIBUTE_STRINGS] = "a list of strings",
    [ATTRIBUTE_TENSOR] = "a tensor",
    [ATTRIBUTE_GRAPH] = "a graph",
    [ATTRIBUTE_WORD] = "a string",
    [ATTRIBUTE_TYPE] = "an element type",
};

const char *attribute_kind_words(AttributeKind kind) { return kind_words[kind]; }

const AttributeSpec *op_attribute(const OpInfo *op, AttributeName name) {
  for (const AttributeSpec *spec = op->attributes; spec->id; spec++)
    if (spec->id == name) return spec;
  return NULL;
}

bool op_has_attribute(const OpInfo *op, AttributeName name) { return op_attribute(op, name) != NULL; }

int attribute_word(const AttributeSpec *spec, const char *word) {
  for (int i = 0; spec->words[i]; i++)
    if (!strcmp(spec->words[i], word)) return i;
  return -1;
}

static void settle_word(const AttributeSpec *spec, Attribute *attribute) {
  if (!attribute->s) attribute->s = spec->words[attribute->i];
  int place = attribute_word(spec, attribute->s);
  if (place < 0) return;
  attribute->kind = ATTRIBUTE_WORD;
  attribute->i = place;
}

static void settle_type(Attribute *attribute) {
  if (!attribute->s) attribute->s = dtype_name((DType)attribute->i);
  attribute->kind = ATTRIBUTE_TYPE;
  attribute->i = dtype_from_name(attribute->s);
}

void attribute_settle(const OpInfo *op, Attribute *attribute) {
  if (!attribute->id) attribute->id = attribute_find(attribute->name);
  if (!attribute->name) attribute->name = names[attribute->id];
  const AttributeSpec *spec = op_attribute(op, attribute->id);
  bool text =
      attribute->kind == ATTRIBUTE_STRING || attribute->kind == ATTRIBUTE_WORD || attribute->kind == ATTRIBUTE_TYPE;
  if (text && spec && spec->kind == ATTRIBUTE_WORD) settle_word(spec, attribute);
  if (text && spec && spec->kind == ATTRIBUTE_TYPE) settle_type(attribute);
}

const Attribute *node_attribute(const Node *node, AttributeName name) {
  for (int i = 0; i < node->n_attributes; i++)
    if (node->attributes[i].id == name) return &node->attributes[i];
  return NULL;
}

bool node_has(const Node *node, AttributeName name) { return node_attribute(node, name) != NULL; }

/* The row's spec of an attribute that a pass reads; bug() if there is none of that kind. */
static const AttributeSpec *spec_of(const Node *node, AttributeName name, AttributeKind kind) {
  const AttributeSpec *spec = op_attribute(node->op, name);
  if (!spec) bug("%s has no attribute %s", node->op->name, names[name]);
  if (spec->kind != kind) bug("%s.%s is of another kind", node->op->name, names[name]);
  return spec;
}

static const AttributeSpec *default_of(const Node *node, AttributeName name, AttributeKind kind) {
  const AttributeSpec *spec = spec_of(node, name, kind);
  if (!spec->has_default) bug("%s.%s has no default", node->op->name, names[name]);
  return spec;
}

int64_t node_int(const Node *node, AttributeName name) {
  const Attribute *given = node_attribute(node, name);
  return given ? given->i : default_of(node, name, ATTRIBUTE_INT)->i;
}

double node_float(const Node *node, AttributeName name) {
  const Attribute *given = node_attribute(node, name);
  if (given) return given->kind == ATTRIBUTE_INT ? (double)given->i : given->f;
  return default_of(node, name, ATTRIBUTE_FLOAT)->f;
}

const char *node_string(const Node *node, AttributeName name) {
  const Attribute *given = node_attribute(node, name);
  if (given) return given->s;
  return default_of(node, name, ATTRIBUTE_WORD)->words[0];
}

int node_word(const Node *node, AttributeName name) {
  const Attribute *given = node_attribute(node, name);
  spec_of(node, name, ATTRIBUTE_WORD);
  return given ? (int)given->i : 0;
}

DType node_dtype(const Node *node, AttributeName name) {
  const Attribute *given = node_attribute(node, name);
  spec_of(node, name, ATTRIBUTE_TYPE);
  return given ? (DType)given->i : RNNCC_NONE;
}
