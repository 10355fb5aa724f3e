/* SPDX-License-Identifier: MIT */
/* What `rnncc inspect --explain` says: what runs how, what holds it, and what to try, in a few lines. */
#ifndef RNNCC_VERDICT_H
#define RNNCC_VERDICT_H

#include "program/program.h"

/* A line each: a word, spaces, and what it says. */
Text verdict_of(const Program *program);

#endif
