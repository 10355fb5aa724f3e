/* SPDX-License-Identifier: MIT */
#ifndef RNNRUN_VERIFY_REFERENCE_H
#define RNNRUN_VERIFY_REFERENCE_H

#include "arguments.h"

/* `verify --reference`: runs both modules on each sample, and prints how far the outputs are from the reference's.
 * Returns an exit code. */
int verify_reference(const Arguments *arguments);

#endif
