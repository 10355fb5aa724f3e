/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_VERBS_H
#define RNNRUN_VERBS_H

#include "arguments.h"

/* Each returns an exit code. */
int run_verb(const Arguments *arguments);
int verify_verb(const Arguments *arguments);
int bench_verb(const Arguments *arguments);
int profile_verb(const Arguments *arguments);
int inspect_verb(const Arguments *arguments);
int measure_verb(const Arguments *arguments);

#endif
