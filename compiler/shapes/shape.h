/* SPDX-License-Identifier: MIT */
/*
 * Shared by the shape rules: reporting errors, reading operands that must be known at compile time (an attribute, a
 * constant, or shape arithmetic), and setting an output's shape.
 */
#ifndef RNNCC_SHAPE_H
#define RNNCC_SHAPE_H

#include "ir/graph.h"
#include "ir/op.h"

/* Same rank and dims; types may differ. */
bool has_shape(const Value *value, int rank, const Dim *const *shape);
bool shapes_agree(const Value *a, const Value *b);

/* Runs the node's rule and checks. After an error outputs keep rank -1; so they do, and nothing is reported, if an
 * input is not known. */
bool infer_node(Graph *graph, Node *node);

/* False if the type of an input is not known, because of an error in its producer. */
bool inputs_known(const Node *node);

/* Both report the error at the node and return false. */
bool shape_error(const Node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool shape_unsupported(const Node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For messages: "`x` f32[T, 4]", "2*T + 1". */
const char *shape_text(Graph *graph, const Value *value);
const char *dim_text(Graph *graph, const Dim *dim);
/* For messages: where the named dims of extents stand in the model's inputs, " (s17: axis 0 of `tok`)"; or "". */
const char *dims_places(Graph *graph, int n, const Dim *const *dims);

/* For messages: of extents that should be equal, where they are: "; H and 2*floor(H / 2) are equal where H is a
 * multiple of 2: ...", "; they are equal where H is 49 to 50: ..."; or "". */
const char *equal_where(Graph *graph, const Dim *a, const Dim *b);

/* The one symbol that both extents depend on; NULL if there are more. */
const DimSymbol *only_symbol(Graph *graph, const Dim *a, const Dim *b);

/* For messages, after "must be known at compile time: a constant": the graph input to freeze. */
const char *freeze_hint(Graph *graph, const Value *value);

/* False with an error if the input's rank is outside [least, most]. */
bool check_rank(Graph *graph, const Node *node, int input, int least, int most);
/* False with an error if `what`, "the result", cannot have as many axes. */
bool check_made_rank(const Node *node, const char *what, int rank);
/* False with an error if the input is there and its shape differs from `wanted`; `why` explains it:
 * "[directions, 4*hidden]". */
bool check_shape(Graph *graph, const Node *node, int input, int rank, const Dim *const *wanted, const char *why);
/* False with an error if the input is there, is known and has not one element. */
bool check_scalar(Graph *graph, const Node *node, int input);
/* The axis in 0..rank-1; -1 with an error if it is outside. `what` names it: "axis". */
int check_axis(const Node *node, const char *what, int64_t axis, int rank);

/* Equal for all values of the named dims, as far as can be proved. */
bool same_dim(const Dim *a, const Dim *b);

/* The extent that a and b broadcast to; NULL if they do not. */
const Dim *broadcast_dim(const Dim *a, const Dim *b);

/* Copies the shape to the output, unless it is absent. Returns true, so that a rule can end with it. */
bool set_shape(Graph *graph, Node *node, int output, int rank, const Dim *const *shape);
/* Output 0 has the shape of input 0: a rule of its own, and the end of others. */
bool shape_same(Graph *graph, Node *node);
/* Sets output 0 to the shape that the op gives these operands, by the node's attributes. */
bool shape_as(Graph *graph, const Node *node, OpKind op, int n_operands, Value **operands);
/* Sets those outputs past the first that are wanted, a number for each row: rows are input 0's axes from `axis` on.
 * Their type is the one of ONNX that `stash_type` says; false with an error if it says another than f32 and bf16. */
bool set_row_statistics(Graph *graph, Node *node, int axis);
/* Sets output 0 to the broadcast of all present inputs. False with an error that names two that do not fit. */
bool broadcast_inputs(Graph *graph, Node *node);

/* A list of dimensions or integers that an op takes as an attribute or as an input. */
typedef struct DimList {
  bool given;
  int n;
  const Dim **items;
} DimList;
typedef struct IntList {
  bool given;
  int n;
  const int64_t *items;
} IntList;
/* `attribute` may be ATTR_NONE, `input` -1. False with an error if both are given, or the input is not known. */
bool operand_dims(Graph *graph, const Node *node, AttributeName attribute, int input, DimList *list);
bool operand_ints(Graph *graph, const Node *node, AttributeName attribute, int input, IntList *list);
/* Marks the axes of the list; false with an error for one out of range or repeated. */
bool operand_axes(const Node *node, const IntList *list, int rank, bool marked[MAX_RANK]);

/* The integer elements of a small tensor of any type and static shape, constant or symbolic, row-major; NULL if not
 * known. */
const Dim **known_elements(Graph *graph, const Value *value);

/* Minimum and maximum of the elements first, first + step, ... of a constant integer tensor; false if there are none.
 */
bool constant_range(const Value *value, int64_t first, int64_t step, IntRange *range);

/* Windows of convolution and pooling, with defaults and auto_pad resolved. */
enum { MAX_SPATIAL = 3 };
typedef struct Window {
  int n_spatial; /* 1 to 3: axes 2.. of the input */
  int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
  const Dim *pad_begin[MAX_SPATIAL], *pad_end[MAX_SPATIAL];
  const Dim *out[MAX_SPATIAL];
  bool partial; /* of a pool: a window may reach beyond the padded input; what is there counts for nothing */
} Window;
/* Does every window lie inside the input? */
bool is_unpadded(const Window *window);
/* Is every window one pixel of the input? */
bool is_pointwise(const Window *window);
/* Is a stride larger than 1? */
bool is_strided(const Window *window);
/* False after an error. Convolutions take their kernel from the weights, pools from kernel_shape. The pads of a
 * transposed convolution are what is cut off its output. */
bool read_window(Graph *graph, const Node *node, Window *window);
/* The windows of a MaxUnpool, without its output_shape. */
bool read_unpooled(Graph *graph, const Node *node, Window *window);

/* One axis of a Slice: elements start, start + step, ... of the input, `extent` many. */
typedef struct SliceAxis {
  const Dim *start, *extent;
  int64_t step; /* not 0 */
} SliceAxis;
/* Reads a Slice: fills in all axes of the input, sliced or whole. */
bool read_slice(Graph *graph, const Node *node, SliceAxis axes[MAX_RANK]);
/* What is known of a Slice whose bounds only the run knows: starts[i] and ends[i] are of axes[i]. */
typedef struct FoundSlice {
  int n;
  int axes[MAX_RANK];
  int64_t steps[MAX_RANK]; /* not 0 */
} FoundSlice;
bool read_found_slice(Graph *graph, const Node *node, FoundSlice *slice);
/* Were its bounds not known when its shape was inferred? Then the run reads them. */
bool slice_is_found(Graph *graph, const Node *node);

/* A new data-dependent dim, from `least` to the maximum of `limit`. */
const Dim *data_dependent_dim(Graph *graph, int64_t least, const Dim *limit);

/* The axes that a ReduceSum, ReduceMean, ... takes away or keeps as 1; false after an error. */
bool read_reduced(Graph *graph, const Node *node, bool reduced[MAX_RANK]);

/* CumSum's axis, 0..rank-1; -1 after an error. */
int cumsum_axis(Graph *graph, const Node *node);

/* Upper bound of the boxes that NonMaxSuppression selects of an image and class. */
const Dim *nms_keep(Graph *graph, const Node *node);

/* Elements added (or, negative, cut off) before and after each axis of Pad. */
bool read_pads(Graph *graph, const Node *node, const Dim *before[MAX_RANK], const Dim *after[MAX_RANK]);
/* Padding along one axis; negative padding crops the input. */
typedef struct PadAxis {
  const Dim *before, *after;  /* elements to fill */
  const Dim *origin, *extent; /* the part of the input that is kept */
} PadAxis;
PadAxis pad_axis(DimTable *dims, const Dim *extent, const Dim *before, const Dim *after);

#endif
