/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_DEPFILE_H
#define RNNCC_DEPFILE_H

#include "driver/steps.h"

/* --depfile: a rule of Make by which the output is made of the files that were read: models, their weights, records and
 * the machine's description. Nothing without the option. */
void write_depfile(const Compilation *compilation);

#endif
