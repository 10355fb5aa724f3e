/* SPDX-License-Identifier: MIT */
/*
 * One arena per compilation. Memory is zeroed, 16-byte aligned, and lives until arena_free. There is no failure to
 * check: when the system has no more, the compilation ends with exit code 4.
 */
#ifndef RNNCC_ARENA_H
#define RNNCC_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena); /* NULL is fine */

void *arena_alloc(Arena *arena, size_t bytes);
void *arena_array(Arena *arena, size_t count, size_t size); /* count * size is checked */
void *arena_copy(Arena *arena, const void *data, size_t bytes);
char *arena_string(Arena *arena, const char *text);
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define ARENA_ARRAY(arena, Type, n) ((Type *)arena_array((arena), (size_t)(n), sizeof(Type)))

#endif
