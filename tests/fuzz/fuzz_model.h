/* SPDX-License-Identifier: MIT */
/* Shared by the fuzzers of model files: an error that stops the compiler returns to the fuzzer; bug() is a finding. */
#ifndef RNNCC_FUZZ_MODEL_H
#define RNNCC_FUZZ_MODEL_H

#include "support/arena.h"
#include "support/files.h"

/* The file is read or refused, without undefined behaviour, leak, or internal error. */
void read_or_refuse(void (*read)(Arena *, FileBytes), FileBytes bytes);

#endif
