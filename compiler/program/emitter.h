/* SPDX-License-Identifier: MIT */
/*
 * The emitter collects specialised kernels and the calls that make up the schedule, then writes one C unit.
 *
 * In the unit, value <id> is the pointer `t<id>` of its element type, named dimension <i> is the int64_t `d<i>`, and
 * kernel <k> is `k<k>_<template>`. No name from the model enters C text, except quoted in the name tables.
 */
#ifndef RNNCC_EMITTER_H
#define RNNCC_EMITTER_H

#include "ir/graph.h"
#include "support/text.h"

typedef struct Emitter Emitter;

Arena *emitter_arena(Emitter *emitter);
Graph *emitter_graph(Emitter *emitter);

/* A template with its knobs set. Knobs left alone keep the template's value. See specialise.h for what a template is.
 */
typedef struct KernelSpec KernelSpec;
KernelSpec *kernel_spec(Emitter *emitter, const char *template_name); /* "gemm_packed": templates/gemm_packed.c */
void kernel_knob(KernelSpec *spec, const char *name, int64_t value);
void kernel_type(KernelSpec *spec, const char *name, DType dtype); /* a typedef of the template */
/* A typedef of a template that only moves elements: bits8 to bits64 of kernel.h, by their size. */
void kernel_bits(KernelSpec *spec, const char *name, DType dtype);
void kernel_hook(KernelSpec *spec, const char *function, const char *body); /* without braces: "return vrelu(v);" */

/* A call of a kernel: arguments by parameter name, as C expressions. */
typedef struct KernelCall KernelCall;
KernelCall *kernel_call(Emitter *emitter, const Node *node, KernelSpec *spec);
/* `expression` may use t<id>, d<i> and anything of C; copied. bug() at the end if the template has no such parameter,
 * or has one that was not given. `team`, `run` and its `turn` are supplied to templates that ask for them. */
void call_argument(KernelCall *call, const char *parameter, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_value(KernelCall *call, const char *parameter, const Value *value); /* its pointer; NULL if value is NULL */
/* For a parameter that points to kernel_bits(): the address `offset` elements into the value. */
void call_bits(KernelCall *call, const char *parameter, const Value *value, const Dim *offset);
void call_dim(KernelCall *call, const char *parameter, const Dim *dim);
void call_integer(KernelCall *call, const char *parameter, int64_t value);
void call_float(KernelCall *call, const char *parameter, double value); /* rounded to float */
/* An int64_t array argument, a compound literal in the C text. */
void call_dims(KernelCall *call, const char *parameter, int n, const Dim *const *dims);
void call_ints(KernelCall *call, const char *parameter, int n, const int64_t *values);
/* An int64_t * argument: where the kernel, on one worker, writes the measured dim that this is, or a constant again. */
void call_measured(KernelCall *call, const char *parameter, const Dim *dim);
/* For profile: floating-point operations and bytes moved of one call, at the dims' optimum. */
void call_cost(KernelCall *call, double flops, double bytes);
/* Calls of one node, and of nodes that do not depend on each other, may run without a barrier between; the emitter puts
 * one where memory written before is touched. call_no_barrier: the next call of the same node needs none. */
void call_no_barrier(KernelCall *call);

/* A wavefront: layers in a row run their steps in chunks, side by side (runtime/wave.h). All calls of a layer run once
 * a chunk, by one worker, which is their whole team; their arguments may use `first` and `count`, the chunk's steps.
 * The calls of a wavefront follow each other, layer by layer. With one layer there is nothing to run beside it: the
 * team runs each call together, and meets between them. */
typedef struct Wavefront {
  int layers, chunk;
  const Dim *steps;
} Wavefront;
/* Calls made from here on belong to it; NULL: to none. */
void emitter_in_wavefront(Emitter *emitter, const Wavefront *wavefront, int layer);

/* Control flow. Lines of C that every worker runs, which use t<id> and d<i> as calls do; what they do must be the same
 * for all workers. */
void emitter_line(Emitter *emitter, const Node *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* `if (...) {`, `for (...) {` or `{`; what follows, up to the line that closes it, is a region of its own. */
void emitter_open(Emitter *emitter, const Node *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
void emitter_turn(Emitter *emitter, const Node *node); /* `} else {` */
void emitter_close(Emitter *emitter, const Node *node);
/* A body's values join the module's, at home in the region that is open; then the calls of its nodes. */
void emitter_take(Emitter *emitter, Graph *body);
void emitter_body(Emitter *emitter, Graph *body);
/* A value of `like`'s type that is part of `of`, from byte `at` on; or a constant. */
Value *emitter_view(Emitter *emitter, const Value *like, Value *of, const Dim *at);
Value *emitter_constant(Emitter *emitter, DType dtype, const void *data);

/* A template that may find a value out of range at run time has a parameter `atomic_int *fault`, and reports by
 * fault_report() of kernel.h. Outputs are then staged until the run has succeeded, unless the family shows that this
 * call cannot fault by giving the argument itself: call_argument(call, "fault", "NULL"). */
/* Input data checks before anything runs: all elements of graph input `value` in [lo, hi + hi_dim). False if `value` is
 * no graph input: then the kernel must check and report. */
bool emitter_check_range(Emitter *emitter, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what);

#endif
