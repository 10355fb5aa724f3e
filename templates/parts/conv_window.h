/* SPDX-License-Identifier: MIT */
/* A part of the templates of convolutions of blocked tensors, of any window: its extents and the planes'. */

/* R.
 * legal: 1..4096 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..4096 */
enum { WINDOW_W = 3 };
/* legal: 1..4096 */
enum { STRIDE_H = 1 };
/* legal: 1..4096 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* legal: 1..268435456 */
enum { IN_H = 14 };
/* legal: 1..268435456 */
enum { IN_W = 14 };
/* legal: 1..268435456 */
enum { OUT_H = 14 };
/* legal: 1..268435456 */
enum { OUT_W = 14 };
/* Rows of padding above the input. Those below follow from OUT_H and IN_H.
 * legal: 0..65536 */
enum { PAD_TOP = 1 };
/* legal: 0..65536 */
enum { PAD_LEFT = 1 };
