/* SPDX-License-Identifier: MIT */
/*
 * How a kernel family adds to a Program: a template with its knobs set, calls of it, and what stands in each parameter.
 * Each operand is checked against the parameter's type as the template declares it; what a call touches is what its
 * operands say.
 */
#ifndef RNNCC_PROGRAM_BUILD_H
#define RNNCC_PROGRAM_BUILD_H

#include "program/program.h"

/* ---- kernels ---- */

/* A template with its knobs set. Knobs left alone keep the template's value. See specialise.h for what a template is.
 */
KernelSpec *kernel_spec(Program *program, const char *template_name); /* "gemm_packed": templates/gemm_packed.c */
void kernel_knob(KernelSpec *spec, const char *name, int64_t value);
void kernel_type(KernelSpec *spec, const char *name, DType dtype); /* a typedef of the template */
/* A typedef of a template that only moves elements: bits8 to bits64 of kernel.h, by their size. */
void kernel_bits(KernelSpec *spec, const char *name, DType dtype);
void kernel_hook(KernelSpec *spec, const char *function, const char *body); /* without braces: "return vrelu(v);" */

/* ---- calls ---- */

/* A call of a kernel. Its operands are given by the parameters' names, each once: else bug(). `team`, `run`, its `turn`
 * and `fault` are supplied to templates that ask for them. */
Call *kernel_call(Program *program, const Node *node, KernelSpec *spec);

/* For profile: floating-point operations and bytes moved of one call, at the dims' optimum. */
void call_cost(Call *call, double flops, double bytes);

/* ---- operands that are memory. READ: the parameter points to const; WRITE, READ_WRITE: it does not ---- */

/* The value's address; a null pointer if value is NULL. READ_WRITE: the kernel reads what stood there before. */
void operand_value(Call *call, const char *parameter, const Value *value, AccessMode mode);
/* The same from byte `offset` on, `bytes` of it; NULL: as much as there is. */
void operand_part(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *bytes,
                  AccessMode mode);
/* From byte `offset` on, `bytes` of it. */
void operand_bytes(Call *call, const char *parameter, const Value *value, int64_t offset, int64_t bytes,
                   AccessMode mode);
/* From element `offset` on, `count` of them; NULL: as many as there are. */
void operand_elements(Call *call, const char *parameter, const Value *value, const Dim *offset, const Dim *count,
                      AccessMode mode);
/* An array of addresses, a compound literal in the C text. */
void operand_value_array(Call *call, const char *parameter, int n, Value *const *values, AccessMode mode);
void operand_null(Call *call, const char *parameter);

/* Calls of one node, and of nodes that do not depend on each other, may run without a barrier between; there is one
 * where memory written before is touched. operand_sharing: this call and other ones of the same node that say so of the
 * same value need none between them. */
void operand_sharing(Call *call, const char *parameter, Sharing sharing);

/* ---- operands that are numbers ---- */

void operand_dim(Call *call, const char *parameter, const Dim *dim);
void operand_integer(Call *call, const char *parameter, int64_t value);
void operand_float(Call *call, const char *parameter, double value); /* rounded to the parameter's type */
/* Arrays, compound literals in the C text. */
void operand_dim_array(Call *call, const char *parameter, int n, const Dim *const *dims);
void operand_integer_array(Call *call, const char *parameter, int n, const int64_t *values);
/* Where the kernel, on one worker, writes the data-dependent dim that this is, or a constant again. */
void operand_found(Call *call, const char *parameter, const Dim *dim);

/* ---- control flow: items that all workers run alike ---- */

/* Each of these begins a block, which the items that follow belong to until program_end(). */
void program_if(Program *program, const Node *node, const Value *condition);
void program_else(Program *program); /* ends the first block of an If, and begins the other */
/* symbol = 0, 1, ... below `trip`, or if that is NULL below the value `limit`, or if that too is NULL without end. */
void program_loop(Program *program, const Node *node, const DimSymbol *symbol, const Dim *trip, const Value *limit);
void program_scope(Program *program, const Node *node); /* a region of its own, run once */
/* The operands of its calls may use the dims of its `first` and `count`. */
const Wavefront *program_wavefront(Program *program, const Node *node, int layers, int chunk, const Dim *steps);
void program_layer(Program *program, int layer); /* of the wavefront: calls from here on are its */
void program_end(Program *program);

void program_break_unless(Program *program, const Node *node, const Value *condition);
void program_set_dim(Program *program, const Node *node, const DimSymbol *symbol, const Dim *dim);
void program_store_dim(Program *program, const Node *node, const DimSymbol *symbol);

/* ---- values ---- */

/* A graph's values join the program's, at home in the block that is open. */
void program_take(Program *program, Graph *graph);
/* The calls of a body's nodes. */
void lower_body(Program *program, Graph *body);
/* A value of `like`'s type that is part of `of`, from byte `at` on; or a constant. */
Value *program_view(Program *program, const Value *like, Value *of, const Dim *at);
Value *program_constant(Program *program, DType dtype, const void *data);

/* ---- faults ---- */

/* A template that may find a value out of range at run time has a parameter `atomic_int *fault`, and reports by
 * fault_report() of kernel.h. Outputs are then staged until the run has succeeded, unless the family shows that this
 * call cannot fault: operand_null(call, "fault"). */
/* Input data checks before anything runs: all elements of graph input `value` in [lo, hi + hi_dim). False if `value` is
 * no graph input: then the kernel must check and report. */
bool program_check_range(Program *program, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what);

#endif
