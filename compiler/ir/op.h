/* SPDX-License-Identifier: MIT */
/* The operator table. Its rows stand in ops.def; ONNX's operator documentation is the reference for what they mean. */
#ifndef RNNCC_OP_H
#define RNNCC_OP_H

#include "ir/graph.h"

/* An op's requirement on the memory layout of its inputs (NeoCPU section 3.2). */
typedef enum LayoutClass {
  LAYOUT_OBLIVIOUS, /* works on any layout: element-wise */
  LAYOUT_TOLERANT,  /* works on several: convolution, pooling, batch normalisation */
  LAYOUT_DEPENDENT, /* needs the plain one: Reshape, Transpose, recurrent ops */
} LayoutClass;

/* Which operator: one for each row of ops.def, and those that only passes make. Tables by operator have N_OPS rows. */
typedef enum OpKind {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
  OP_Chain,           /* kernels/elementwise/chain.h */
  OP_FusedAttention,  /* kernels/attention/fused_attention.h */
  OP_ReducedChain,    /* kernels/reduce/reduce.h */
  OP_LayoutTransform, /* layout/layout.h */
  OP_Draw,            /* expand/draw.h */
  OP_WinogradWeights, /* kernels/conv/winograd_transform.h */
  OP_PixelShuffle,    /* kernels/conv_transposed/pixel_shuffle.h */
  N_OPS,
} OpKind;

typedef struct Tensor Tensor;
typedef struct KernelFamily KernelFamily; /* ir/family.h */

/* Writes a node as others: expand/expansion.h. */
typedef struct Builder Builder; /* shapes/build.h */
typedef void Expansion(const Builder *builder, const Node *node, Value **results);

/* Sets dtype, shape and, where known, elements of every output; error_at() for what does not fit. Returns false after
 * an error. */
typedef bool ShapeRule(Graph *graph, Node *node);

/* Plain loops with double accumulation. Inputs and outputs are concrete; an absent one is NULL. Outputs are allocated
 * by the caller at the inferred shape, data-dependent dims at their maxima; the kernel then sets the outputs'
 * shapes. Returns NULL or what is wrong with the values (an index out of range). */
typedef const char *ReferenceKernel(const Node *node, const Tensor *const *inputs, Tensor *const *outputs);

/* A set of element types: bit 1 << type. */
typedef uint32_t TypeSet;

/* The type of an input or output: a variable, or SLOT_FIXED + type, or SLOT_BODY; + SLOT_OPTIONAL. 0 ends a list. */
typedef uint8_t TypeSlot;
enum { MAX_TYPE_VARIABLES = 15, SLOT_FIXED = 32, SLOT_BODY = 64, SLOT_OPTIONAL = 128, MAX_SLOTS = 12 };

/* The element types that its kernels support. The last slot of a list stands for all that follow. */
typedef struct OpTypes {
  TypeSet variables[MAX_TYPE_VARIABLES + 1];
  TypeSlot inputs[MAX_SLOTS + 1], outputs[MAX_SLOTS + 1];
} OpTypes;

struct OpInfo {
  OpKind kind;
  const char *name;           /* ONNX's */
  int min_inputs, max_inputs; /* max -1: any number */
  int min_outputs, max_outputs;
  const AttributeSpec *attributes; /* the last one ATTR_NONE */
  OpTypes types;
  LayoutClass layout;
  ShapeRule *shape;
  ReferenceKernel *reference;
  const KernelFamily *family; /* NULL: needs no kernel (folded, or a view) */
};

/* The row of an operator of ops.def. */
const OpInfo *op_info(OpKind kind);
/* For names that a model gives; NULL if there is no such op. */
const OpInfo *op_find(const char *name);
/* Is there such a node? node: or NULL. */
bool is_op(const Node *node, OpKind kind);
const OpInfo *op_at(int index); /* NULL past the end */
/* The output is the first input's bytes in another shape. */
bool op_is_view(const OpInfo *op);
/* Along any axes; of all pixels; the position of an extreme: what the kernels of family_reduce.c run. */
bool op_is_reduction(const OpInfo *op);
bool op_is_global_pool(const OpInfo *op);
bool op_is_arg(const OpInfo *op);
/* Of random numbers: inputs N_DRAW_INPUTS past the row's are which draw it is, and its key; set by number_draws. Of
 * Dropout some nodes draw nothing: node_draws(). */
bool op_draws(const OpInfo *op);
enum { N_DRAW_INPUTS = 2 };
enum { DROPOUT_RATIO = 1, DROPOUT_MODE = 2 }; /* inputs of Dropout */
/* It becomes others (expand/), and has no kernel of its own. */
bool op_is_expanded(const OpInfo *op);
/* The op of which this unknown name is probably a misspelling; NULL: none. */
const char *op_closest(const char *name);

/* Checks the node's arity, attributes and input types against its row, telling every mistake. False if there was any.
 */
bool op_check_node(Node *node);        /* arity and attributes, which it settles: before shapes are known */
bool op_check_types(const Node *node); /* input dtypes: inside infer_shapes, before the shape rule */
/* Must a node of `count` outputs have this one? */
bool op_needs_output(const OpInfo *op, int output, int count);
/* For messages, into `bytes` bytes: the op's attributes, "axis, keepdims", or none, ""; an attribute's words,
 * "forward|reverse|bidirectional". */
void op_list_attributes(const OpInfo *op, char *text, size_t bytes);
void op_list_words(const AttributeSpec *spec, char *text, size_t bytes);
/* Whether the row names the type that this input has. It may be one that is only stored where f32 alone is named. */
bool op_lists_type(const Node *node, int input);
/* Sets the outputs' dtypes as the row says, SLOT_BODY excepted: that is the shape rule's. Needs op_check_types. */
void op_set_output_types(Node *node);

#endif
