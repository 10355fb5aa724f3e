/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_DRIVER_QUANTISE_GRAPH_H
#define RNNCC_DRIVER_QUANTISE_GRAPH_H

#include "driver/steps.h"

/* `rnncc quantize`. */
void quantise_model(Compilation *compilation);

#endif
