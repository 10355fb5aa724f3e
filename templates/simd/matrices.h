/* SPDX-License-Identifier: MIT */
/* clang-format off: the table */
/*
 * The vocabulary of matrices in registers, behind int8.h's: one instruction multiplies up to 16 rows by 16 columns.
 * There are eight: 0 to 3 for sums, in i32 or f32, 4 and 5 for what is multiplied, 6 and 7 for weights. All have
 * MATRIX_ROWS rows of MATRIX_BYTES bytes; of sums and of what is multiplied fewer rows may be in use.
 *
 *   matrices_begin(m, rows)             before all others, in each worker: 1..MATRIX_ROWS rows of 0 to 5 are in
 *                                       use from now on. All contents are lost
 *   matrices_end(m)                     after all others, in each worker
 *   matrices_zero(m, i)                 sums
 *   matrices_load(m, i, p, stride)      the rows in use from p on, each `stride` bytes behind the one before it
 *   matrices_store(m, i, p, stride)     the same to memory, of sums
 *   matrices_dot(m, i, x, w, is_signed) adds products of bytes to the sums i: row r of x has MATRIX_BYTES bytes, u8
 *                                       or s8, row d of w the s8 4 d to 4 d + 3 of each of 16 columns, as vdot_load
 *                                       has DOT of LANES lanes. Modulo 2^32. A byte of s8 counts as it is: DOT_ZERO
 *                                       of int8.h does not stand for anything here
 *   matrices_dot_bf16(m, i, x, w)       the same of pairs of bf16, whose sums are f32: two products of a column are
 *                                       summed up and added to its sum, then the next two, rounded each time; no
 *                                       denormals
 *
 * Indices are constants. Bytes that no row in use has are not read. A kernel that uses them includes this file: by that
 * the module asks its CPU for them.
 */
/* clang-format on */
#ifndef SIMD_MATRICES_H
#define SIMD_MATRICES_H

#include "simd/simd.h"

enum { MATRIX_ROWS = 16, MATRIX_BYTES = 64, MATRIX_COLUMNS = 16 };

#if defined SIMD_AVX512 && defined __AMX_INT8__ && defined __AMX_BF16__
#include "simd/matrices_amx.h"
#else
#include "simd/matrices_plain.h"
#endif

#endif
