/* SPDX-License-Identifier: MIT */
/* The schedule records that a compilation uses. */
#ifndef RNNCC_DATABASE_H
#define RNNCC_DATABASE_H

#include "schedules/records.h"

/* Those that come with rnncc for the target, schedules/<target>.jsonl of its data directory, and after them, so that
 * they count, those of the file `given`. NULL: no file is given; "none": no records at all, and NULL is returned. */
ScheduleRecords *database_open(Arena *arena, const Target *target, const char *given);

#endif
