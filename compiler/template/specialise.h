/* SPDX-License-Identifier: MIT */
/*
 * Templates and their specialisation.
 *
 * A template is a file templates/<name>.c of plain C that compiles, formats and is tested on its own:
 *   - its doc comment, at the top, says what it computes;
 *   - a knob is a file-scope `enum { NAME = value };` whose doc comment has a line `legal: 1..14` or `legal: 0 1 3`;
 *   - a type knob is a file-scope `typedef float T;` whose doc comment has a line `legal: float int64_t`;
 *   - a hook is a `static inline` function whose doc comment has a line `hook: what it is for`;
 *   - the kernel is the `static void` function named as the file;
 *   - helper functions are static; headers it includes are the vocabulary, shared by all kernels of a unit, but for
 *     those in templates/parts/, which are text of the template itself (template/parts.h).
 *
 * specialise() writes the values of knobs, the types and the bodies of hooks in, parses that with libclang (against the
 * plain C vocabulary at the target's width, so that no compiler header is read), drops branches whose condition is a
 * constant, and renames every file-scope name by the kernel's prefix. What it returns is readable C.
 *
 * A knob may be left to run time: IN_W is then a parameter `in_w` of the kernel, after the others. A template needs
 * nothing for this, except that no type or constant may depend on such a knob.
 */
#ifndef RNNCC_SPECIALISE_H
#define RNNCC_SPECIALISE_H

#include "ir/graph.h"

typedef struct Knob {
  const char *name;
  int64_t value;
} Knob;
typedef struct TypeKnob {
  const char *name, *type; /* "T", "int64_t" */
} TypeKnob;
typedef struct Hook {
  const char *function, *body;
} Hook;

enum { MAX_KNOBS = 48, MAX_RUN_TIME_KNOBS = 16, MAX_TYPE_KNOBS = 4, MAX_HOOKS = 8 };

/* A template with its knobs set. */
typedef struct KernelSpec {
  Arena *arena;
  const char *template_name;
  int n_knobs, n_run_time, n_types, n_hooks;
  Knob knobs[MAX_KNOBS];
  const char *run_time[MAX_RUN_TIME_KNOBS]; /* names of knobs */
  TypeKnob types[MAX_TYPE_KNOBS];
  Hook hooks[MAX_HOOKS];
} KernelSpec;

typedef enum ParameterKind {
  PARAMETER_INTEGER,
  PARAMETER_FLOAT,
  PARAMETER_DOUBLE,
  PARAMETER_POINTER,
  PARAMETER_POINTERS, /* to an array of pointers */
} ParameterKind;

typedef struct Parameter {
  const char *name;
  ParameterKind kind;
  bool points_to_const; /* the kernel only reads there; of an array of pointers: where these point */
  DType element;        /* of memory that it points to; RNNCC_NONE: any, or no numbers */
} Parameter;

typedef struct SpecialisedKernel {
  const char *function; /* "k3_gemm_packed" */
  const char *text;     /* C: types, helpers, kernel */
  int n_parameters;
  const Parameter *parameters;
  int n_includes;
  const char *const *includes; /* as written: "simd/simd.h" */
} SpecialisedKernel;

/* As written, such as MATRICES_HEADER. */
bool kernel_includes(const SpecialisedKernel *kernel, const char *header);
#define MATRICES_HEADER "\"simd/matrices.h\"" /* of kernels that multiply matrices in registers */

/* bug() for a name that the template lacks, or an illegal value; `prefix` is "k3". */
SpecialisedKernel *specialise(Graph *graph, const KernelSpec *spec, const char *prefix);

/* The same with NAME_MARK, which is not a character of C, as prefix; cached. `lanes`: of the target. */
#define NAME_MARK '\x01'
const SpecialisedKernel *specialise_unnamed(const KernelSpec *spec, int lanes);

/* Template and choices: equal keys mean the same kernel. */
const char *kernel_key(Arena *arena, const KernelSpec *spec);

KernelSpec *kernel_spec_new(Arena *arena, const char *template_name);

#endif
