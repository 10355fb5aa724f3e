/* SPDX-License-Identifier: MIT */
/* The schedule records that a compilation uses. */
#ifndef RNNCC_DATABASE_H
#define RNNCC_DATABASE_H

#include "schedules/records.h"

/* The records that come with rnncc for the target, schedules/<target>.jsonl of its data directory, then those of the
 * file `given`, which win. given NULL: no file, and the others are read when one is looked for; "none": returns NULL.
 */
ScheduleRecords *database_open(Arena *arena, const Target *target, const char *given);

/* Hex digits over the best of them; NULL: there is none, or none was looked for. */
const char *database_digest(Arena *arena, const ScheduleRecords *records);

#endif
