/* SPDX-License-Identifier: MIT */
/*
 * What a Conv node computes, and the algorithms. An algorithm lists its candidates for a node, each a choice of its
 * knobs with a predicted time (candidates.h). Channels are C, kernels (output channels) K, the window R x S.
 */
#ifndef RNNCC_CONVOLUTION_H
#define RNNCC_CONVOLUTION_H

#include "ir/family.h"
#include "ir/schedule.h"
#include "shapes/shape.h"

typedef struct KernelSpec KernelSpec; /* template/specialise.h */
typedef struct Call Call;             /* program/program.h */

/* Would it take less time to multiply numbers of bf16, if the node's weights were rounded to it
 * (--precision=bf16-dynamic)? */
bool convolution_multiplies_bf16(Graph *graph, const Node *node);

/* One spatial axis, with auto_pad and defaults resolved. */
typedef struct ConvAxis {
  int64_t kernel, stride, dilation;
  const Dim *in, *out, *pad_begin, *pad_end;
} ConvAxis;

/* Axis `from_end` of the window, 0 being the last; an axis of one element if it has fewer. */
ConvAxis convolution_axis(Graph *graph, const Node *node, const Window *window, int from_end);

/* Is it under a window of one point without stride or padding? */
bool axis_is_pointwise(const ConvAxis *axis);

/* Are its extents and its padding constants? Of an output that is one the input need not be: of a stride of 2, 49 and
 * 50 elements leave 25. */
bool axis_is_known(const ConvAxis *axis);

/* Is the padding never negative? */
bool axis_is_padded(const Graph *graph, const ConvAxis *axis);

/* A convolution over one axis has planes of one row, over two axes volumes of one plane. Only row-major tensors have
 * volumes of more planes. */
typedef struct Convolution {
  ConvAxis d, h, w;
  int64_t groups, channels, kernels; /* channels and kernels of one group */
  const Value *x, *y;
  const Value *weights;  /* [groups * kernels][channels][Q][R][S]; constant or not */
  const Value *bias;     /* [groups * kernels], or NULL */
  const Value *residual; /* of y's shape, added before the epilogue; or NULL */
  bool integer;          /* of quantised numbers: shapes/integer_conv.h */
  bool to_floats;        /* of these, with a result in f32 */
  int x_block, y_block;  /* channel blocks of x, and of y and the residual; 0: row-major */
} Convolution;

/* The tensors, groups and axes of a convolution or a transposed one. */
Convolution convolution_tensors(Graph *graph, const Node *node);

/* The convolution of a node in a layout. */
Convolution convolution_of(Graph *graph, const Node *node, NodeLayout layout);

/* The axes of a plane; where both are pointwise a plane is one row. */
void convolution_rows(DimTable *dims, const Convolution *conv, ConvAxis *h, ConvAxis *w);

/* Sets a template's knobs of the window along its first `n` axes, last axis first: WINDOW_W, STRIDE_H, ... */
void kernel_window(KernelSpec *spec, int n, const ConvAxis *w, const ConvAxis *h, const ConvAxis *d);
/* An extent of a plane: IN_H, OUT_W, PAD_TOP. One that is not constant is left to run time. */
void kernel_extent(KernelSpec *spec, const char *knob, const Dim *extent);
/* All that convolutions have. */
void kernel_plane(KernelSpec *spec, const ConvAxis *h, const ConvAxis *w);

/* The operand of an extent that kernel_extent() left to run time, by its name in lower case. */
void operand_plane_extent(Call *call, const char *parameter, const Dim *extent);
/* Of all that kernel_plane() left to run time. */
void operands_plane(Call *call, const ConvAxis *h, const ConvAxis *w);

/* Operands of kernels of blocked tensors: n and the distances of images; with x, w, bias, residual and y, too. */
void operands_images(Call *call, const Graph *graph, const Convolution *conv);
void operands_blocked(Call *call, const Graph *graph, const Convolution *conv, const Value *w, const Value *bias);

/* "56x56", for a schedule's text; of a dim the maximum: "56xupto512". */
void plane_text(Text *text, const Dim *h, const Dim *w);
/* The differences between layers of one plan: "_3x3s1c64o128g1_56x56", which ends with the plane. */
void layer_text(Text *text, const Convolution *conv, const Dim *h, const Dim *w);

/* Multiply-adds at the dims' optimum. */
double convolution_macs(const Convolution *conv);
/* For the profile, `part` of them: as if each was computed directly, whatever the algorithm. The whole window counts,
 * beyond the edges, too. */
void convolution_flops(Call *call, const Convolution *conv, double part);
/* Input and weights once, in elements of `size` bytes, and the output. */
void convolution_bytes(Call *call, const Convolution *conv, double size);

