/* SPDX-License-Identifier: MIT */
/*
 * Weights that the running module can change (--weights=mutable).
 *
 * A model of the module keeps blocks of memory, in this order:
 *
 *   weights   as the model file has them; the program sets these
 *   derived   what nodes compute of weights alone, such as a batch normalisation's scale times a convolution's weights,
 *             or the points of Winograd's algorithm; such nodes are a graph of their own, the derivation, which becomes
 *             a schedule of its own
 *   packed    weights and derived values in the layout that a kernel reads: copies of their elements
 *
 * So each fact has one place. What passes compute of weights stands in the derivation as nodes. How a family packs, its
 * `pack` says: program/trace_packing.c gives it numbered elements and sees where each goes. The numbers of the model's
 * weights are in the module's file only; no pass can read them, for a weight is an input until derive_weights, and
 * later a constant of made up numbers.
 */
#ifndef RNNCC_MUTABLE_H
#define RNNCC_MUTABLE_H

#include "ir/graph.h"

enum { COPY_RANK = 6 };

/* For each index within `extents`, outermost first: element to + sum of index * to_strides of the target is, or gets
 * added, the f32 element of the source in the same way. */
typedef struct WeightCopy {
  int source, target; /* blocks, from 0 on */
  bool adds;          /* after all copies that do not */
  DType dtype;        /* of the target: f32, bf16 or f16 */
  int rank;
  int64_t from, to, extents[COPY_RANK], from_strides[COPY_RANK], to_strides[COPY_RANK];
} WeightCopy;

typedef struct MutableWeight {
  Value *value; /* what nodes read */
  Value *given; /* the model's numbers; no node reads it */
} MutableWeight;

/* A weight that stays constant. */
typedef struct FixedWeight {
  const Value *value;
  const char *why;
} FixedWeight;

struct MutableWeights {
  int n_weights, weight_capacity;
  MutableWeight *weights;
  Graph *derivation; /* its inputs are the weights, in order, its outputs the derived values; NULL: there are none */
  int n_derived, derived_capacity;
  Value **derived; /* constants of the network */
  int n_packed, packed_capacity;
  Value **packed;
  int n_copies, copy_capacity;
  WeightCopy *copies;
  int n_fixed, fixed_capacity;
  FixedWeight *fixed;
};

/* Rows of the axis 1 of `given`, in another order: row i stood at rows[i]. */
struct Reordered {
  Value *given;
  int64_t n;
  const int64_t *rows;
};

/* Must a model keep the weight besides what is packed of it? Not if that has each of its elements once, and of nothing
 * else: then the copies, done backwards, give the weight. `is_read`: by a kernel, as it is. */
bool weight_is_kept(Arena *scratch, const MutableWeights *mutables, int weight, bool is_read);

/* A derivation falls into parts that have nothing but constants in common; setting a weight runs the one that it
 * belongs to. By value id: that part, numbered from 0 on in the order of nodes; -1: no node reads or makes the value.
 * Sets *count to how many there are. needs: dense ids. */
int *derivation_parts(Arena *arena, const Graph *derivation, int *count);

/* Bytes of a block. */
int64_t mutable_block_bytes(const MutableWeights *mutables, int block);
int mutable_blocks(const MutableWeights *mutables);

/* A constant of the network for a value that its derivation computes; it has no id yet. */
Value *derived_constant(Graph *graph, Value *computed);
/* The same in place of a derived constant that nothing reads any more. */
Value *derived_instead(Graph *graph, const Value *constant, Value *computed);
/* What the derivation reads, or computes, for a weight or derived constant of the network. */
Value *derivation_value(const MutableWeights *mutables, const Value *constant);

/* Numbers that stand for those of a weight that can change: none is whole, and of another salt all are others. */
const void *made_up_numbers(Arena *arena, const Value *value, int64_t salt);

#endif
