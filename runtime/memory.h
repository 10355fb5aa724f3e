/* SPDX-License-Identifier: MIT */
/* The three functions of libc that a module needs at least. Without libc they are the application's. */
#ifndef RNNCC_MEMORY_H
#define RNNCC_MEMORY_H

#ifdef RNNCC_EDGE
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
#else
#include <string.h>
#endif

#endif
