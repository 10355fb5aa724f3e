/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_VERBS_H
#define RNNRUN_VERBS_H

#include "arguments.h"
#include "session.h"

/* Each returns an exit code. */
#define VERB(name, operands, summary, details, example) int name##_verb(const Arguments *arguments);
#include "options.def"

/* session_load(), but of a module for another machine or libc it says so. `network`: the name of the one to take; NULL:
 * the module has only one. */
Session load_module(const char *path, const char *network);

/* Sets the model's weights to those of a safetensors file; NULL: none. Fails if a name, a type or a shape does not fit.
 */
void set_weights(const Session *session, const char *path);

#endif
