/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that read an ONNX model. A node is read into a draft, the draft is rewritten to the newest opset
 * (adapt.h), and becomes a node of the graph.
 */
#ifndef RNNCC_ONNX_READER_H
#define RNNCC_ONNX_READER_H

#include "load/names.h"
#include "load/onnx/unsupported.h"
#include "load/settings.h"
#include "onnx.pb-c.h"
#include "sha256.h"
#include "support/files.h"

/* An output of a function, and the call's value for it; claimed once a node of the function writes it. */
typedef struct Result {
  const char *name;
  Value *value;
  bool claimed;
} Result;

/* A scope of names: of the graph, of a body, of a function. */
typedef struct Scope {
  NameTable names;
  struct Scope *outer; /* NULL: a model's graph, or a function's body */
  Graph *graph;        /* that nodes are added to */
  const char *prefix;  /* of names: "", or "call/" in a function's body */
  int64_t opset;       /* of the default domain */
  int n_results;       /* of a function */
  Result *results;
  const Onnx__FunctionProto *function; /* whose body this is, with the call's attributes; NULL: none's */
  const Onnx__NodeProto *call;
  const struct Scope *caller; /* where the call's own references are looked up */
} Scope;

/* The constant of an input that a function's call leaves out. */
extern const Constant onnx_absent;

typedef struct ExternalFile {
  const char *name;
  FileBytes bytes;
  struct ExternalFile *next;
} ExternalFile;

/* The attributes that stand for what the calls of a function leave out, as they were first read. */
typedef struct FunctionDefaults {
  const Onnx__FunctionProto *function;
  size_t n;
  Onnx__AttributeProto **attributes;
  struct FunctionDefaults *next;
} FunctionDefaults;

/* The tensors that a sequence or an optional value holds: sequences.c. */
typedef struct Sequence Sequence;

typedef struct OnnxReader {
  Arena *arena;
  const char *file;
  const Onnx__ModelProto *model;
  const ModelSettings *settings;
  Graph *graph; /* the model's, not a body's */
  Sha256 hash;  /* the model file, then its external files as they are met */
  ExternalFile *external;
  Unsupported unsupported;
  AssumedDims assumed;
  Sequence *sequences;        /* the latest first */
  FunctionDefaults *defaults; /* the latest first */
  int depth;                  /* functions inside functions */
  int n_calls;                /* of functions */
  int n_made;                 /* nodes so far, for names */
  int n_inferred;             /* nodes of the graph whose shapes were inferred */
} OnnxReader;

/* A node before it joins the graph. Lists are in the arena and may be replaced. */
typedef struct Draft {
  const char *op, *name;
  Location where;
  Scope *scope;
  int n_inputs, n_outputs, n_attributes;
  Value **inputs, **outputs; /* NULL: absent */
  Attribute *attributes;
} Draft;

/* "" for an absent text. */
const char *onnx_text(const char *text);

/* A row of ONNX's element types. */
typedef struct OnnxType {
  const char *name; /* for messages */
  DType dtype;      /* RNNCC_NONE: no op takes it */
  int bytes;        /* of an element of ours; 0: it has none */
  int bits;         /* of an element in raw data */
} OnnxType;
const OnnxType *onnx_type(int code); /* NULL if there is none */

/* Reads the tensor. False after an error. */
bool onnx_read_tensor(OnnxReader *reader, const Onnx__TensorProto *proto, const char *name, Location where,
                      Constant *constant);

/* Initializers, inputs and outputs of a graph or body. */
void onnx_declare_constants(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto);
void onnx_declare_inputs(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto);
bool onnx_read_outputs(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto); /* false after an error */
/* The value of that name, NULL if absent. False after an error. */
bool onnx_value(OnnxReader *reader, Scope *scope, const char *name, Location where, Value **value);
/* Reports a constant whose elements no op takes. */
void onnx_refuse_constant(OnnxReader *reader, const char *place, const Constant *constant);
/* A value's or node's name for messages. */
const char *onnx_scoped(const OnnxReader *reader, const Scope *scope, const char *name);

void onnx_read_nodes(OnnxReader *reader, Scope *scope, size_t n, Onnx__NodeProto **nodes);
/* Do the node's attributes refer to those of a call only in a function? Tells which do not. */
bool onnx_check_references(const Draft *draft, const Onnx__NodeProto *proto);
/* Adds the attribute to the draft, unless it refers to one that a function's call leaves out. False after an error, or
 * if it is not supported. */
bool onnx_read_attribute(OnnxReader *reader, Draft *draft, const Onnx__AttributeProto *proto);
/* The value of a Constant node. False after an error, or if it is not supported. */
bool onnx_read_constant(OnnxReader *reader, const Scope *scope, const Onnx__NodeProto *proto, Location where,
                        Constant *constant);
/* The body of If, Loop or Scan. NULL if an output or the order of its nodes has an error. */
Graph *onnx_read_body(OnnxReader *reader, const Draft *draft, const Onnx__GraphProto *proto, const char *name);

/* The function that a node calls; NULL if it calls none. */
const Onnx__FunctionProto *onnx_function(const OnnxReader *reader, const Onnx__NodeProto *node);
/* Replaces the call, whose inputs and outputs are the draft's, by the function's nodes. */
void onnx_inline(OnnxReader *reader, Draft *draft, const Onnx__FunctionProto *function, const Onnx__NodeProto *call);

/* What the value stands for, if it is the name of a sequence; NULL: it is a tensor. */
const Sequence *onnx_sequence(const OnnxReader *reader, const Value *value);
/* Inputs of a Loop's body that stand for sequences among the node's become sequences that the loop carries. */
void onnx_carry_sequences(OnnxReader *reader, const Draft *draft, const Graph *body);
/* Is the value such a sequence of this body, perhaps with more items? */
bool onnx_is_carried(const OnnxReader *reader, const Graph *body, const Value *value);

/* Makes the draft a node, checked against its op's row. NULL after an error, or if it is not supported. */
Node *onnx_commit(OnnxReader *reader, Draft *draft);

/* The opset of the default domain; NO_OPSET if it is not in the list. */
enum { NO_OPSET = -1 };
int64_t onnx_opset(size_t n, Onnx__OperatorSetIdProto **opsets);
bool onnx_default_domain(const char *domain);

#endif
