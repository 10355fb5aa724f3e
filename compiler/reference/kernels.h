/* SPDX-License-Identifier: MIT */
/* Shared by the reference kernels: their prototypes, made from the op table, and walks over tensors by strides. */
#ifndef RNNCC_REFERENCE_KERNELS_H
#define RNNCC_REFERENCE_KERNELS_H

#include "ir/op.h"
#include "ir/tensor.h"

#define OP(name, in_min, in_max, out_min, out_max, types, layout, shape, reference, ...) ReferenceKernel reference;
#include "ir/ops.def"

/* The longest side by side: Where's output and its three inputs. */
enum { MAX_OPERANDS = 4 };

/* Visits a box of `rank` axes in row-major order and keeps, for each operand, the element offset of the current point:
 *   for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) ... walk.offset[0] ...
 * Strides are in elements, 0 along a broadcast axis, negative where an axis runs backwards. */
typedef struct Walk {
  int rank, n_operands;
  int64_t shape[MAX_RANK], index[MAX_RANK];
  int64_t stride[MAX_OPERANDS][MAX_RANK];
  int64_t offset[MAX_OPERANDS];
} Walk;

Walk walk_over(int rank, const int64_t *shape);
/* An operand that begins at `offset`; `strides` has one entry an axis of the box. */
void walk_add(Walk *walk, int64_t offset, const int64_t *strides);
/* A whole tensor, broadcast to the box by ONNX's rule: axes align at the end. False if its shape does not fit. */
bool walk_add_broadcast(Walk *walk, const Tensor *tensor);
bool walk_begin(Walk *walk); /* false: the box is empty. Offsets must be as added. */
bool walk_next(Walk *walk);  /* false: that was the last point */

/* An input that may be absent, an output that may not be wanted: then NULL. */
const Tensor *optional_input(const Node *node, const Tensor *const *inputs, int input);
Tensor *optional_output(const Node *node, Tensor *const *outputs, int output);

/* Entry `index` of a list of integers; `otherwise` where the attribute is not given, or the list is shorter. */
int64_t node_int_at(const Node *node, AttributeName name, int index, int64_t otherwise);

/* Elements of the axes first..end-1 of a tensor. */
int64_t tensor_extent(const Tensor *tensor, int first, int end);

/* Row-major strides in elements. */
void tensor_strides(const Tensor *tensor, int64_t strides[MAX_RANK]);

/* Copies one element between tensors of one type, bit for bit. */
void copy_element(Tensor *to, int64_t to_index, const Tensor *from, int64_t from_index);

/* An index along an axis of this length, which counts from the end if it is negative; -1: it is out of range. */
int64_t index_position(int64_t index, int64_t length);

/* Where the tuple of `length` indices points in the data, from axis `first` on; -1: an index is out of range. */
int64_t tuple_offset(const Tensor *data, int first, const Tensor *indices, int64_t tuple, int length);

/* Over the indices, with the offset in the data of the line along `axis` that each belongs to; *stride: of that axis.
 */
Walk walk_lines(const Tensor *data, const Tensor *indices, int axis, int64_t *stride);

/* Wide enough for every integer type, and for the sum or product of two of its values. */
__extension__ typedef __int128 Wide;
Wide tensor_get_wide(const Tensor *tensor, int64_t index);

/* The value as the integer type holds it: modulo 2^bits. */
int64_t wrap_int(DType dtype, int64_t value);
/* Two's-complement arithmetic without overflow: modulo 2^64. */
static inline int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

#endif
