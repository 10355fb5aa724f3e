/* SPDX-License-Identifier: MIT */
/*
 * SIGINT, SIGTERM, SIGHUP and SIGPIPE end the compilation at the next safe place, with temporaries removed and children
 * gone, as if the signal had not been caught: the parent sees the same signal.
 */
#ifndef RNNCC_INTERRUPT_H
#define RNNCC_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void);
bool interrupt_pending(void);
/* If a signal is pending: cleans up as stop() does, then dies of it. */
void interrupt_check(void);

#endif
