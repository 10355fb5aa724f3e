/* SPDX-License-Identifier: MIT */
/*
 * Confining a process, for good and with all that it starts: it may read and run what its user may, but write only in
 * one folder, and open no connection. By Landlock and seccomp of Linux.
 */
#ifndef RNNCC_SANDBOX_H
#define RNNCC_SANDBOX_H

#include <stdbool.h>

/* Auto: where the kernel can, and the program is the one that rnncc looks for: one that $RNNCC_CLANG names may keep a
 * cache of its own. */
typedef enum Sandbox { SANDBOX_AUTO, SANDBOX_ALWAYS, SANDBOX_NEVER } Sandbox;

/* Has this kernel Landlock? */
bool sandbox_possible(void);

/* Of this process: `folder` is where it may write. False, with errno, if the kernel refuses. */
bool sandbox_enter(const char *folder);

#endif
