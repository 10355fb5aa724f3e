/* SPDX-License-Identifier: MIT */
/* The copies that pack weights which can change. */
#ifndef RNNCC_REPACK_H
#define RNNCC_REPACK_H

#include "module.h"

#ifdef RNNCC_MUTABLE
/* This worker's share of the copy. Shares of one copy write different bytes. */
RUNTIME_LOCAL void repack(const ModuleCopy *copy, const float *source, void *target, const Team *team);

/* The copy that takes back what `copy`, of f32, has copied. */
RUNTIME_LOCAL ModuleCopy repack_backwards(const ModuleCopy *copy);
#endif

#endif
