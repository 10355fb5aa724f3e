/* SPDX-License-Identifier: MIT */
/* The multiply-adds that this machine reaches in registers: what a kernel's rate is a part of. */
#ifndef RNNRUN_PEAK_H
#define RNNRUN_PEAK_H

/* GFLOP/s of `threads` threads together, with the vectors of a module's `isa`. 0: it is none that is
 * known, or this CPU lacks it. Takes some 40 ms. */
double peak_gflops(const char *isa, int threads);

#endif
