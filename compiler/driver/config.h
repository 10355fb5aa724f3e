/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_DRIVER_CONFIG_H
#define RNNCC_DRIVER_CONFIG_H

#include "driver/options.h"
#include "ir/config.h"

/* The Config that the options ask for, of one of their targets. Reads the schedule records. */
const Config *config_of(Arena *arena, const Options *options, const PlannedTarget *planned);

#endif
