/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_VERBS_H
#define RNNRUN_VERBS_H

#include "arguments.h"

/* Each returns an exit code. */
#define VERB(name, operands, summary, details, example) int name##_verb(const Arguments *arguments);
#include "options.def"

#endif
