/* SPDX-License-Identifier: MIT */
/* What the files that build a Program share. */
#ifndef RNNCC_BUILD_INTERNAL_H
#define RNNCC_BUILD_INTERNAL_H

#include "program/program.h"

/* The kernel of a specification, made where there is none yet; `node` asks for it. */
const SpecialisedKernel *program_kernel(Program *program, const Node *node, const KernelSpec *spec);

/* Adds what the call touches. bug() for a value that the program does not have. */
int call_access(Call *call, Access access);

/* Gives the parameters that the schedule itself supplies; bug() for any other that is not given. */
void complete_operands(Call *call);

#endif
