/* SPDX-License-Identifier: MIT */
/*
 * How a kernel family adds to a Program: a template with its knobs set, calls of it, and an operand for each parameter.
 * Each operand is checked against the parameter's type in the template; a call touches what its operands name.
 */
#ifndef RNNCC_PROGRAM_BUILD_H
#define RNNCC_PROGRAM_BUILD_H

#include "program/program.h"

/* ---- kernels ---- */

/* A template with its knobs set; other knobs keep the template's value. See specialise.h. */
KernelSpec *kernel_spec(Program *program, const char *template_name); /* "gemm_packed": templates/gemm_packed.c */
void kernel_knob(KernelSpec *spec, const char *name, int64_t value);
/* The knob is a parameter of the kernel, with its name in lower case: it gets an operand. */
void kernel_knob_at_run_time(KernelSpec *spec, const char *name);
void kernel_type(KernelSpec *spec, const char *name, DType dtype); /* a typedef of the template */
/* A typedef of a template that only moves elements: bits8 to bits64 of kernel.h, by their size. */
void kernel_bits(KernelSpec *spec, const char *name, DType dtype);
/* body: without braces, "return vrelu(v);"; NULL leaves the template's. */
void kernel_hook(KernelSpec *spec, const char *function, const char *body);

/* ---- calls ---- */

/* A call of a kernel. Each parameter gets one operand, by its name: else bug(). `team`, `run`, `turn` and `fault` are
 * supplied. */
Call *kernel_call(Program *program, const Node *node, KernelSpec *spec);

/* For the profile: the floating-point operations and the bytes moved by one call are sums of such terms: a number times
 * extents, which end with NULL, or times the elements of a value. */
#define EXTENTS(...) ((const Dim *const[]){__VA_ARGS__, NULL})
void call_flops(Call *call, double each, const Dim *const *extents);
void call_bytes(Call *call, double each, const Dim *const *extents);
void call_flops_of(Call *call, double each, const Value *value);
void call_bytes_of(Call *call, double each, const Value *value);
void call_touches(Call *call, const Value *value); /* all bytes of the value, once; NULL: nothing */
/* The type of its multiply-adds, whose peak speed the profile compares with. */
void call_products(Call *call, DType dtype);
/* Each multiply-add told so far is made as so many of that type. */
void call_in_parts(Call *call, int parts);

/* ---- memory operands. READ: the parameter points to const; WRITE, READ_WRITE: it does not ---- */

/* The value's address; a null pointer if value is NULL. READ_WRITE: the kernel reads the old contents. */
void operand_value(Call *call, const char *parameter, const Value *value, AccessMode mode);
/* `bytes` bytes of the value from byte `offset` on; NULL: to its end. */
void operand_part(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *bytes,
                  AccessMode mode);
void operand_bytes(Call *call, const char *parameter, const Value *value, int64_t offset, int64_t bytes,
                   AccessMode mode);
/* `count` elements from element `offset` on; NULL: to its end. */
void operand_elements(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *count,
                      AccessMode mode);
/* An array of addresses, a compound literal in the C text. */
void operand_value_array(Call *call, const char *parameter, int n, Value *const *values, AccessMode mode);
void operand_null(Call *call, const char *parameter);

/* A barrier is placed where a call touches memory written since the last barrier. operand_sharing: none is needed
 * between calls of one node that share the value so. */
void operand_sharing(Call *call, const char *parameter, Sharing sharing);

/* ---- number operands ---- */

void operand_dim(Call *call, const char *parameter, const Dim *dim);
void operand_integer(Call *call, const char *parameter, int64_t value);
/* A distance or extent that is mostly constant, and then a plain number in the C text. */
void operand_extent(Call *call, const char *parameter, const Dim *dim);
void operand_float(Call *call, const char *parameter, double value); /* rounded to the parameter's type */
/* Arrays, compound literals in the C text. */
/* `outer`, `along`, `inner`: the elements of x's axes before `axis`, on it, and behind it; of a scalar 1, 1, 1. */
void operands_around(Call *call, const Value *x, int axis, const char *along);
void operand_dim_array(Call *call, const char *parameter, int n, const Dim *const *dims);
void operand_integer_array(Call *call, const char *parameter, int n, const int64_t *values);
void operand_extent_array(Call *call, const char *parameter, int n, const Dim *const *dims);
/* The address to which one worker of the kernel writes a data-dependent dim; `dim` may also be a constant. */
void operand_found(Call *call, const char *parameter, const Dim *dim);

/* ---- control flow: all workers take the same way ---- */

/* Each of these begins a block; program_end() ends it. */
void program_if(Program *program, const Node *node, const Value *condition);
void program_else(Program *program); /* ends the first block of an If, and begins the other */
/* symbol = 0, 1, ... below `trip`; if NULL, below the value `limit`; if NULL too, without end. */
void program_loop(Program *program, const Node *node, const DimSymbol *symbol, const Dim *trip, const Value *limit);
void program_scope(Program *program, const Node *node); /* a block that runs once */
/* Operands of its calls may use its dims `first` and `count`. */
const Wavefront *program_wavefront(Program *program, const Node *node, int layers, int chunk, const Dim *steps);
void program_layer(Program *program, int layer); /* following calls belong to this layer of the wavefront */
void program_end(Program *program);

void program_break_unless(Program *program, const Node *node, const Value *condition);
void program_set_dim(Program *program, const Node *node, const DimSymbol *symbol, const Dim *dim);
void program_store_dim(Program *program, const Node *node, const DimSymbol *symbol);

/* ---- values ---- */

/* Adds the graph's values to the program, with the open block as their home. */
void program_take(Program *program, Graph *graph);
/* The calls of a body's nodes. */
void lower_body(Program *program, Graph *body);
/* A value of `like`'s type that views `of` from byte `at` on; `of` may be a constant. */
Value *program_view(Program *program, const Value *like, Value *of, const Dim *at);
Value *program_constant(Program *program, DType dtype, const void *data);
/* Memory of so many floats, with the open block as its home. */
Value *program_floats(Program *program, const char *name, const Dim *count);

/* ---- faults ---- */

/* A template that may find a value out of range at run time has a parameter `atomic_int *fault`, and reports by
 * fault_report() of kernel.h. Outputs are then staged until the run has succeeded, unless the family shows that this
 * call cannot fault: operand_null(call, "fault"). */
/* Input data checks before anything runs: all elements of graph input `value` in [lo, hi + hi_dim). False if `value` is
 * no graph input: then the kernel must check and report. */
bool program_check_range(Program *program, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what);

#endif
