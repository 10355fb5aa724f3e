/* SPDX-License-Identifier: MIT */
/* What the system tells in files. */
#ifndef RNNCC_SYSTEM_FILES_H
#define RNNCC_SYSTEM_FILES_H

enum { SYSTEM_WORD = 32 };

/* The first word of a file of sysfs; empty if there is none. */
void system_word(const char *path, char word[SYSTEM_WORD]);

#endif
