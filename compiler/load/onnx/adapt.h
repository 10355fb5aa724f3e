/* SPDX-License-Identifier: MIT */
/*
 * Rewrites the draft of a node of an older opset to the newest: attributes that became inputs, operators that got
 * another name, axes that meant something else. The table is in adapt.c.
 */
#ifndef RNNCC_ADAPT_H
#define RNNCC_ADAPT_H

#include "load/onnx/reader.h"

/* Is it a supported op, or rewritten to one? */
bool adapt_knows(const Draft *draft);
/* False after an error, or for what is not supported. */
bool adapt(OnnxReader *reader, Draft *draft);

/* The same for operators of another domain; only of such that are known. */
bool contrib_knows(const char *domain, const char *op);
/* The index-th of them, and the name that it is read by; false past the end. */
bool contrib_row(int index, const char **domain, const char **op, const char **ours);
bool contrib_adapt(OnnxReader *reader, Draft *draft, const char *domain);
/* Reports an operator of another domain that is not known. */
void contrib_unknown(OnnxReader *reader, const Draft *draft, const char *domain);

typedef bool Adaptation(OnnxReader *reader, Draft *draft);
Adaptation adapt_softmax, adapt_broadcast, adapt_prelu;
Adaptation adapt_clip, adapt_pad, adapt_top_k, adapt_reshape, adapt_dft, adapt_pow;
Adaptation adapt_scan, adapt_resize, adapt_upsample, adapt_scatter, adapt_dropout;
Adaptation adapt_cast, adapt_concat, adapt_recurrent, adapt_batch_norm, adapt_selu, adapt_grid_sample, adapt_roi_align;
Adaptation adapt_flex_attention;
Adaptation adapt_sequence_empty, adapt_sequence_construct, adapt_sequence_insert, adapt_sequence_erase;
Adaptation adapt_sequence_at, adapt_sequence_length, adapt_sequence_map, adapt_concat_from_sequence;
Adaptation adapt_split_to_sequence;
Adaptation adapt_loop, adapt_optional, adapt_optional_has_element, adapt_optional_get_element, adapt_same_sequence;

/* For these. */
Attribute *draft_attribute(const Draft *draft, const char *name); /* NULL: not given */
int64_t draft_int(const Draft *draft, const char *name, int64_t otherwise);
double draft_float(const Draft *draft, const char *name, double otherwise);
void draft_drop(Draft *draft, const char *name);
void draft_set_int(OnnxReader *reader, Draft *draft, const char *name, int64_t i);
void draft_set_string(OnnxReader *reader, Draft *draft, const char *name, const char *s);
Value *draft_input(const Draft *draft, int input); /* NULL: absent */
void draft_set_input(OnnxReader *reader, Draft *draft, int input, Value *value);
/* A list of integers, or one number of the type, as a constant. */
Value *draft_ints(OnnxReader *reader, const Draft *draft, size_t n, const int64_t *ints);
Value *draft_number(OnnxReader *reader, const Draft *draft, DType dtype, double number);
/* Returns the output of a new node without attributes. Order does not matter: nodes are sorted in the end. */
Value *draft_node(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs);
/* The same with an existing output. */
void draft_node_onto(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs,
                     Value *output);
/* The same with attributes, onto a new output if it is NULL. */
Value *draft_node_with(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs,
                       int n_attributes, const Attribute *attributes, Value *output);
/* The value in another type. */
Value *draft_cast(OnnxReader *reader, const Draft *draft, Value *value, DType dtype);
void draft_cast_onto(OnnxReader *reader, const Draft *draft, Value *value, DType dtype, Value *output);
/* Gives the draft a new output and returns the old one, for another node to write. */
Value *draft_take_output(Draft *draft, int output);
/* These infer the shapes so far. -1 or RNNCC_NONE: not known. */
int draft_rank(OnnxReader *reader, const Draft *draft, const Value *value);
DType draft_dtype(OnnxReader *reader, const Draft *draft, const Value *value);
/* The extent of the last axis; false if it is not known. */
bool draft_last_extent(OnnxReader *reader, const Draft *draft, const Value *value, int64_t *extent);

#endif
