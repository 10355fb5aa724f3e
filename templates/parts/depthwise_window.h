/* SPDX-License-Identifier: MIT */
/* A part of the templates of depthwise convolution: the extents of planes and windows. */

/* legal: 1..268435456 */
enum { IN_H = 8 };
/* legal: 1..268435456 */
enum { IN_W = 8 };
/* legal: 1..268435456 */
enum { OUT_H = 8 };
/* legal: 1..268435456 */
enum { OUT_W = 8 };
/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..64 */
enum { WINDOW_W = 3 };
/* legal: 1..65536 */
enum { STRIDE_H = 1 };
/* legal: 1..65536 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* Rows of padding before the input.
 * legal: 0..1048576 */
enum { PAD_TOP = 1 };
/* Columns of padding before the input.
 * legal: 0..1048576 */
enum { PAD_LEFT = 1 };
/* Pixels of a tile.
 * legal: 1..16 */
enum { COLUMNS = 4 };
