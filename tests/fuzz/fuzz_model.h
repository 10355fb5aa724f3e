/* SPDX-License-Identifier: MIT */
/* Between the fuzzers of model files: what stops the compiler returns to the fuzzer, and bug() is a finding. */
#ifndef RNNCC_FUZZ_MODEL_H
#define RNNCC_FUZZ_MODEL_H

#include "support/arena.h"
#include "support/files.h"

/* The file is read or refused, without undefined behaviour, leak, or internal error. */
void read_or_refuse(void (*read)(Arena *, FileBytes), FileBytes bytes);

#endif
