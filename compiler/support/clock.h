/* SPDX-License-Identifier: MIT */
/* Time that only moves forwards. */
#ifndef RNNCC_SUPPORT_CLOCK_H
#define RNNCC_SUPPORT_CLOCK_H

/* Seconds since some fixed point. */
double seconds_now(void);

#endif
