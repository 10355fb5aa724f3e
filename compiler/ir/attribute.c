/* SPDX-License-Identifier: MIT */
/* Attributes of a node: what was given, else what the op's row says. */
#include <stdlib.h>
#include <string.h>

#include "ir/op.h"

const Attribute *node_attribute(const Node *node, const char *name) {
  for (int i = 0; i < node->n_attributes; i++)
    if (!strcmp(node->attributes[i].name, name)) return &node->attributes[i];
  return NULL;
}

bool node_has(const Node *node, const char *name) { return node_attribute(node, name) != NULL; }

/* The row's spec of an attribute that the compiler itself asks for, of the kind it asks for. */
static AttributeSpec spec_of(const Node *node, const char *name, AttributeKind kind) {
  AttributeSpec spec;
  if (!op_find_attribute(node->op, name, &spec)) bug("%s has no attribute %s", node->op->name, name);
  if (spec.kind != kind) bug("%s.%s is of another kind", node->op->name, name);
  return spec;
}

/* The default's text, NUL-terminated into `text`: of alternatives, the first. */
static const char *default_text(const Node *node, const char *name, AttributeKind kind, char text[64]) {
  AttributeSpec spec = spec_of(node, name, kind);
  if (!spec.has_default) bug("%s.%s has no default", node->op->name, name);
  int length = 0;
  while (length < spec.text_length && length < 63 && spec.text[length] != '|') length++;
  memcpy(text, spec.text, (size_t)length);
  text[length] = 0;
  return text;
}

int64_t node_int(const Node *node, const char *name) {
  const Attribute *given = node_attribute(node, name);
  if (given) return given->i;
  char text[64];
  return strtoll(default_text(node, name, ATTRIBUTE_INT, text), NULL, 10);
}

double node_float(const Node *node, const char *name) {
  const Attribute *given = node_attribute(node, name);
  if (given) return given->kind == ATTRIBUTE_INT ? (double)given->i : given->f;
  char text[64];
  return strtod(default_text(node, name, ATTRIBUTE_FLOAT, text), NULL);
}

/* The row's text is not terminated; these are its defaults that are. */
static const char *const default_strings[] = {
    "DCR",        "LEFT",   "NOTSET",  "avg",  "constant",           "forward",
    "half_pixel", "linear", "nearest", "none", "round_prefer_floor", "stretch",
    "zeros"};

const char *node_string(const Node *node, const char *name) {
  const Attribute *given = node_attribute(node, name);
  if (given) return given->s;
  char text[64];
  default_text(node, name, ATTRIBUTE_STRING, text);
  for (size_t i = 0; i < sizeof default_strings / sizeof *default_strings; i++)
    if (!strcmp(default_strings[i], text)) return default_strings[i];
  bug("%s.%s: default %s is missing in attribute.c", node->op->name, name, text);
}
