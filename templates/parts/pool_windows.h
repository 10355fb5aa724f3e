/* SPDX-License-Identifier: MIT */
/* A part of the templates of pools of row-major tensors: the extents of their windows. */

/* legal: 1..65536 */
enum { WINDOW_D = 1 };
/* legal: 1..65536 */
enum { WINDOW_H = 2 };
/* legal: 1..65536 */
enum { WINDOW_W = 2 };
/* legal: 1..65536 */
enum { STRIDE_D = 1 };
/* legal: 1..65536 */
enum { STRIDE_H = 2 };
/* legal: 1..65536 */
enum { STRIDE_W = 2 };
/* legal: 1..65536 */
enum { DILATION_D = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
