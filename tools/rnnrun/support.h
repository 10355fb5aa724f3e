/* SPDX-License-Identifier: MIT */
/* Shared by the verbs of rnnrun: exit codes, memory, time, element types. */
#ifndef RNNRUN_SUPPORT_H
#define RNNRUN_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rnncc.h"

enum {
  EXIT_MISMATCH = 1,    /* verify only */
  EXIT_INPUT = 2,       /* usage, or data the module does not take */
  EXIT_UNSUPPORTED = 3, /* valid, but this module cannot */
  EXIT_RESOURCE = 4,    /* no memory */
  EXIT_ENVIRONMENT = 5, /* the module cannot be loaded, a file not be read or written */
};

/* Prints one line on stderr, control characters escaped, and exits. */
_Noreturn void fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails unless stdout has taken all that was printed. */
void check_stdout(void);

/* Zeroed, 64-byte aligned, freed with free(); fails with EXIT_RESOURCE. */
void *allocate(size_t bytes);

uint64_t now_ns(void); /* monotonic */

/* Element types: as in the model file ("f32") and in .npy files ("<f4"). */
size_t dtype_bytes(rnncc_dtype dtype);
const char *dtype_text(rnncc_dtype dtype);
const char *dtype_npy(rnncc_dtype dtype);
rnncc_dtype dtype_from_text(const char *text, size_t length);                      /* RNNCC_NONE if unknown */
rnncc_dtype dtype_from_npy(const char *text, size_t length, rnncc_dtype expected); /* of equal texts `expected` */

/* For types that have an .npy form. */
bool dtype_is_float(rnncc_dtype dtype);
bool dtype_is_unsigned(rnncc_dtype dtype);
enum { NPY_TYPES = 128 };
const char *npy_types(char text[NPY_TYPES]); /* " <f8 <f4 ..." */
double float_element(const rnncc_tensor *tensor, int64_t i);
void set_float_element(rnncc_tensor *tensor, size_t i, double value);
int64_t integer_element(const rnncc_tensor *tensor, int64_t i); /* of u64 its bits */
double any_element(const rnncc_tensor *tensor, int64_t i);      /* of either; of many digits the nearest double */

/* Bytes of a row-major tensor; SIZE_MAX if that does not fit. */
size_t tensor_bytes(rnncc_dtype dtype, int rank, const int64_t *shape);

/* "50x1x40" into text; "scalar" for rank 0. */
enum { SHAPE_TEXT = 256 };
const char *shape_text(char text[SHAPE_TEXT], int rank, const int64_t *shape);

/* A decimal integer that is the whole text. Returns 0 if it is not one or does not fit. */
int parse_integer(const char *text, int64_t *value);

/* The bytes between quotes, escaped as JSON wants it, and so that it may stand in a script element. */
void write_json_string(FILE *file, const char *text);

/* CPUs that this process may run on. */
int cpu_count(void);

/* The system's name of the CPU. */
enum { CPU_NAME_BYTES = 256 };
const char *cpu_name(char name[CPU_NAME_BYTES]);

#endif
