/* SPDX-License-Identifier: MIT */
/* A run as Chrome's trace viewer and Perfetto draw it. */
#ifndef RNNRUN_TRACE_H
#define RNNRUN_TRACE_H

#include "profiled.h"

/* Writes the fastest run, a line for each worker; of an older module its kernels end to end. Fails with
 * EXIT_ENVIRONMENT if it cannot. */
void write_trace(const char *path, const char *model, const Profile *profile);

#endif
