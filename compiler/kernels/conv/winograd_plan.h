/* SPDX-License-Identifier: MIT */
/*
 * Plans of Winograd's algorithm (templates/conv_winograd.c) for convolutions of stride 1: the tile, the blocking of
 * tiles and output channels, and the predicted time.
 */
#ifndef RNNCC_WINOGRAD_PLAN_H
#define RNNCC_WINOGRAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/conv/convolution.h"
#include "kernels/conv/winograd_weights.h"
#include "machine/machine.h"
#include "machine/targets.h"

enum { MAX_PARTS = 4 }; /* of a block: its transformed input should stay in L2, or L3 */
/* The same of integers, whose weights are transformed for each block. */
enum { MAX_INTEGER_PARTS = 16 };

/* One group of a convolution. Of integers (templates/conv_winograd_int8.c) two channels take a channel's place: a
 * lane's four bytes hold two numbers of 16 bits. A window of one tap stands for panels (templates/conv_panel_int8.c),
 * whose channels are those of all taps. */
typedef struct WinogradLayer {
  int64_t images, out_h, out_w; /* at the dims' optimum */
  bool tiles_known;             /* they are constant */
  int64_t channels, kernels;
  int taps_h, taps_w;      /* R and S */
  bool transforms_weights; /* in each run */
  bool integer;
  int most_tile; /* of integers: the largest tile that sums fit with, 2 or 4 */
} WinogradLayer;

typedef struct WinogradPlan {
  WinogradForm form;
  int oc_vectors;              /* of output channels in a group */
  int parts;                   /* of a block, at most */
  int part_tiles, least_tiles; /* tiles whose sums are in registers: maximum, minimum */
  bool by_groups;              /* workers own groups of output channels, else blocks of tiles */
  int64_t block_tiles;         /* maximum of tiles in a block */
  int64_t slots;               /* workers with scratch memory */
  double seconds;
} WinogradPlan;

/* Is there an algorithm for windows of this size? */
bool winograd_has_window(int64_t taps_h, int64_t taps_w);

/* Stride 1, no dilation, and an element of the input in every window, which the templates need? */
bool winograd_fits_axis(const ConvAxis *axis);

/* For a schedule: "winograd4x4_3x3_oc2t13b25_groups" behind `kind`, then the differences between layers of one plan. */
const char *winograd_text(Arena *arena, const char *kind, const Convolution *conv, const WinogradPlan *plan);

/* needs: knobs that fit, see winograd_fit(). */
WinogradPlan winograd_plan(const Target *target, const Machine *machine, const WinogradLayer *layer,
                           const Knobs *knobs);

/* Adds the plans of a convolution of `groups` such layers, which run one after the other. The usual ones have one or
 * two vectors in a group, and blocks of two or four parts. */
void winograd_list(const Target *target, const Machine *machine, const WinogradLayer *layer, int64_t groups,
                   ConvCandidates *candidates);

/* Moves each knob to the nearest value that kernels have. The tile is the longer of its extents. */
void winograd_fit(const WinogradLayer *layer, Knobs *knobs);

/* A worker's scratch memory in floats, or words of four bytes: the stride of points of the transformed input and of
 * the products, and the total. */
int64_t winograd_input_point(const WinogradPlan *plan, const WinogradLayer *layer, int lanes);
int64_t winograd_product_point(const WinogradPlan *plan, int lanes);
int64_t winograd_slot(const WinogradPlan *plan, const WinogradLayer *layer, int lanes);

#endif
