/* SPDX-License-Identifier: MIT */
/* Blocks in a list, bumped; nothing is freed before the whole. AddressSanitizer is told which bytes were asked for. */
#include "support/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/diagnostics.h"

typedef struct Block {
  struct Block *next;
  size_t used, capacity;
  _Alignas(16) unsigned char bytes[];
} Block;

struct Arena {
  Block *blocks; /* the newest first */
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 16 }; /* between pieces: what reaches past one is found */
#else
#define ASAN_POISON_MEMORY_REGION(bytes, count) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(bytes, count) (void)0
enum { GAP_BYTES = 0 };
#endif

enum { BLOCK_BYTES = 1 << 16, ALIGNMENT = 16 };

Arena *arena_new(void) {
  Arena *arena = calloc(1, sizeof *arena);
  if (!arena) out_of_memory();
  return arena;
}

void arena_free(Arena *arena) {
  if (!arena) return;
  for (Block *block = arena->blocks, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  free(arena);
}

static Block *add_block(Arena *arena, size_t bytes) {
  size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
  Block *block = calloc(1, sizeof *block + capacity);
  if (!block) out_of_memory();
  block->capacity = capacity;
  block->next = arena->blocks;
  arena->blocks = block;
  ASAN_POISON_MEMORY_REGION(block->bytes, capacity);
  return block;
}

void *arena_alloc(Arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) out_of_memory();
  size_t room = ((bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1)) + GAP_BYTES;
  Block *block = arena->blocks;
  if (!block || block->capacity - block->used < room) block = add_block(arena, room);
  void *memory = block->bytes + block->used;
  block->used += room;
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  return memory;
}

void *arena_array(Arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) out_of_memory();
  return arena_alloc(arena, bytes);
}

void *arena_copy(Arena *arena, const void *data, size_t bytes) {
  void *memory = arena_alloc(arena, bytes);
  if (bytes) memcpy(memory, data, bytes);
  return memory;
}

char *arena_string(Arena *arena, const char *text) { return arena_copy(arena, text, strlen(text) + 1); }

char *arena_format(Arena *arena, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *text = arena_alloc(arena, (size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}
