/* SPDX-License-Identifier: MIT */
/*
 * What convolutions by matrices in registers share (templates/parts/conv_matrices.h), of bytes and of bf16: what a
 * block of the output reads is copied to a strip, from which matrices of pixels are loaded for each line of a window.
 * Here: the strip's form, the blocks, their predicted time, and where weights are.
 *
 * A convolution of groups is one of parts: as many groups as fill blocks of channels are a part, in which weights
 * between channels of two groups are zero. A part is a convolution of one group.
 */
#ifndef RNNCC_MATRICES_PLAN_H
#define RNNCC_MATRICES_PLAN_H

#include "kernels/conv/convolution.h"
#include "kernels/gemm/matrices.h"

/* Of the template. MATRIX: bytes of one. */
enum { MATRIX_LINE = MATRIX_BYTES, MATRIX_VECTORS = 2, MATRIX = MATRIX_ROWS * MATRIX_LINE };
enum { MATRICES_SUM_BYTES = 2 * MATRIX_VECTORS * MATRIX };

/* What plans are made of, at the dims' optimum. */
typedef struct MatricesLayer {
  int64_t images, out_h, out_w;
  bool images_known, plane_known;
  ConvAxis h, w;                      /* a plane under a 1x1 window without padding or stride is one row */
  int64_t parts, merged;              /* parts, and the groups of one; all else is of a part */
  int64_t element;                    /* bytes of one in the strip */
  int64_t blocks, channels;           /* of x's channels; bytes of them in the strip */
  int64_t fold;                       /* rows of x in a pixel of the strip */
  bool phases;                        /* rows and columns a stride apart are side by side in the strip */
  int64_t pieces, piece_lines, lines; /* parts of a window that are side by side; lines of one, and of a window */
  int64_t vectors, groups;            /* of output channels */
  bool residual;
} MatricesLayer;

typedef struct MatricesPlan {
  bool by_groups;           /* workers own groups of output channels, else blocks of pixels */
  bool across;              /* a matrix goes on from a row to the next one */
  int64_t block_h, block_w; /* maximum of a block */
  int64_t rows, matrices;   /* pixels of a matrix; matrices of a block */
  int64_t slots;            /* workers with scratch memory */
  double seconds;
} MatricesPlan;

typedef struct MatricesSchedule {
  ConvSchedule base;
  MatricesLayer layer;
  MatricesPlan plan;
} MatricesSchedule;

static inline const MatricesSchedule *matrices_schedule_of(const Node *node) {
  return (const MatricesSchedule *)node->schedule;
}

/* Has the target such matrices, and the convolution one group, or groups of several channels that fill parts? */
bool matrices_run(const Graph *graph, const Convolution *conv);

/* As in ConvAlgorithm; make() writes `name` into the schedule's text. The knobs are PAIRS and BY_GROUPS. */
bool matrices_suit(const Graph *graph, const Node *node, const Convolution *conv);
void matrices_list(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates);
void matrices_fit(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs);
ConvSchedule *matrices_make(Graph *graph, const Convolution *conv, const Knobs *knobs, const char *name);
void matrices_scratch(Graph *graph, Node *node);

/* Bytes of the packed weights: [part][group][line of a window][vector of the group][MATRIX_ROWS][lanes][STEP_CHANNELS].
 */
int64_t matrices_weights_bytes(const MatricesLayer *layer);
/* Where the weight of an output channel, an input channel of its group and a tap is there, in bytes. */
int64_t matrices_weight_at(const MatricesSchedule *schedule, int64_t kernel, int64_t channel, int64_t tap,
                           int64_t lanes);

/* The template's knobs, but those of the result, and operands, but the tensors. */
void matrices_knobs(KernelSpec *spec, const MatricesSchedule *schedule);
void matrices_operands(Call *call, const Graph *graph, const Node *node);

#endif
