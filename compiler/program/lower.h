/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_LOWER_H
#define RNNCC_LOWER_H

#include "program/program.h"

/* Nodes become calls of kernels; a value of If, Loop and Scan's bodies gets an id of its own. */
Program *lower(Graph *graph);

#endif
