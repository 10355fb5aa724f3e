/* SPDX-License-Identifier: MIT */
/* A run as Chrome's trace viewer and Perfetto draw it. */
#ifndef RNNRUN_TRACE_H
#define RNNRUN_TRACE_H

#include <stddef.h>

#include "rnncc.h"

/* Writes the kernels of one run end to end, as their `nanoseconds` say. Fails with EXIT_ENVIRONMENT if it cannot. */
void write_trace(const char *path, const char *model, const rnncc_profile_entry *entries, size_t count);

#endif