/* The window's taps along the axis that lie in the input, on average over the output, at the dims' optimum. */
double convolution_taps_inside(const ConvAxis *axis);

typedef struct ConvAlgorithm ConvAlgorithm;

typedef struct ConvCandidate {
  const ConvAlgorithm *algorithm;
  Knobs knobs;
  double seconds; /* estimated or measured */
  bool usual;     /* inside the cost model's calibrated range; others must be better by a margin */
  int order;      /* of equal times the lower one is preferred */
} ConvCandidate;

typedef struct ConvCandidates {
  Arena *arena;
  const ConvAlgorithm *algorithm; /* whose candidates are added */
  bool only_best;                 /* keep the best one only */
  int count, capacity;
  ConvCandidate *list;
} ConvCandidates;

const char *convolution_text(Arena *arena, const ConvCandidate *candidate); /* schedule_print() of it */

/* For ConvAlgorithm.list: preferred ones first. */
void candidates_add(ConvCandidates *candidates, const Knobs *knobs, double seconds, bool usual);

/* Each algorithm derives its own struct, whose first member this is. */
typedef struct ConvSchedule {
  Schedule base;
  Convolution conv;
  double seconds; /* estimated or measured */
  /* The kernel reads each element of the residual once, just before it writes that of y, so y may be written over the
   * residual. Not if partial sums are stored in y for a second pass over the channels. */
  bool reads_residual_last;
  const char
      *few; /* by what else the node runs, and where: "winograd,tile=2,..., of at most 72 pixels"; NULL: nothing */
} ConvSchedule;

static inline const ConvSchedule *conv_schedule_of(const Node *node) { return (const ConvSchedule *)node->schedule; }

struct ConvAlgorithm {
  ScheduleKind kind; /* first, see algorithm_of(); its name begins the schedules' texts */
  bool integer;      /* it runs convolutions of quantised numbers, and no others */
  bool to_floats;    /* of these also those with a result in floats */
  /* Can it run the convolution on blocked tensors? NULL: it runs any convolution, on row-major ones. */
  bool (*runs_blocked)(const Graph *graph, const Convolution *conv);
  /* Why not, of the algorithm that runs all that any other runs. NULL: another one. */
  const char *(*obstacle)(const Graph *graph, const Convolution *conv);
  /* Can it take a prologue (Node.prologue), on blocked tensors? NULL: never. */
  bool (*takes_prologue)(const Graph *graph, const Convolution *conv);
  bool takes_wide; /* can it read and write wide blocks? */
  /* Should it run the node in the blocks of `conv`? NULL: always. */
  bool (*suits)(const Graph *graph, const Node *node, const Convolution *conv);
  /* Adds the candidates of a node that it may run: at least one, and all fit. */
  void (*list)(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates);
  /* Moves each knob to the nearest value that the kernel can run the node with. */
  void (*fit)(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs);
  /* The schedule of knobs that fit, with base.text, seconds and reads_residual_last set. */
  ConvSchedule *(*make)(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs);
  /* The kernel of a node with its schedule; and one that runs before it: NULL, or may return NULL, for none. */
  KernelSpec *(*spec)(const Graph *graph, const Node *node);
  KernelSpec *(*before)(const Graph *graph, const Node *node);
  /* Of weights that are not known: adds the nodes that make of them what the kernel reads. `alone`: no other node reads
   * the weights. NULL: it reads them as they are, or `pack` only moves their elements. */
  void (*transform)(Graph *graph, Node *node, bool alone);
  /* As in KernelFamily. scratch may be NULL. */
  void (*scratch)(Graph *graph, Node *node);
  void (*pack)(Graph *graph, Node *node);
  bool (*pools)(const Node *node); /* may be NULL */
  void (*lower)(Program *program, Node *node);
};

/* Places of knobs: KNOB_direct_oc, ... */
#define KNOB(algorithm, name) KNOB_##algorithm##_##name,
#define ALGORITHM(name, knobs)                                                                                         \
  enum { knobs };                                                                                                      \
  extern const ScheduleKnob name##_knobs[MAX_SCHEDULE_KNOBS + 1];                                                      \
  extern const ConvAlgorithm convolution_##name;
#include "kernels/conv/algorithms.def"

/* All algorithms, and their kinds; NULL at the end. */
extern const ConvAlgorithm *const convolution_algorithms[];
extern const ScheduleKind *const convolution_kinds[];

static inline const ConvAlgorithm *algorithm_of(const ScheduleKind *kind) { return (const ConvAlgorithm *)kind; }
static inline const ConvAlgorithm *node_algorithm(const Node *node) { return algorithm_of(node->schedule->kind); }

#endif
