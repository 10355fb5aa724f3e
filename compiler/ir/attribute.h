/* SPDX-License-Identifier: MIT */
/* Attributes of nodes: their names and words, listed in ops.def, and the functions that read them. */
#ifndef RNNCC_ATTRIBUTE_H
#define RNNCC_ATTRIBUTE_H

#include "ir/dtype.h"
#include "support/diagnostics.h"

typedef struct Node Node;
typedef struct Value Value;
typedef struct Graph Graph;
typedef struct OpInfo OpInfo; /* ir/op.h */

typedef enum AttributeName {
  ATTR_NONE,
#define ATTRIBUTE(name) ATTR_##name,
#include "ir/ops.def"
  N_ATTRIBUTES
} AttributeName;

/* The words of each set: AUTO_PAD_NOTSET, DIRECTION_forward, ... The default is 0. */
#define WORD(prefix, word) prefix##_##word,
#define WORD_SPELT(prefix, word, text) prefix##_##word,
#define WORDS(set, words) typedef enum set { words } set;
#include "ir/ops.def"
#undef WORD_SPELT
#undef WORD

typedef enum AttributeKind {
  ATTRIBUTE_INT,
  ATTRIBUTE_FLOAT,
  ATTRIBUTE_STRING,
  ATTRIBUTE_INTS,
  ATTRIBUTE_FLOATS,
  ATTRIBUTE_STRINGS,
  ATTRIBUTE_TENSOR,
  ATTRIBUTE_GRAPH,
  ATTRIBUTE_WORD, /* a string of the op's set of words; from a model until its node is checked: ATTRIBUTE_STRING */
  ATTRIBUTE_TYPE, /* a string with the name of an element type */
} AttributeKind;

typedef struct Attribute {
  AttributeName id; /* ATTR_NONE: unknown, or not looked up yet */
  const char *name; /* as the model gives it */
  AttributeKind kind;
  int64_t i; /* of a word its index in the set, of a type the DType */
  double f;
  const char *s;
  size_t count; /* of the lists below */
  int64_t *ints;
  double *floats;
  const char **strings;
  Value *tensor; /* a constant Value outside the graph's list */
  Graph *graph;  /* body of If, Loop, Scan */
  Graph *source; /* the body as read, once infer_shapes has made `graph` of it; else NULL */
  Location where;
} Attribute;

/* One attribute of an op's row. */
typedef struct AttributeSpec {
  AttributeName id;
  AttributeKind kind;
  bool required, has_default;
  int64_t i; /* the default of ATTRIBUTE_INT; of ATTRIBUTE_WORD it is 0 */
  double f;
  const char *const *words; /* of ATTRIBUTE_WORD, the last one NULL */
} AttributeSpec;

/* NULL if the op has no such attribute. */
const AttributeSpec *op_attribute(const OpInfo *op, AttributeName name);
bool op_has_attribute(const OpInfo *op, AttributeName name);
AttributeName attribute_find(const char *name); /* for names that a model gives; ATTR_NONE if no op has it */
const char *attribute_name(AttributeName name);
/* The word's index in the spec's set; -1: none. */
int attribute_word(const AttributeSpec *spec, const char *word);
const char *attribute_kind_words(AttributeKind kind); /* "a list of integers" */

/* Looks up the ids of the attribute's texts (name, word, type), or the texts of ids, if they are NULL. */
void attribute_settle(const OpInfo *op, Attribute *attribute);

/* A node's attribute: the one that is given, else the op table's default. bug() if the op has no such attribute or the
 * kind differs. node_has tells a given attribute from a default. */
bool node_has(const Node *node, AttributeName name);
const Attribute *node_attribute(const Node *node, AttributeName name); /* NULL if not given */
int64_t node_int(const Node *node, AttributeName name);
double node_float(const Node *node, AttributeName name);
const char *node_string(const Node *node, AttributeName name);
int node_word(const Node *node, AttributeName name);    /* a value of the enum of the attribute's words */
DType node_dtype(const Node *node, AttributeName name); /* RNNCC_NONE: not given, or no type's name */

#endif
