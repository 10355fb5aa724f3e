/* SPDX-License-Identifier: MIT */
/* The passes, in pipeline order. The contract of each (needs, keeps, breaks) stands above its definition. */
#ifndef RNNCC_PASSES_H
#define RNNCC_PASSES_H

#include "ir/graph.h"

void verify(Graph *graph); /* bug() unless the invariants of graph.h hold */
void infer_shapes(Graph *graph);
void fit_types(Graph *graph);      /* f16 where kernels know f32, and other types that they do not */
void expand(Graph *graph);         /* ops that are written as others */
void simplify(Graph *graph);       /* constant folding, identities, batch normalisation into convolution */
void reroll_rnn(Graph *graph);     /* decomposed LSTM, GRU and RNN cells back into one op */
void fuse_prologue(Graph *graph);  /* batch normalisation and activation into the kernel that reads them */
void fuse_epilogue(Graph *graph);  /* bias, residual add, activation into the producer */
void fuse_chains(Graph *graph);    /* element-wise nodes that are left, and read each other, into one kernel */
void choose_layouts(Graph *graph); /* which nodes run on blocked tensors, NCHW[x]c */
void insert_layout_transforms(Graph *graph);
void place_parts(Graph *graph);    /* Concat and Split of channels without copying */
void alias_views(Graph *graph);    /* Reshape and its like share their input's memory */
void find_stacks(Graph *graph);    /* recurrent layers that can run as a wavefront come one after the other */
void plan_recurrent(Graph *graph); /* how each recurrent layer is run */
void choose_schedules(Graph *graph);
void pack_weights(Graph *graph);

/* All of main.c's steps by name, for --dump-after; NULL-terminated. */
extern const char *const pass_names[];

#endif
