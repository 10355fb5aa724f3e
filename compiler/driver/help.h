/* SPDX-License-Identifier: MIT */
/* What `rnncc --help` prints. It moves with the options, in the same commit. */
#ifndef RNNCC_HELP_H
#define RNNCC_HELP_H

extern const char help_text[];

#endif
