/* SPDX-License-Identifier: MIT */
/* The page of `rnncc inspect --html`: layouts, schedules, what was fused and why, which arithmetic. */
#ifndef RNNCC_INSPECT_PAGE_H
#define RNNCC_INSPECT_PAGE_H

#include "program/program.h"

/* HTML that needs nothing else: tools/report has what all such pages share. */
Text inspect_page(const Program *program);

#endif
