/* SPDX-License-Identifier: MIT */
/* One of the headers that every template is parsed behind. sample.c needs nothing of it. */
